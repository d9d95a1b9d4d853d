"""Ops that are kept on the host: each program against the one that was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu
from ipujax.convert.conversion import Conversion
from ipujax.convert.settings import settings_of
from ipujax.errors import CallbackError, ConvertError
from ipujax.host import programs as host_programs
from tests.conftest import RunPython

X = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(8, 8)).astype(np.float32) / 3


def model(w: Any, x: Any) -> Any:
    with jax.named_scope("body"):
        y = jnp.tanh(x @ w)
    with jax.named_scope("head"):
        order = jnp.argsort(y, axis=1)
        best = jnp.take_along_axis(y, order[:, -2:], axis=1)
    with jax.named_scope("tail"):
        return {"best": best * 2, "order": order, "sum": y.sum()}


def exported(function: Any, *args: Any) -> jax.export.Exported:
    return jax.export.export(jax.jit(function), platforms=["ipu"])(*args)


def converted(settings: Any, program: jax.export.Exported) -> tuple[jax.export.Exported, list[str]]:
    """The converted program after a round trip through bytes, and the notes."""
    made = Conversion(program, settings_of(settings))
    return jax.export.deserialize(bytearray(made.program.serialize())), made.notes


def test_a_scope_runs_on_the_host_in_one_call():
    given = exported(model, W, X)
    program, notes = converted({"excluded_nodes": ["^head/"]}, given)
    assert notes == ["1 calls of the host, on JAX's CPU backend"]
    text = program.mlir_module()
    assert "stablehlo.sort" not in text
    assert "stablehlo.gather" not in text
    assert "stablehlo.dot_general" in text
    jax.tree.map(np.testing.assert_array_equal, program.call(W, X), given.call(W, X))


def test_all_of_it_runs_on_the_host():
    program, notes = converted({"no_ipu_placement": True}, exported(model, W, X))
    assert notes == ["1 calls of the host, on JAX's CPU backend"]
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.jit(model)(W, X)
    jax.tree.map(np.testing.assert_array_equal, program.call(W, X), wanted)


def test_ops_with_regions_in_regions():
    """A sum with a function of its own, in a loop's body, which uses values from outside."""

    def loop(w: Any, x: Any) -> Any:
        def body(i: Any, state: Any) -> Any:
            with jax.named_scope("inner"):
                total = lax.reduce(state * w, 0.0, lambda a, b: a + b * 1, (1,))
            return state + total[:, None] * 0.01 + i

        return lax.fori_loop(0, 3, body, x)

    given = exported(loop, W[:4], X)
    program, notes = converted({"excluded_nodes": ["inner/"]}, given)
    assert "1 calls of the host" in notes[0]
    np.testing.assert_allclose(program.call(W[:4], X), given.call(W[:4], X), rtol=1e-5)


def test_half_precision_beside_the_host():
    """The host computes as it was written; the rest in float16."""
    program, _ = converted(
        {"precision_mode": "FP16", "excluded_nodes": ["^head/"]}, exported(model, W, X)
    )
    found = program.call(W, X)
    assert "xf16>" in program.mlir_module()
    np.testing.assert_allclose(found["best"], model(W, X)["best"], atol=5e-3)


def test_wide_integers_stay_on_the_host():
    with jax.enable_x64(True):
        given = exported(lambda i: (jnp.sort(i) * 2, i.sum()), np.arange(5)[::-1].copy())
    settings = {"excluded_nodes": ["sort", "reduce_sum"], "int64_to_int32_conversion": True}
    program, _ = converted(settings, given)
    assert "i64" not in program.mlir_module()
    doubled, total = program.call(np.int32([4, 3, 2, 1, 0]))
    assert doubled.tolist() == [0, 2, 4, 6, 8]
    assert int(total) == 10


@pytest.mark.parametrize("seed", range(8))
def test_random_programs(seed: int):
    """Random chains of ops, with random ones on the host."""
    numbers = np.random.default_rng(seed)
    kinds = [jnp.sin, lambda v: v @ W, lambda v: v[:, ::-1], lambda v: v - v.mean(1, keepdims=True),
             lambda v: jnp.sort(v, 1), lambda v: jnp.where(v > 0, v, v * 0.5)]  # fmt: skip
    chosen = numbers.integers(len(kinds), size=10)

    def function(x: Any) -> Any:
        values = [x]
        for i, kind in enumerate(chosen):
            with jax.named_scope(f"part{i}"):
                values.append(kinds[kind](values[-1]) + 0.1 * values[numbers_of[i]])
        return values[-1], values[5]

    numbers_of = [int(numbers.integers(i + 1)) for i in range(10)]
    given = exported(function, X)
    on_host = [f"^part{i}/" for i in range(10) if numbers.random() < 0.4] or ["^part3/"]
    program, _ = converted({"excluded_nodes": on_host}, given)
    for found, wanted in zip(program.call(X), given.call(X), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def test_another_process_runs_and_precompiles_it(tmp_path: Path, run_python: RunPython):
    program, _ = converted({"excluded_nodes": ["^head/"]}, exported(model, W, X))
    (tmp_path / "program.jax").write_bytes(program.serialize())
    np.savez(tmp_path / "in.npz", w=W, x=X)
    code = f"""
import numpy as np, jax, jax.export, ipujax as ipu
from pathlib import Path
folder = Path({str(tmp_path)!r})
program = jax.export.deserialize(bytearray((folder / "program.jax").read_bytes()))
given = np.load(folder / "in.npz")
ipu.precompile(program).save(folder / "program.ipu")
for call in (jax.jit(program.call), ipu.load(folder / "program.ipu")):
    found = call(given["w"], given["x"])
    np.savez(folder / "out.npz", **found)
"""
    ran = run_python("-c", code, env={"JAX_PLATFORMS": "ipu,cpu"})
    assert ran.returncode == 0, ran.stderr
    wanted = exported(model, W, X).call(W, X)
    with np.load(tmp_path / "out.npz") as found:
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value)
    with pytest.raises(ipu.ExecutableError, match="calls functions of the Python process"):
        ipu.runtime.Session(tmp_path / "program.ipu")


def test_without_a_cpu_backend_the_error_says_so(tmp_path: Path, run_python: RunPython):
    program, _ = converted({"no_ipu_placement": True}, exported(jnp.sin, X))
    (tmp_path / "program.jax").write_bytes(program.serialize())
    code = f"""
import numpy as np, jax, jax.export
from pathlib import Path
content = Path({str(tmp_path / "program.jax")!r}).read_bytes()
jax.export.deserialize(bytearray(content)).call(np.ones((4, 8), np.float32)).block_until_ready()
"""
    ran = run_python("-c", code, env={"JAX_PLATFORMS": "ipu"})
    assert "Set JAX_PLATFORMS=ipu,cpu" in ran.stderr


def test_ops_of_ipus_alone_are_refused():
    weights = ipu.nn.LSTMWeights(
        *(np.ones(shape, np.float32) for shape in ((4, 4, 5), (4, 5, 5), (4, 5)))
    )
    program = jax.export.export(
        jax.jit(lambda x: ipu.nn.lstm(x, weights)[0]),
        platforms=["ipu"],
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("ipu_lstm")],
    )(np.ones((3, 2, 4), np.float32))
    with pytest.raises(ConvertError, match="that JAX's CPU backend has"):
        converted({"no_ipu_placement": True}, program)


def test_damaged_ids_are_refused():
    program = jax.export.export(jax.jit(jnp.sin), platforms=["cpu"])(X)
    good = host_programs.id_of(program)
    host_programs.entry(good)
    for text in ("host program x", "host program ", good[:-4], good[:30] + good[31:], good + "A"):
        assert host_programs.is_program(text)
        with pytest.raises(CallbackError, match=r"\[host program\] needs the id"):
            host_programs.entry(text)
