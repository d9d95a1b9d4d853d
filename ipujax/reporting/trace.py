"""A report as a trace in the Trace Event Format, for Perfetto and chrome://tracing."""

from __future__ import annotations

import json
from typing import Any

from ipujax.reporting.model import KINDS, Report, Slice

#: Iterations of a loop that a trace shows.
SHOWN_ITERATIONS = 1


def trace(report: Report) -> str:
    """One process for the device, one thread for each IPU, times on the model's clock.

    Only the first iteration of a loop is shown, within a slice as long as the whole loop; `args`
    has the number of iterations.
    """
    events: list[dict[str, Any]] = [_meta("process_name", 0, f"{report.name} on ipu:0")]
    events += [_meta("thread_name", i, f"IPU {i}") for i in range(len(report.ipus))]
    steps = {step.node: step for step in report.steps}
    for piece in report.slices:
        step = steps.get(piece.node)
        if step is None:
            node = report.nodes[piece.node]
            args: dict[str, Any] = {
                "iterations": node.count,
                "iterations_shown": min(SHOWN_ITERATIONS, node.count),
            }
            events += _events(report, piece, f"{node.kind} x {node.count}", "loop", args)
        else:
            cycles = dict(zip(KINDS, piece.by_kind, strict=True))
            args = {
                "name": step.name,
                "line": step.source,
                "layer": step.scope,
                "stack": " < ".join(step.stack),
                "kernel": step.kernel,
                "operands": step.operands,
                "times": piece.times,
                **{f"{kind} cycles": value for kind, value in cycles.items() if value},
            }
            events += _events(report, piece, step.op, step.kind, args)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}, separators=(",", ":"))


def _meta(name: str, thread: int, value: str) -> dict[str, Any]:
    return {"ph": "M", "pid": 0, "tid": thread, "name": name, "args": {"name": value}}


def _events(
    report: Report, piece: Slice, name: str, category: str, args: Any
) -> list[dict[str, Any]]:
    microsecond = (report.clock_hz or 1e6) / 1e6
    return [
        {
            "ph": "X",
            "pid": 0,
            "tid": ipu,
            "name": name,
            "cat": category,
            "ts": piece.begin / microsecond,
            "dur": piece.cycles / microsecond,
            "args": args,
        }
        for ipu in piece.ipus
    ]
