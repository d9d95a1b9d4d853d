"""What the rows of all workloads come to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tests.bench.comparisons import SUFFIXES
from tests.bench.row import Row

#: Largest geometric mean of the ratios to the CPU backend.
MEAN_BOUNDS = {"run": 0.9, "compile": 0.5, "memory": 1.0}
TITLES = {"run": "run time", "compile": "compile time", "memory": "peak host memory"}
#: Largest share of programs that take longer than on the CPU backend.
SLOWER_BOUND = 0.5


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def kind_of(row: Row) -> str:
    """What was measured, by the end of the row's name."""
    for kind, suffix in SUFFIXES.items():
        if suffix and row.name.endswith(suffix):
            return kind
    return "run"


def rows(measured: Sequence[Row]) -> Iterator[Row]:
    """Means over two programs or more, and how many of them are slower."""
    for kind, title in TITLES.items():
        chosen = [row for row in measured if kind_of(row) == kind]
        if len(chosen) < 2:
            continue
        values = [row.value for row in chosen]
        missed = sum(not row.passed for row in chosen)
        detail = f"{len(values)} programs, {missed} over their bound, largest {max(values):.2f}"
        mean = geometric_mean(values)
        yield Row(f"{title}, geometric mean", mean, MEAN_BOUNDS[kind], detail)
        if kind == "run":
            slower = sum(value > 1 for value in values)
            detail = f"{len(values) - slower} of {len(values)} programs at most 1.0"
            yield Row("share of programs over 1.0", slower / len(values), SLOWER_BOUND, detail)
