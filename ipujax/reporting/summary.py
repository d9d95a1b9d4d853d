"""A report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ipujax.host.html_tables import html_table, paragraphs
from ipujax.reporting.model import KINDS, Report, Tried
from ipujax.types import Grouping

LISTED = 5  #: rows of a table

CALLERS = "called from"  #: heading of a column of text

#: Column headings, and rows.
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def summary(report: Report) -> str:
    """Verdict, time, headroom; most expensive lines and layers; largest tensors; time of IPUs."""
    parts = _said(report)
    if report.remedies:
        parts += ["", *tried_table(as_it_is(report), report.remedies)]
    for found in _tables(report):
        parts += ["", *table(*found)]
    return "\n".join(parts)


def summary_page(report: Report) -> str:
    """The same as HTML, for notebooks."""
    parts = paragraphs(line for text in _said(report) for line in text.splitlines())
    if report.remedies:
        parts += html_table(*_tried(as_it_is(report), report.remedies))
        parts += paragraphs(_warning(report.remedies))
    return parts + "".join(html_table(*found) for found in _tables(report))


def _said(report: Report) -> list[str]:
    return [verdict(report), *origin(report), *notes(report)]


def _tables(report: Report) -> list[Table]:
    groups = [_groups(report, grouping) for grouping in report.groupings if grouping != "op"]
    collectives = [_collectives(report)] if report.collectives else []
    return [*groups, *collectives, _tensors(report), _ipus(report)]


def verdict(report: Report) -> str:
    """Whether it fits, what fills the fullest tile, and how long it takes, in a line each."""
    fits = "fits" if report.fits else "does not fit"
    return (
        f"{report.name}: {fits}; {report.fullest_tile_bytes} of {report.tile_capacity_bytes} "
        f"bytes on tile {report.ipus[report.fullest_ipu].fullest_tile} of IPU "
        f"{report.fullest_ipu} (headroom {report.headroom:.1%})\n"
        f"there: {', '.join(f'{name} {size}' for name, size in report.parts.items())}\n"
        f"time: {report.cycles:.0f} cycles, {report.seconds:.3g} s"
    )


def origin(report: Report) -> list[str]:
    """The machine, the options and the date, if they are known."""
    found = [f"machine: {report.machine}"] if report.machine else []
    if report.date:
        options = ", ".join(report.options) or "all at their defaults"
        found += [
            f"options: {options}",
            f"compiled: {report.date} by ipujax {report.version}",
        ]
    return found


def notes(report: Report) -> list[str]:
    """What the reader needs to know or can do."""
    found = []
    if report.num_replicas > 1:
        found.append(
            f"replicas: {report.num_replicas}; memory and time are those of each; "
            f"{report.collective_share:.1%} of the steps' time is in collectives"
        )
    if report.code_bytes > report.code_capacity_bytes:
        found.append(
            f"code on a tile: {report.code_bytes} bytes; those that can hold code: "
            f"{report.code_capacity_bytes}; ipu_outline=auto keeps equal parts once"
        )
    if report.remedies:
        enough = sum(each.fits for each in report.remedies)
        found.append(
            f"changes that were tried: {len(report.remedies)}; of them make it fit: {enough}; "
            "ipujax.remedies tries more, if it knows the batch"
        )
    elif not report.fits:
        found.append("ipujax.remedies tries changes that make it fit, and says what each costs")
    if report.unknown_loops:
        found.append(
            f"loops whose iterations only a run knows: {report.unknown_loops}; assumed iterations "
            f"of each: {report.assumed_trip_count}; set ipu_assumed_trip_count to change it"
        )
    return found


def _collectives(report: Report) -> Table:
    total = report.step_cycles or 1.0
    rows = [
        (
            group.name,
            f"{group.cycles:.0f}",
            f"{group.cycles / total:.1%}",
            f"{group.link_bytes:.0f}",
        )
        for group in report.collectives[:LISTED]
    ]
    return ("collective", "cycles", "of all", "link bytes"), rows


def _groups(report: Report, grouping: Grouping) -> Table:
    """The longest groups, with separate forward and backward passes, and callers of lines."""
    total = report.step_cycles or 1.0
    is_line = grouping == "line"
    is_derivative = "direction" in report.groupings and grouping != "direction"
    heads = ["cycles", "of all", *(["forward", "backward"] if is_derivative else [])]
    heads = [grouping, *heads, "utilisation", *([CALLERS] if is_line else [])]
    rows = []
    for group in report.by(grouping)[:LISTED]:
        row = [
            group.name or f"(no {grouping})",
            f"{group.cycles:.0f}",
            f"{group.cycles / total:.1%}",
        ]
        if is_derivative:
            row += [f"{group.forward_cycles:.0f}", f"{group.backward_cycles:.0f}"]
        row.append(f"{group.utilisation:.1%}")
        if is_line:
            row.append(callers(group.name, group.stack))
        rows.append(row)
    return heads, rows


def callers(line: str, stack: Sequence[str], most: int = 2) -> str:
    """The function of a line and the frames around it, such as "loss < train.py:31 step"."""
    at = next((i for i, frame in enumerate(stack) if frame.partition(" ")[0] == line), None)
    if at is None:
        return ""
    around = [stack[at].partition(" ")[2], *stack[at + 1 :]][:most]
    return " < ".join(filter(None, around))


def _tensors(report: Report) -> Table:
    rows = [
        (
            tensor.name or "(unnamed)",
            tensor.source,
            shape_of(tensor.dtype, tensor.shape),
            str(tensor.bytes),
        )
        for tensor in report.tensors[:LISTED]
    ]
    return ("tensor", "line", "shape", "bytes"), rows


def as_it_is(report: Report) -> Tried:
    """The program of a report, to compare with what was tried."""
    return Tried("as it is", report.fullest_tile_bytes, report.cycles, report.fits, True)


def slower(before: Tried, after: Tried) -> float:
    """The relative increase in time of a changed program."""
    return after.cycles / before.cycles - 1 if before.cycles else 0.0


def tried_table(before: Tried, tried: Sequence[Tried]) -> list[str]:
    """Bytes of the fullest tile, time and text of each change."""
    _, rows = _tried(before, tried)
    lines = [f"{'tile bytes':>12} {'cycles':>11}"]
    lines += [f"{size:>12} {time:>11} {fits:>5}  {text}" for text, size, time, fits in rows]
    return lines + _warning(tried)


def _tried(before: Tried, tried: Sequence[Tried]) -> Table:
    rows = [
        (
            each.text if each.keeps_results else f"{each.text} *",
            f"{each.fullest_tile_bytes:,}",
            f"{100 * slower(before, each):+.1f} %",
            "fits" if each.fits else "",
        )
        for each in (before, *tried)
    ]
    return ("change", "tile bytes", "cycles", "verdict"), rows


def _warning(tried: Sequence[Tried]) -> list[str]:
    if all(each.keeps_results for each in tried):
        return []
    return ["* results change: other rounding, or other samples in a step"]


def shape_of(dtype: str, shape: Sequence[int]) -> str:
    """Such as "float[16x8]"."""
    return f"{dtype}[{'x'.join(map(str, shape))}]"


def _ipus(report: Report) -> Table:
    kinds = [kind for kind in KINDS if kind != "sync"]  # an IPU counts it as exchange
    rows = []
    for i, ipu in enumerate(report.ipus):
        cycles = dict(zip(KINDS, ipu.by_kind, strict=True))
        times = [f"{cycles[kind]:.0f}" for kind in kinds]
        rows.append((str(i), *times, f"{ipu.idle_cycles:.0f}", str(ipu.fullest_tile_bytes)))
    heads = ["exchange+sync" if kind == "exchange" else kind for kind in kinds]
    return ("IPU", *heads, "idle", "tile bytes"), rows


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines with columns of equal width; text to the left, numbers to the right."""
    lines = [tuple(heads), *map(tuple, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 or heads[i] == CALLERS else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
