"""The first calls of `make sweep`: of every function of `ipu.nn` and `ipu.ops`, in many modes."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import replace
from types import ModuleType

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu
from tests.fuzz import chunks
from tests.fuzz.library import modes
from tests.fuzz.library.compare import Run, compared, differing, from_seed, unequal
from tests.fuzz.library.generators import GENERATORS

#: Calls of each function.
EACH = 2


@pytest.fixture(scope="module")
def outcomes() -> list[dict]:
    return chunks.run_chunk(0, EACH * len(GENERATORS), "library", "cpu")


def test_calls_by_seed(outcomes: list[dict]):
    assert [o["seed"] for o in outcomes] == list(range(EACH * len(GENERATORS)))
    assert {o["seed"]: o["differences"] for o in outcomes if o["differences"]} == {}
    assert Counter(o["name"] for o in outcomes) == dict.fromkeys(GENERATORS, EACH)


def test_every_mode_is_drawn(outcomes: list[dict]):
    known = {mode.__name__ for mode, _, _ in modes.MODES}
    assert known - {o["mode"] for o in outcomes} == set()


#: They take tables in streaming memory: tests/ops/test_remote_embedding.py compares them.
ELSEWHERE = {"ops.remote_embedding_lookup", "ops.remote_embedding_update"}


@pytest.mark.parametrize("package", [ipu.nn, ipu.ops], ids=lambda x: x.__name__)
def test_every_public_function_has_a_generator(package: ModuleType):
    short = package.__name__.removeprefix("ipujax.")
    public = {
        f"{short}.{name}"
        for name, f in vars(package).items()
        if inspect.isfunction(f) and not name.startswith("_")
    }
    assert public
    assert (public - ELSEWHERE) ^ {
        name for name in GENERATORS if name.startswith(f"{short}.")
    } == set()


def test_equal_seeds_make_equal_calls():
    one, again = from_seed(7), from_seed(7)
    assert str(one) == str(again)
    pairs = zip(one.program.operands, again.program.operands, strict=True)
    assert all(a.tobytes() == b.tobytes() for a, b in pairs)


def test_a_wrong_result_and_a_wrong_gradient_are_seen():
    """Of a function whose gradient is a hundredth too large, and one that is itself wrong."""
    number = next(n for n in range(len(GENERATORS)) if from_seed(n).name == "nn.swish")
    seeds = range(number, 160 * len(GENERATORS), len(GENERATORS))
    runs = [from_seed(seed) for seed in seeds]
    wrong = {
        "gradient": lambda x: ipu.nn.swish(x) + _steeper(x),
        "compiled": lambda x: ipu.nn.swish(x) + jnp.asarray(0.01, x.dtype),
    }
    for mode, function in wrong.items():
        run = next(r for r in runs if r.mode == mode and _is_large_float32(r))
        assert compared(run) == []
        assert compared(replace(run, case=replace(run.case, function=function)))


def test_constants_say_how_large_an_error_may_be():
    """Of a result that is zero but for rounding, where the program holds every operand itself."""
    runs = map(from_seed, range(60_000, 70_000))
    run = next(r for r in runs if r.program.constants and not r.program.operands)
    operand = np.array([3, 4], np.float32)
    run = replace(run, program=replace(run.program, constants=(operand,)))
    assert differing(run, [np.zeros(2, np.float32)], [np.full(2, 1e-16)], None) == []
    assert differing(run, [np.zeros(2, np.float32)], [np.full(2, 1e-3)], None)


def _steeper(x):
    """Zero, with a gradient of a hundredth of what x adds to swish."""
    more = 0.01 * ipu.nn.swish(x)
    return more - lax.stop_gradient(more)


def _is_large_float32(run: Run) -> bool:
    (x,) = run.program.operands
    return x.dtype == np.float32 and x.size > 4


def test_comparison_knows_nan_infinities_and_bounds():
    one = np.array([1, np.nan, np.inf], np.float32)
    assert unequal(one, np.array([1 + 1e-6, np.nan, 1e40]), 2e-6, None, 1.0) == ""
    assert "1 of 3" in unequal(one, np.array([1 + 1e-5, np.nan, np.inf]), 2e-6, None, 1.0)
    close = np.array([1 + 1e-5, np.nan, np.inf])
    assert unequal(one, close, 2e-6, one, 30.0) == ""  # the plain definition is as far away
    assert "1 of 3" in unequal(one, close, 2e-6, close, 30.0)
    assert "shape" in unequal(one, np.zeros(2), 1.0, None, 1.0)
    assert "1 of 2" in unequal(np.array([1, 2]), np.array([1, 3]), 9.0, None, 1.0)
