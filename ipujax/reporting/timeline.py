"""What each IPU does at which time, as few blocks for a chart, however long the program is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ipujax.reporting.model import KINDS, Report, Slice, Step

RESOLUTION = 2000  #: of a run; steps shorter than this fraction of it are drawn together
LARGEST_SYSTEM = 64  #: most IPUs that are drawn


@dataclass(frozen=True)
class Block:
    """A stretch of time of one IPU; `kind` is one of `KINDS` or "further iterations"."""

    ipu: int
    kind: str
    begin: float
    end: float
    label: str


def blocks(report: Report) -> list[Block]:
    """The blocks of all IPUs; an IPU without a block is idle."""
    steps = {step.node: step for step in report.steps}
    pieces = [piece for piece in report.slices if piece.node in steps]
    found = list(_further_iterations(report))
    for ipu in range(min(len(report.ipus), LARGEST_SYSTEM)):
        mine = sorted((p for p in pieces if ipu in p.ipus), key=lambda piece: piece.begin)
        for together in _bins(mine, report.cycles / RESOLUTION):
            found += _drawn(ipu, together, steps)
    return found


def _bins(pieces: Iterable[Slice], width: float) -> Iterable[list[Slice]]:
    """Long slices stay separate; short ones are joined up to `width` cycles."""
    together: list[Slice] = []
    for piece in pieces:
        if together and piece.begin + piece.cycles - together[0].begin > width:
            yield together
            together = []
        together.append(piece)
    if together:
        yield together


def _drawn(ipu: int, together: list[Slice], steps: dict[int, Step]) -> Iterable[Block]:
    longest = steps[max(together, key=lambda piece: piece.cycles).node]
    label = f"{longest.op} {longest.source}".strip()
    if len(together) > 1:
        label += f" and {len(together) - 1} more steps"
    begin = together[0].begin
    columns = zip(*(piece.by_kind for piece in together), strict=True)
    sums = dict(zip(KINDS, map(sum, columns), strict=True))
    for kind in ("sync", "exchange", "inter-IPU", "host", "compute"):
        if sums[kind] > 0:
            yield Block(ipu, kind, begin, begin + sums[kind], label)
            begin += sums[kind]


def _further_iterations(report: Report) -> Iterable[Block]:
    """Slices show the first iteration of a loop; the others follow it."""
    last = _last_nodes(report)
    for i, loop in enumerate(report.slices):
        node = report.nodes[loop.node]
        if node.kind not in ("repeat", "while"):
            continue
        first_end = loop.begin
        for piece in report.slices[i + 1 :]:
            if not loop.node < piece.node <= last[loop.node]:
                break
            first_end = max(first_end, piece.begin + piece.cycles)
        end = loop.begin + loop.cycles
        if end - first_end > report.cycles / RESOLUTION:
            label = f"{node.count} iterations, the first is shown"
            for ipu in loop.ipus:
                if ipu < LARGEST_SYSTEM:
                    yield Block(ipu, "further iterations", first_end, end, label)


def _last_nodes(report: Report) -> list[int]:
    """The last node below each node, as nodes are numbered in the order of the program."""
    last = list(range(len(report.nodes)))
    for i in reversed(range(len(last))):
        for child in report.nodes[i].children:
            last[i] = max(last[i], last[child])
    return last
