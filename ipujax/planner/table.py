"""A plan as a table for people."""

from __future__ import annotations

from ipujax.planner.intervals import Schedule
from ipujax.planner.plan_file import PlanData

HEAD = ("stage", "IPU", "parts", "cycles of a slot", "bytes of a tile", "bytes that cross")


def table(data: PlanData) -> str:
    """One row for each stage. Bytes of a tile are those of the fullest one."""
    count = len(data.device_mapping)
    rows = [HEAD, *(_row(data, index) for index in range(count))]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    ipus = len(set(data.device_mapping))
    title = (
        f"{data.function}: {count} stages on {ipus} IPUs, {data.micro_batches} micro-batches, "
        f"schedule {data.schedule!r}, priority {data.priority!r}"
    )
    return "\n".join([title, *lines, *(f"- {note}" for note in data.notes)])


def _row(data: PlanData, index: int) -> tuple[str, ...]:
    own = [name for name, place in data.parts.items() if place == index]
    costs = [data.costs.get(name, {}) for name in own]
    training = data.reduction is not None
    schedule = Schedule(data.schedule, data.micro_batches, training)
    depth = schedule.depth(index, len(data.device_mapping))

    def total(key: str) -> float:
        return sum(cost.get(key, 0.0) for cost in costs)

    cycles = total("cycles") + total("fifo cycles") * (depth > 0)
    kept = total("tile bytes") + depth * total("stash bytes of a tile")
    temporary = max((cost.get("temporary bytes of a tile", 0.0) for cost in costs), default=0.0)
    parts = ", ".join(own) if len(own) < 4 else f"{own[0]}, {own[1]} ... {own[-1]} ({len(own)})"
    crossing = costs[-1].get("bytes to the next", 0.0) if costs else 0.0
    return (
        str(index),
        str(data.device_mapping[index]),
        parts,
        f"{cycles:,.0f}",
        f"{kept + temporary:,.0f}",
        f"{crossing:,.0f}",
    )
