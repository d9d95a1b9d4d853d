"""What is tried for programs that do not fit, and what `ipu_fit` takes of it."""

from __future__ import annotations

import logging
import re
from typing import Any

import jax
import numpy as np
import pytest

from ipujax.compiler import fit
from ipujax.compiler.fit import Attempt, fitted
from ipujax.config import CompileConfig
from ipujax.errors import OutOfMemoryError
from tests.compiler.nanogpt import OPTIMIZER, Sizes, parameters, shapes, step_of

TILE = 638_976


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
        cost = {"cost": {"cycles": cycles}, "worst_tile_bytes": tile_bytes}
        attempt.__dict__["_image"] = {**cost, "tile_capacity": TILE}
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
    assert len(compiler.asked) == 4


def test_dumps_are_of_what_is_taken() -> None:
    needs = {("outline",): (TILE, 1e6)}
    compiler = Compiler(CompileConfig(fit="auto", dump_dir="dumps"), needs)
    assert fitted(compiler) == b"('outline',)"
    assert [asked.get("dump_dir", "dumps") for asked in compiler.asked] == [
        "dumps",
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


def test_trials_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "SECONDS", -1.0)
    compiler = Compiler(CompileConfig(fit="auto"), {})
    fitted(compiler)
    assert len(compiler.asked) == 2


def test_nanogpt_fits_one_ipu(caplog: pytest.LogCaptureFixture) -> None:
    """With 1,024 and with 1,536 tokens, by options."""
    parameters = shapes(Sizes(), 1)[0]
    elements = sum(leaf.size for leaf in jax.tree.leaves(parameters))
    assert elements - Sizes.context * Sizes.width == 10_672_512
    step = step_of(Sizes())
    for batch in (4, 6):
        cost = step.lower(*shapes(Sizes(), batch)).compile({"ipu_fit": "auto"}).cost_analysis()
        assert cost["worst tile bytes"] <= TILE
    slower = re.findall(r"a fit with .* bytes, \+(\d+\.\d) % cycles, fits", caplog.text)
    assert len(slower) == 2
    assert all(float(percent) < 10 for percent in slower)


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
        for group in fit.remedies_of(CompileConfig())
        for changes in group
    ]
    assert len(remedies) == 9
    for options in remedies:
        jax.tree.map(np.testing.assert_array_equal, run(options), wanted)
