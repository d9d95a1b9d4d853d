"""Tables that a click on a heading sorts and typed text filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ipujax.reporting.drawing import COLOURS, WIDTH, template, whole_numbers
from ipujax.reporting.model import ALWAYS_LIVE, KINDS, Group, Report, Tensor
from ipujax.reporting.summary import as_it_is, shape_of, slower

LISTED = 1000  #: rows of a table
DRAWN = 15  #: rows that have a bar
BAR_TIPS = [("name", "@name"), ("kind", "$name"), ("cycles", "@$name{0,0}")]

#: Text that is shown in full under the pointer.
_WHOLE = '<span title="<%- value %>"><%- value %></span>'
#: A name whose call stack is shown under the pointer.
_STACK = '<span title="<%- stack %>"><%- value %></span>'

Table = Mapping[str, Sequence[Any]]


def _formats() -> dict[str, Any]:
    from bokeh.models import HTMLTemplateFormatter, NumberFormatter, StringFormatter

    return {
        "text": StringFormatter(),
        "stack": HTMLTemplateFormatter(template=_STACK),
        "long": HTMLTemplateFormatter(template=_WHOLE),
        "number": NumberFormatter(format="0,0", text_align="right"),
        "percent": NumberFormatter(format="0.0%", text_align="right"),
    }


def data_table(source: Any, columns: Sequence[tuple[str, str, str, int]], height: int) -> Any:
    """A table of columns, each with its name, heading, format and width."""
    from bokeh.models import DataTable, TableColumn

    formats = _formats()
    shown = [
        TableColumn(field=name, title=head, formatter=formats[form], width=width)
        for name, head, form, width in columns
    ]
    return DataTable(
        source=source,
        columns=shown,
        width=WIDTH,
        height=height,
        index_position=None,
        reorderable=False,  # needs a library that Bokeh does not include
        sizing_mode="fixed",
    )


def _filtered(tables: Sequence[Table], source: Any, choice: Any = None, **more: Any) -> Any:
    """A box whose text filters the rows of `source`."""
    from bokeh.models import CustomJS, TextInput

    box = TextInput(placeholder="filter", width=320, name="filter")
    names = {"bars": None, "figure": None, "most": DRAWN, **more}
    callback = CustomJS(
        args={"tables": list(tables), "source": source, "choice": choice, "box": box, **names},
        code=template("filter.js"),
    )
    box.js_on_change("value_input", callback)
    if choice is not None:
        choice.js_on_change("active", callback)
    return box


def time_tables(report: Report) -> Any:
    """Time by line, layer and op: a chart of the longest, and a table of all."""
    from bokeh.layouts import column, row
    from bokeh.models import ColumnDataSource, RadioButtonGroup

    names = [*report.groupings, "module"]
    tables = [
        *(_times(report, name, report.by(name)) for name in report.groupings),
        _times(report, "module", report.modules()),
    ]
    source = ColumnDataSource(dict(tables[0]), name="times")
    bars = ColumnDataSource({name: values[:DRAWN] for name, values in tables[0].items()})
    bars.data["label"] = [f"{i + 1}. {name}" for i, name in enumerate(bars.data["name"])]
    figure = _bars(bars)
    choice = RadioButtonGroup(labels=[f"by {name}" for name in names], active=0, name="group")
    box = _filtered(tables, source, choice, bars=bars, figure=figure)
    columns = [
        ("name", "line, layer or op", "stack", 300),
        ("cycles", "cycles", "number", 90),
        ("share", "of all", "percent", 60),
        *((kind, kind, "number", 85) for kind in KINDS),
        ("bytes", "exchanged bytes", "number", 110),
        ("forward", "forward", "number", 85),
        ("backward", "backward", "number", 85),
        ("flops", "flops", "number", 110),
        ("utilisation", "utilisation", "percent", 75),
        ("steps", "steps", "number", 55),
    ]
    return column(row(choice, box), figure, data_table(source, columns, 320))


def _times(report: Report, grouping: str, groups: Sequence[Group]) -> Table:
    groups = groups[:LISTED]
    total = report.step_cycles or 1.0
    return {
        "name": [group.name or f"(no {grouping})" for group in groups],
        "cycles": [group.cycles for group in groups],
        "share": [group.cycles / total for group in groups],
        **{kind: [group.by_kind[i] for group in groups] for i, kind in enumerate(KINDS)},
        "forward": [group.forward_cycles for group in groups],
        "backward": [group.backward_cycles for group in groups],
        "stack": [_stack(group.stack) for group in groups],
        "bytes": [group.exchange_bytes for group in groups],
        "flops": [group.flops for group in groups],
        "utilisation": [group.utilisation for group in groups],
        "steps": [group.steps for group in groups],
    }


def _stack(frames: Sequence[str]) -> str:
    return "\n".join(frames)


def _bars(source: Any) -> Any:
    from bokeh.models import HoverTool
    from bokeh.plotting import figure

    made = figure(
        y_range=list(reversed(source.data["label"])),
        width=WIDTH,
        height=330,
        name="bars",
        x_axis_label="cycles",
        tools="xpan,xwheel_zoom,reset,save",
    )
    made.toolbar.logo = None
    made.hbar_stack(
        list(KINDS),
        y="label",
        source=source,
        height=0.8,
        color=[COLOURS[kind] for kind in KINDS],
        legend_label=list(KINDS),
    )
    made.add_tools(HoverTool(tooltips=BAR_TIPS))
    whole_numbers(made.xaxis)
    made.legend.location = "bottom_right"
    return made


def step_table(report: Report) -> Any:
    """The most expensive steps, with their operands and plans."""
    from bokeh.layouts import column
    from bokeh.models import ColumnDataSource

    steps = sorted(report.steps, key=lambda step: -step.total_cycles)[:LISTED]
    table: Table = {
        "name": [step.op for step in steps],
        "source": [step.source for step in steps],
        "stack": [_stack(step.stack) for step in steps],
        "scope": [step.scope for step in steps],
        "direction": [step.direction for step in steps],
        "operands": [step.operands for step in steps],
        "plan": [step.plan for step in steps],
        "cycles": [step.cycles for step in steps],
        "times": [step.times for step in steps],
        "total": [step.total_cycles for step in steps],
        "utilisation": [step.utilisation for step in steps],
        "temporary": [step.temporary_bytes for step in steps],
    }
    source = ColumnDataSource(table)
    columns = [
        ("name", "op", "text", 130),
        ("source", "line", "stack", 150),
        ("scope", "layer", "long", 130),
        ("direction", "direction", "text", 70),
        ("operands", "operands", "text", 230),
        ("plan", "plan", "text", 150),
        ("cycles", "cycles, once", "number", 85),
        ("times", "times", "number", 60),
        ("total", "cycles", "number", 85),
        ("utilisation", "utilisation", "percent", 75),
        ("temporary", "temporary bytes", "number", 100),
    ]
    return column(_filtered([table], source), data_table(source, columns, 320))


def part_table(report: Report) -> Any:
    """What the fullest tile holds when it is fullest; the rows add up."""
    from bokeh.models import ColumnDataSource

    parts = report.parts
    source = ColumnDataSource(
        {
            "part": [*parts, "all"],
            "bytes": [*parts.values(), report.fullest_tile_bytes],
            "always": ["always" if part in ALWAYS_LIVE else "" for part in (*parts, "all")],
        }
    )
    columns = [
        ("part", "for", "text", 240),
        ("bytes", "bytes", "number", 160),
        ("always", "live", "text", 120),
    ]
    return data_table(source, columns, 300)


def tensor_table(tensors: Sequence[Tensor], height: int = 320) -> Any:
    """Tensors, in the order given."""
    from bokeh.layouts import column
    from bokeh.models import ColumnDataSource

    shown = tensors[:LISTED]
    table: Table = {
        "name": [tensor.name or "(unnamed)" for tensor in shown],
        "source": [tensor.source for tensor in shown],
        "shape": [shape_of(tensor.dtype, tensor.shape) for tensor in shown],
        "category": [tensor.category for tensor in shown],
        "bytes": [tensor.bytes for tensor in shown],
        "peak": [tensor.peak_tile_bytes for tensor in shown],
        "always": ["always" if tensor.always_live else "" for tensor in shown],
        "ipus": [", ".join(map(str, tensor.ipus_at_peak)) for tensor in shown],
    }
    source = ColumnDataSource(table)
    columns = [
        ("name", "tensor", "text", 360),
        ("source", "line", "text", 170),
        ("shape", "shape", "text", 170),
        ("category", "for", "text", 110),
        ("bytes", "bytes", "number", 110),
        ("peak", "on the fullest tile", "number", 110),
        ("always", "live", "text", 60),
        ("ipus", "IPUs at the peak", "text", 110),
    ]
    return column(_filtered([table], source), data_table(source, columns, height))


def remedy_table(report: Report) -> Any:
    """Changes that were tried, the fastest that fits first."""
    from bokeh.models import ColumnDataSource

    before = as_it_is(report)
    shown = (before, *report.remedies)
    table: Table = {
        "text": [each.text for each in shown],
        "fits": ["fits" if each.fits else "does not fit" for each in shown],
        "bytes": [each.fullest_tile_bytes for each in shown],
        "cycles": [each.cycles for each in shown],
        "slower": [slower(before, each) for each in shown],
        "results": ["the same" if each.keeps_results else "change" for each in shown],
    }
    columns = [
        ("text", "change", "long", 590),
        ("fits", "verdict", "text", 100),
        ("bytes", "bytes of the fullest tile", "number", 160),
        ("cycles", "cycles", "number", 120),
        ("slower", "more time", "percent", 90),
        ("results", "results", "text", 90),
    ]
    return data_table(ColumnDataSource(table, name="remedies"), columns, 25 * len(shown) + 35)
