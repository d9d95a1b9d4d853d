"""Which calls of outlined functions become calls of one function, and what they cost."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu
from ipujax.compiler import ir
from ipujax.compiler.compile import compile_module
from ipujax.compiler.ingest import ingest
from ipujax.compiler.normalise import normalise
from ipujax.compiler.place import place
from tests.compiler.programs import artifact, names

X = np.ones((8, 8), np.float32)


@ipu.outlined
def layer(w, x):
    return jnp.tanh(x @ w) + x


def placed(f, *args, ipus: int = 1) -> ir.Program:
    request = ingest(artifact(f, *args), b"", {"ipus_per_device": ipus})
    return place(normalise(request), request)


def calls_of(program: ir.Program) -> list[list[int]]:
    """For main and each function the numbers of the functions it calls."""
    return [
        [
            program.functions.index(op.attrs["function"])
            for op in ir.walk_ops(root)
            if op.name == "call"
        ]
        for root in (program.main, *program.functions)
    ]


def test_equal_calls_share_a_function() -> None:
    program = placed(lambda w, x: layer(w, layer(w, layer(w, x))).sum(), X, X)
    assert names(program.main) == ["call", "call", "call", "reduce"]
    assert [names(function) for function in program.functions] == [["dot_general", "tanh", "add"]]


def test_other_shapes_and_constants_are_other_functions() -> None:
    scaled = ipu.outlined(lambda x, scale: jnp.tanh(x * scale) + x)

    def f(x, y):
        for scale in (2.0, 3.0):
            x, y = scaled(scaled(x, scale), scale), scaled(scaled(y, scale), scale)
        return x, y

    assert calls_of(placed(f, X, X[:4]))[0] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_single_call_is_put_in_its_place() -> None:
    assert calls_of(placed(lambda w, x: layer(w, x), X, X)) == [[]]


def test_inner_functions_are_called_by_outer_ones() -> None:
    pair = ipu.outlined(lambda w, x: jnp.cos(layer(w, layer(w, x))))
    assert calls_of(placed(lambda w, x: pair(w, pair(w, x)), X, X)) == [[0, 0], [1, 1], []]


def test_inner_functions_of_a_single_call_stay() -> None:
    pair = ipu.outlined(lambda w, x: jnp.cos(layer(w, layer(w, x))))
    program = placed(lambda w, x: pair(w, x), X, X)
    assert names(program.main) == ["call", "call", "cosine"]


def test_forward_and_backward_are_functions_each() -> None:
    def loss(weights, x):
        for w in weights:
            x = layer(w, x)
        return jnp.sin(x).sum()

    (calls, *_) = calls_of(placed(jax.grad(loss), [X] * 6, X))
    assert sorted(Counter(calls).values()) == [5, 6]  # the first needs no gradient of its input


def test_calls_in_loops() -> None:
    def f(w, x):
        return lax.scan(lambda x, _: (layer(w, layer(w, x)), x.sum()), x, length=9)

    program = placed(f, X, X)
    assert calls_of(program) == [[0, 0], []]
    assert "call" not in names(program.main)


def test_functions_of_what_repeats_call_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(weights, x):
        for w in weights:
            x = jnp.cos(jnp.tanh(x @ w) @ w)
        return x

    monkeypatch.setenv("IPUJAX_OUTLINE", "auto")
    monkeypatch.setenv("IPUJAX_OUTLINE_THRESHOLD", "300")
    program = placed(f, [X] * 6, X)
    assert calls_of(program) == [[1] * 6, [], [0, 0]]
    assert [names(function) for function in program.functions] == [
        ["dot_general"],
        ["call", "tanh", "call", "cosine"],
    ]


def test_each_ipu_has_its_own_function() -> None:
    def f(w, x):
        for number in (0, 1, 0, 1):
            x = ipu.stage(layer, ipu=number)(w, x)
        return x

    program = placed(f, X, X, ipus=2)
    used = [{op.ipu for op in function.ops} for function in program.functions]
    assert sorted(map(sorted, used)) == [[0], [1]]
    assert calls_of(program)[0] == [0, 1, 0, 1]


def test_what_comes_from_and_goes_to_the_host_stays_outside() -> None:
    @ipu.outlined
    def brought(w, x):
        return layer(jax.device_put(w, jax.memory.Space.Device), x)

    def f(w, x):
        host = jax.device_put(w, jax.memory.Space.Host)
        return brought(host, brought(host, x))

    program = placed(f, X, X)
    assert names(program.main) == ["to_host", "to_device", "call", "to_device", "call"]


def steps_run(code: bytes) -> Counter[str]:
    """Cycles of one run, by kernel; what moves elements counts as copies."""
    from ipujax._poplar import _poplar

    image = _poplar.engine.inspectImage(code)
    cycles: Counter[str] = Counter()

    def walk(index: int, times: int) -> None:
        kind, value, children = image["nodes"][index]
        if kind == 1:
            step = image["steps"][value]
            moves = step["kernel"] in ("engine.copy", "engine.account")
            cycles["copies" if moves else step["kernel"]] += times * step["cost"]["cycles"]
        for child in children:
            walk(child, times * value if kind == 2 else times)

    walk(0, 1)
    return cycles


def test_code_falls_and_cycles_rise_by_the_copies_only(monkeypatch: pytest.MonkeyPatch) -> None:
    from ipujax._poplar import _poplar

    wide = ipu.outlined(lambda w, x: jax.nn.softmax(layer(w, x) @ w) @ w.T)

    def f(weights, x):
        for w in weights:
            x = wide(w, x)
        return x

    images, cycles = {}, {}
    for outline in ("off", "marked"):
        monkeypatch.setenv("IPUJAX_OUTLINE", outline)
        code = compile_module(artifact(f, [X] * 12, X), b"", {})
        images[outline] = _poplar.engine.inspectImage(code)
        cycles[outline] = steps_run(code)
    more = {name: cycles["marked"][name] - cycles["off"][name] for name in cycles["marked"]}
    assert more.pop("copies") > 0
    assert set(more.values()) == {0}
    assert images["marked"]["code_bytes"] < 0.7 * images["off"]["code_bytes"]
    assert images["marked"]["vertex_state_bytes"] < 0.3 * images["off"]["vertex_state_bytes"]
