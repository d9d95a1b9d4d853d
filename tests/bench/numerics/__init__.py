"""The programs of `bench --ops`, one file for each family, and their rows."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench import timing, workload
from tests.bench.comparisons import Effort
from tests.bench.numerics import nn, ops, optim, recurrent
from tests.bench.numerics.program import Program
from tests.bench.row import Row, seconds
from tests.bench.summary import geometric_mean

_FAMILIES = (nn, recurrent, ops, optim)
#: The row of the geometric mean of all ratios, and its bound.
MEAN, MEAN_BOUND = "ops, geometric mean", 0.6


def programs() -> list[Program]:
    """All programs, without their arguments."""
    return [program for family in _FAMILIES for program in family.programs()]


def rows(wanted: str, effort: Effort) -> Iterator[Row]:
    """A row for each program whose name contains `wanted`, and the mean over at least two.

    Off the IPU, each op is its plain definition: so the CPU backend's time is that of the plain
    definition, and its gradient is the one that the op declares.
    """
    ratios = []
    for program in programs():
        if wanted in program.workload.name.lower():
            row = _row(program, effort)
            ratios.append(row.value)
            yield row
    if len(ratios) > 1:
        above = sum(ratio > 1 for ratio in ratios)
        detail = f"{len(ratios)} programs, {above} above 1.0, largest {max(ratios):.2f}"
        yield Row(MEAN, geometric_mean(ratios), MEAN_BOUND, detail)


def _row(program: Program, effort: Effort) -> Row:
    ipu, cpu = (workload.on_devices(program.workload, platform) for platform in ("ipu", "cpu"))
    compared = timing.compare(ipu, cpu, *effort)
    times = f"ipu {seconds(compared.first_seconds)}, cpu {seconds(compared.second_seconds)}"
    detail = f"{compared.spread}; {times}"
    return Row(program.workload.name, compared.ratio, program.bound, detail)
