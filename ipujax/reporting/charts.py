"""The charts of a report: time of each IPU, memory of each tile, liveness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ipujax.reporting.drawing import COLOURS, PALETTE, legend_beside, plot, template
from ipujax.reporting.model import KINDS, LivePoint, Report
from ipujax.reporting.timeline import LARGEST_SYSTEM, blocks

POINTS = 2000  #: of a curve
LARGEST_CHOICE = 16  #: IPUs whose tiles are in a page
#: Bokeh substitutes fields in a tooltip's values, not in its labels.
TILE_TIPS = [("tile", "@tile"), ("category", "$name"), ("bytes", "@$name{0,0}")]


def timeline(report: Report) -> Any:
    """What each IPU does at which time."""
    from bokeh.models import HoverTool

    ipus = min(len(report.ipus), LARGEST_SYSTEM)
    chart = plot(
        "", 90 + 34 * max(ipus, 2), "cycles", "IPU", y_range=(ipus - 0.4, -0.6), name="timeline"
    )
    chart.quad(
        [0] * ipus,
        [report.cycles] * ipus,
        [i + 0.4 for i in range(ipus)],
        [i - 0.4 for i in range(ipus)],
        color=COLOURS["idle"],
        legend_label="idle",
    )
    found = blocks(report)
    drawn = []
    for kind in (*KINDS, "further iterations"):
        mine = [block for block in found if block.kind == kind]
        if not mine:
            continue
        data = {
            "left": np.array([block.begin for block in mine]),
            "right": np.array([block.end for block in mine]),
            "top": np.array([block.ipu - 0.4 for block in mine]),
            "bottom": np.array([block.ipu + 0.4 for block in mine]),
            "label": [block.label for block in mine],
            "kind": [kind] * len(mine),
        }
        drawn.append(
            chart.quad(
                "left",
                "right",
                "top",
                "bottom",
                source=data,
                color=COLOURS[kind],
                line_width=0.3,
                legend_label=kind,
            )
        )
    tips = [("step", "@label"), ("kind", "@kind"), ("cycles", "@left{0,0} to @right{0,0}")]
    chart.add_tools(HoverTool(tooltips=tips, renderers=drawn))
    chart.yaxis.ticker = list(range(ipus))
    legend_beside(chart)
    chart.x_range.bounds = (0, max(report.cycles, 1))
    return chart


def _numbers(values: Sequence[int]) -> Any:
    """The values as 32-bit integers, which keep pages small, or as floats if one is larger."""
    return np.array(values, np.int32 if max(values, default=0) < 2**31 else np.float64)


def tiles(report: Report) -> Any:
    """Bytes of each tile by category, for the chosen IPU."""
    from bokeh.layouts import column
    from bokeh.models import ColumnDataSource, CustomJS, HoverTool, Select, Span

    order = sorted(range(len(report.ipus)), key=lambda i: -report.ipus[i].fullest_tile_bytes)
    shown = sorted(order[:LARGEST_CHOICE])
    data = {
        str(i): {
            name: _numbers(column_)
            for name, column_ in zip(report.categories, report.ipus[i].tile_bytes, strict=True)
        }
        for i in shown
    }
    first = str(report.fullest_ipu)
    count = len(report.ipus[0].tile_bytes[0])
    source = ColumnDataSource({"tile": np.arange(count, dtype=np.int32), **data[first]})
    chart = plot("", 300, "tile", "bytes", name="tiles")
    chart.vbar_stack(
        list(report.categories),
        x="tile",
        source=source,
        width=1,
        line_width=0,
        color=[PALETTE[i % len(PALETTE)] for i in range(len(report.categories))],
        legend_label=list(report.categories),
    )
    chart.add_layout(
        Span(
            location=report.tile_capacity_bytes,
            dimension="width",
            line_color="#b3261e",
            line_dash="dashed",
        )
    )
    chart.add_tools(HoverTool(tooltips=TILE_TIPS))
    legend_beside(chart)
    chart.y_range.start = 0
    if len(shown) == 1:
        return column(chart)
    choice = Select(title="IPU", value=first, options=[str(i) for i in shown], width=120)
    args = {
        "source": source,
        "ipus": {k: {n: v.tolist() for n, v in d.items()} for k, d in data.items()},
    }
    choice.js_on_change(
        "value", CustomJS(args={**args, "choice": choice}, code=template("tiles.js"))
    )
    return column(choice, chart)


def liveness(report: Report) -> Any:
    """Bytes that are live over the program; the fullest moment is marked."""
    from bokeh.models import ColumnDataSource, HoverTool

    points = binned(report.live)
    steps = {step.node: step for step in report.steps}
    labels = [
        f"{steps[p.node].op} {steps[p.node].source}" if p.node in steps else "" for _, p in points
    ]
    source = ColumnDataSource(
        {
            "position": np.array([i for i, _ in points], dtype=np.int32),
            "live": np.array([p.live_bytes for _, p in points], dtype=np.float64),
            "always": np.full(len(points), float(report.always_live_bytes)),
            "fullest": np.array([p.fullest_tile_bytes for _, p in points], dtype=np.float64),
            "label": labels,
        }
    )
    chart = plot("", 300, "step of the program", "bytes on all tiles", name="liveness")
    chart.varea_step(
        "position",
        0,
        "live",
        source=source,
        step_mode="after",
        alpha=0.8,
        color=PALETTE[4],
        legend_label="live",
    )
    chart.varea_step(
        "position",
        0,
        "always",
        source=source,
        step_mode="after",
        color=PALETTE[0],
        legend_label="always live",
    )
    line = chart.line("position", "live", source=source, color=PALETTE[0])
    if points:
        position, peak = max(points, key=lambda point: point[1].fullest_tile_bytes)
        chart.scatter(
            [position],
            [peak.live_bytes],
            size=11,
            color="#b3261e",
            legend_label="fullest tile is fullest",
            name="peak",
        )
    tips = [
        ("step", "@label"),
        ("live on all tiles", "@live{0,0} bytes"),
        ("fullest tile", "@fullest{0,0} bytes"),
    ]
    chart.add_tools(HoverTool(tooltips=tips, renderers=[line], mode="vline"))
    legend_beside(chart)
    chart.y_range.start = 0
    return chart


def binned(live: tuple[LivePoint, ...]) -> list[tuple[int, LivePoint]]:
    """At most `POINTS` of the points, with their positions: the fullest of each bin."""
    width = -(-len(live) // POINTS) or 1
    found = []
    for begin in range(0, len(live), width):
        places = range(begin, min(begin + width, len(live)))
        most = max(places, key=lambda i: (live[i].fullest_tile_bytes, live[i].live_bytes))
        found.append((most, live[most]))
    return found
