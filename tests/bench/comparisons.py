"""The rows of one workload: how long it runs, how long it compiles, how much memory it takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tests.bench import host_memory, timing, workload
from tests.bench.row import Row, seconds
from tests.bench.workload import Workload

#: What of a workload can be measured, and what its row's name ends with.
SUFFIXES = {"run": "", "compile": ": compile", "memory": ": memory"}
#: The largest ratio to the CPU backend of any one program; memory is held to its mean only.
BOUNDS = {"run": 1.5, "compile": 1.0, "memory": None}
#: Seconds after which no further round of compiling begins.
COMPILE_BUDGET_SECONDS = 6.0


class Effort(NamedTuple):
    """How many samples by turns, and how long each takes."""

    num_rounds: int
    sample_seconds: float


def rows(program: Workload, kinds: Sequence[str], effort: Effort) -> Iterator[Row]:
    """A row for each of `kinds`, as soon as it is measured."""
    measures = {"run": _run, "compile": _compile, "memory": _memory}
    for kind in kinds:
        value, detail = measures[kind](program, effort)
        yield Row(program.name + SUFFIXES[kind], value, BOUNDS[kind], detail)


def _run(program: Workload, effort: Effort) -> tuple[float, str]:
    ipu, cpu = (workload.on_devices(program, platform) for platform in ("ipu", "cpu"))
    return _shown(timing.compare(ipu, cpu, *effort))


def _compile(program: Workload, effort: Effort) -> tuple[float, str]:
    ipu, cpu = (workload.compiling(program, platform) for platform in ("ipu", "cpu"))
    return _shown(timing.compare_once(ipu, cpu, effort.num_rounds, COMPILE_BUDGET_SECONDS))


def _shown(compared: timing.Compared) -> tuple[float, str]:
    ipu, cpu, _ = compared
    return compared.ratio, f"{compared.spread}; ipu {seconds(ipu)}, cpu {seconds(cpu)}"


def _memory(program: Workload, _: Effort) -> tuple[float, str]:
    ipu, cpu = (host_memory.peak_bytes(platform, program.name) for platform in ("ipu", "cpu"))
    return ipu / cpu, f"ipu {ipu / 2**20:.1f} MiB, cpu {cpu / 2**20:.1f} MiB"
