"""The search finds what trying all cuts finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ipujax.planner.search import best_cut, best_ring


def worst(costs: list[np.ndarray], ends: tuple[int, ...], begin: int = 0) -> float:
    starts = (begin, *ends[:-1])
    stages = zip(costs, starts, ends, strict=True)
    return max((float(cost[start, end]) for cost, start, end in stages), default=0.0)


@pytest.mark.parametrize("seed", range(8))
def test_the_cut_is_the_best_of_all(seed: int) -> None:
    random = np.random.default_rng(seed)
    parts, stages = int(random.integers(4, 9)), int(random.integers(2, 5))
    costs = [random.random((parts + 1, parts + 1)) for _ in range(stages)]
    if seed % 2:
        costs[0][0, 2:] = np.inf  # more does not fit into the first stage
    tried = [
        worst(costs, (*inner, parts))
        for inner in itertools.combinations(range(1, parts), stages - 1)
    ]
    found = best_cut(lambda place: costs[place], stages)[-1]
    assert found.worst == min(tried)
    assert worst(costs, found.ends) == found.worst


@pytest.mark.parametrize("seed", range(4))
def test_the_first_and_the_last_stage_can_have_one_ipu(seed: int) -> None:
    random = np.random.default_rng(seed)
    parts, stages = int(random.integers(5, 8)), int(random.integers(3, 5))
    costs = [random.random((parts + 1, parts + 1)) for _ in range(stages)]
    both = random.random((parts + 1, parts + 1))
    tried = [
        max(both[inner[0], inner[-1]], worst(costs[1:-1], inner[1:], inner[0]))
        for inner in itertools.combinations(range(1, parts), stages - 1)
    ]
    found = best_ring(lambda place: costs[place], lambda i, j: float(both[i, j]), stages)
    assert found is not None
    assert found.worst == min(tried)
    assert len(found.ends) == stages
    assert found.ends[-1] == parts
