"""The first programs of `python -m tests.fuzz --kind sharded`, and those that failed."""

from __future__ import annotations

import pytest

from tests.fuzz.sharded import differences, from_seed


@pytest.mark.parametrize("first", range(0, 45, 15))
def test_sharded_programs_by_seed(first: int):
    failed = {seed: differences(from_seed(seed)) for seed in range(first, first + 15)}
    assert not {seed: found for seed, found in failed.items() if found}


#: Failed once: counts in 64 bits along a sharded dimension; a sum of no elements, scattered.
FAILED = (50009, 50028, 52012)


@pytest.mark.parametrize("seed", FAILED)
def test_seeds_that_failed_once(seed: int):
    assert differences(from_seed(seed)) == []
