"""Finds the best cut of a row of parts into stages, from the costs of all intervals of parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Costs = npt.NDArray[np.float64]


class Cut(NamedTuple):
    """Stage i has the parts from ends[i - 1] (or 0) to ends[i]; `worst` is the largest cost."""

    ends: tuple[int, ...]
    worst: float


def best_cut(costs: Callable[[int], Costs], num_stages: int, begin: int = 0) -> list[Cut]:
    """The cuts with the smallest worst stage, for each end; the last has all parts.

    Args:
        costs: of a stage, by its place: an array [P + 1, P + 1] of P parts whose element [i, j] is
            the cost of parts i to j - 1; infinity if they do not fit.
        begin: the first part.
    """
    size = len(costs(0))
    best = np.full(size, np.inf)
    best[begin] = 0
    choices = []
    for place in range(num_stages):
        worst = np.maximum(best[:, None], costs(place))
        worst[np.tril_indices(size)] = np.inf
        choices.append(worst.argmin(axis=0))
        best = worst.min(axis=0)
    return [Cut(_ends(choices, end), float(best[end])) for end in range(size)]


def _ends(choices: list[npt.NDArray[np.int64]], end: int) -> tuple[int, ...]:
    found = []
    for choice in reversed(choices):
        found.append(end)
        end = int(choice[end])
    return tuple(reversed(found))


def best_ring(
    costs: Callable[[int], Costs], both: Callable[[int, int], float], num_stages: int
) -> Cut | None:
    """The best cut whose first and last stage are on one IPU.

    Args:
        both: cost of that IPU with the parts before the first argument and from the second on.
    """
    size = len(costs(0))
    found = None
    for first in range(1, size - num_stages + 1):
        middle = best_cut(lambda place: costs(place + 1), num_stages - 2, first)
        for last in range(first + num_stages - 2, size - 1):
            worst = max(middle[last].worst, both(first, last))
            if found is None or worst < found.worst:
                found = Cut((first, *middle[last].ends, size - 1), worst)
    return found if found is not None and np.isfinite(found.worst) else None
