"""Random programs on every oracle: some of each kind in every run of the tests."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipujax.verification.oracles import Oracle
from tests.fuzz import steps  # noqa: F401 (importing it registers all steps)
from tests.fuzz.check import check, on_platform, unequal
from tests.fuzz.generator import STEPS, from_seed, make_program


@pytest.fixture(scope="module")
def interpreter():
    oracle = Oracle("interpreter")
    yield oracle
    oracle.close()


@settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(rng=st.randoms(use_true_random=False))
def test_programs_that_hypothesis_draws(interpreter: Oracle, rng: random.Random):
    """Shrinks what differs: a smaller program with smaller arrays."""
    outcome = check(make_program(rng), {"cpu": on_platform("cpu")}, interpreter.run)
    assert outcome.differences == []


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_programs_by_seed(first: int, interpreter: Oracle):
    """The first programs of `make fuzz`, with the reference interpreter."""
    failed = {}
    for seed in range(first, first + 20):
        oracles = {"cpu": on_platform("cpu")}
        if seed % 2:
            oracles["interpreter"] = interpreter.run
        outcome = check(from_seed(seed), oracles, interpreter.run)
        if outcome.differences:
            failed[seed] = outcome.differences
    assert not failed


def test_equal_seeds_make_equal_programs():
    assert from_seed(3).text == from_seed(3).text
    assert from_seed(3).text != from_seed(4).text


def test_every_step_is_taken():
    """No step is so picky that it never applies."""
    taken = {name for seed in range(150) for name in from_seed(seed).names}
    assert sorted(set(STEPS) - taken) == []


def test_a_wrong_result_is_seen():
    program = from_seed(1)
    wrong = lambda code, arguments: [  # noqa: E731
        np.logical_not(a) if a.dtype == bool else a + a.dtype.type(1)
        for a in on_platform("cpu")(code, arguments)
    ]
    assert check(program, {"wrong": wrong}).differences


def test_comparison_knows_nan_zero_and_bounds():
    one = np.array([1, np.nan, -0.0], np.float32)
    assert unequal(one, np.array([1, np.nan, 0.0], np.float32), 0.0) == ""
    assert "1 of 3" in unequal(one, np.array([1.5, np.nan, 0], np.float32), 0.1)
    assert "instead of float32" in unequal(one.astype(np.float16), one, 1.0)
    assert unequal(np.array([np.inf]), np.array([1.0]), 0.5)
