"""What is tried for programs that do not fit, and what `ipu_fit` takes of it."""

from __future__ import annotations

import json
import logging
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.compiler.fit import Attempt, TrialCache, fitted
from ipujax.compiler.remedies import by_order, by_proportion, by_report, without_cost
from ipujax.config.options import CompileConfig
from ipujax.errors import OutOfMemoryError
from ipujax.reporting.model import Report
from tests.compiler.nanogpt import OPTIMIZER, Sizes, parameters, shapes, step_of

TILE = 638_976
EMPTY = Report(
    name="f",
    version="",
    machine="",
    options=(),
    date="",
    num_replicas=1,
    clock_hz=1e9,
    cycles=1e6,
    flops_per_cycle=1.0,
    tile_capacity_bytes=TILE,
    code_capacity_bytes=TILE,
    always_live_bytes=0,
    peak_live_bytes=0,
    assumed_trip_count=1,
    categories=(),
    ipus=(),
    steps=(),
    nodes=(),
    slices=(),
    live=(),
    tensors=(),
)


class Compiler:
    """Stands for the compiler: bytes and cycles by the options that were changed."""

    def __init__(self, options: CompileConfig, needs: dict[tuple[str, ...], tuple[int, float]]):
        self.options, self.needs = options, needs
        self.asked: list[dict[str, Any]] = []

    def __call__(self, changes: Any) -> Attempt:
        self.asked.append(dict(changes))
        names = tuple(sorted(name for name in changes if name != "dump_dir"))
        tile_bytes, cycles = self.needs.get(names, (2 * TILE, 1e6))
        attempt = Attempt("f", self.options, repr(names).encode(), "big" * (tile_bytes > TILE))
        attempt.__dict__["_image"] = {
            "cost": {"cycles": cycles},
            "worst_tile_bytes": tile_bytes,
            "tile_capacity": TILE,
            "code_bytes": 0,
            "code_capacity": 0,
        }
        attempt.__dict__["profile"] = EMPTY
        return attempt


def test_what_fits_is_compiled_once() -> None:
    compiler = Compiler(CompileConfig(fit="auto"), {(): (TILE, 1e6)})
    assert fitted(compiler) == b"()"
    assert compiler.asked == [{}]


def test_the_fastest_of_the_first_group_that_fits_is_taken() -> None:
    needs = {
        ("outline",): (TILE, 1.2e6),
        ("allow_recompute",): (TILE, 1.1e6),
        ("available_memory_proportion",): (1, 1e6),
    }
    compiler = Compiler(CompileConfig(fit="auto"), needs)
    assert fitted(compiler) == b"('allow_recompute',)"
    assert len(compiler.asked) == 6


def test_the_order_with_the_smaller_fullest_tile_is_taken() -> None:
    class Ordered(Compiler):
        def __call__(self, changes: Any) -> Attempt:
            self.needs = {("schedule",): (TILE + (changes.get("schedule") == "program"), 1e6)}
            return super().__call__(changes)

    compiler = Ordered(CompileConfig(fit="auto"), {})
    assert fitted(compiler) == b"('schedule',)"
    orders = [asked.get("schedule") for asked in compiler.asked]
    assert orders == [None, "program", "liveness"]
    compiler = Ordered(CompileConfig(fit="auto", schedule="program"), {})
    fitted(compiler)
    assert not any("schedule" in asked for asked in compiler.asked)


def test_dumps_are_of_what_is_taken() -> None:
    needs = {("outline",): (TILE, 1e6)}
    compiler = Compiler(CompileConfig(fit="auto", dump_dir="dumps"), needs)
    assert fitted(compiler) == b"('outline',)"
    assert [asked.get("dump_dir", "dumps") for asked in compiler.asked] == [
        "dumps",
        "",
        "",
        "",
        "",
        "",
        "dumps",
    ]


def test_proportions_change_sums_of_half_partials() -> None:
    compiler = Compiler(CompileConfig(fit="auto", partials_type="half"), {})
    fitted(compiler)
    assert not any("available_memory_proportion" in asked for asked in compiler.asked)


@pytest.mark.parametrize("choice", ["advise", "auto"])
def test_the_error_lists_what_was_tried(choice: str) -> None:
    needs = {("outline",): (TILE + 1, 1.05e6)}
    options = CompileConfig(fit=choice, out_of_memory="error")
    with pytest.raises(
        OutOfMemoryError, match=r"ipu_outline=auto \(638977 bytes, \+5.0 % cycles\)"
    ):
        fitted(Compiler(options, needs))


def test_nothing_is_tried_unless_somebody_reads_it(caplog: pytest.LogCaptureFixture) -> None:
    compiler = Compiler(CompileConfig(), {("outline",): (1, 1.0)})
    with caplog.at_level(logging.WARNING, "ipujax"):
        assert fitted(compiler) == b"()"
    assert len(compiler.asked) == 1
    assert 'ipu_fit="auto"' in caplog.text
    compiler = Compiler(CompileConfig(fit="off", out_of_memory="error"), {})
    with pytest.raises(OutOfMemoryError):
        fitted(compiler)
    assert len(compiler.asked) == 1


def test_trials_end_in_time() -> None:
    compiler = Compiler(CompileConfig(fit="auto", fit_seconds=0.0), {})
    fitted(compiler)
    assert len(compiler.asked) == 2


def test_what_was_found_is_kept_and_checked() -> None:
    needs = {("outline",): (TILE, 1.2e6), ("allow_recompute",): (TILE, 1.1e6)}
    compiler = Compiler(CompileConfig(fit="auto"), needs)
    for _ in range(2):
        assert fitted(compiler, key="kept") == b"('allow_recompute',)"
    assert len(compiler.asked) == 6 + 2
    needs.pop(("allow_recompute",))  # what is kept is compiled, and no longer fits
    assert fitted(compiler, key="kept") == b"()"
    compiler = Compiler(CompileConfig(fit="auto", fit_seconds=59.0), needs)
    assert fitted(compiler, key="kept") == b"('outline',)"


def test_old_entries_leave_the_cache() -> None:
    cache = TrialCache(2)
    for key in (b"a", b"b", b"c"):
        cache.put(key, ())
    assert cache.get(b"a") is None
    assert cache.get(b"c") == ()


def test_what_is_tried_is_announced() -> None:
    told: list[str] = []
    fitted(Compiler(CompileConfig(fit="auto"), {}), announce=told.append)
    assert told[0] == "tries ipu_schedule=program"
    assert "looks for what is live at the peak" in told


def test_the_fastest_that_fits_comes_first() -> None:
    needs = {("outline",): (TILE, 1.2e6), ("allow_recompute",): (TILE, 1.1e6)}
    options = CompileConfig(fit="advise", out_of_memory="error")
    with pytest.raises(OutOfMemoryError) as caught:
        fitted(Compiler(options, needs))
    text = str(caught.value)
    assert text.index("allow_recompute=True (") < text.index("ipu_outline=auto (")
    assert text.index("cycles, fits") < text.index("1277952 bytes")


def test_nanogpt_fits_one_ipu(caplog: pytest.LogCaptureFixture) -> None:
    """With 1,024 tokens as it is, with 1,536 by an option."""
    parameters = shapes(Sizes(), 1)[0]
    elements = sum(leaf.size for leaf in jax.tree.leaves(parameters))
    assert elements - Sizes.context * Sizes.width == 10_672_512
    step = step_of(Sizes())
    for batch in (4, 6):
        cost = step.lower(*shapes(Sizes(), batch)).compile({"ipu_fit": "auto"}).cost_analysis()
        assert cost["worst tile bytes"] <= TILE
    slower = re.findall(r"a fit with .* bytes, \+(\d+\.\d) % cycles, fits", caplog.text)
    (percent,) = slower
    assert float(percent) < 10


def test_remedies_leave_results_as_they_are() -> None:
    sizes = Sizes(vocabulary=17, layers=2, heads=2, width=64, context=128)
    key = jax.random.key(0)
    tokens = jax.random.randint(key, (4, sizes.context + 1), 0, sizes.vocabulary)

    def run(options: dict[str, Any]) -> Any:
        p = parameters(sizes, key)
        lowered = step_of(sizes).lower(p, OPTIMIZER.init(p), tokens)
        return lowered.compile(options)(p, OPTIMIZER.init(p), tokens)

    wanted = run({})
    remedies: list[dict[str, Any]] = [
        {f"ipu_{name}": value for name, value in changes.items()}
        for changes in (
            *by_order(CompileConfig()),
            *without_cost(CompileConfig()),
            *by_proportion(CompileConfig()),
        )
    ]
    assert len(remedies) == 11
    for options in remedies:
        jax.tree.map(np.testing.assert_array_equal, run(options), wanted)


def layers(weights: Any, x: jax.Array) -> jax.Array:
    for i, w in enumerate(weights):
        with jax.named_scope(f"layer{i}"):
            x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


def test_a_report_says_which_layers_and_products() -> None:
    weights = [jax.ShapeDtypeStruct((1024, 1024), jnp.float32)] * 8
    report = ipu.report(jax.grad(layers), weights, jax.ShapeDtypeStruct((8192, 1024), jnp.float32))
    found = by_report(report, CompileConfig())
    assert {"recompute_layers": "layer*"} in found
    sliced = [json.loads(each["matmul_options"]) for each in found if "matmul_options" in each]
    partitions = [each["scopes"]["layer*"]["planConstraints"]["0"]["partition"] for each in sliced]
    assert partitions == [
        {"outChanSplit": {"serial": 4}},
        {"inChanSplit": {"serial": 4}},
        {"outChanSplit": {"serial": 16}},
    ]
    given = CompileConfig(matmul_options='{"scopes": {"layer*": {"use128BitConvUnitLoad": true}}}')
    own = json.loads(by_report(report, given)[0]["matmul_options"])
    assert set(own["scopes"]["layer*"]) == {"planConstraints", "use128BitConvUnitLoad"}
    assert not any(
        "matmul_options" in c for c in by_report(report, CompileConfig(partials_type="half"))
    )


def test_the_error_of_a_real_program_lists_layers() -> None:
    weights = [jax.ShapeDtypeStruct((1024, 1024), jnp.float32)] * 30
    x = jax.ShapeDtypeStruct((8192, 1024), jnp.float32)
    lowered = jax.jit(jax.grad(layers)).trace(weights, x).lower(lowering_platforms=("ipu",))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        lowered.compile({"ipu_out_of_memory": "error"})
    found = re.findall(
        r"ipu_recompute_layers=([^ ]*) \((\d+) bytes, ([+-][\d.]+) % cycles", str(caught.value)
    )
    for layers_, size, slower in found:
        cost = lowered.compile({"ipu_recompute_layers": layers_}).cost_analysis()
        before = lowered.compile().cost_analysis()["cycles"]
        assert cost["worst tile bytes"] == int(size)
        assert f"{100 * (cost['cycles'] / before - 1):+.1f}" == slower
    assert found
