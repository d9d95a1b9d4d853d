"""Makes pages with Bokeh; its scripts are embedded in the file."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from ipujax.errors import ReportError
from ipujax.reporting.model import Report
from ipujax.reporting.summary import notes, origin

WIDTH = 1200  #: pixels
LEGEND_ROW = 24  #: pixels of one legend entry with its spacing
#: Colours that people with colour blindness can tell apart (Okabe and Ito), by kind of time.
COLOURS = {
    "compute": "#0072b2",
    "exchange": "#e69f00",
    "sync": "#cc79a7",
    "inter-IPU": "#d55e00",
    "host": "#009e73",
    "further iterations": "#b9c7d6",
    "idle": "#eeeef1",
}
PALETTE = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#d55e00",
    "#f0e442",
    "#777777",
    "#000000",
    "#8c6d31",
    "#6a3d9a",
    "#b2df8a",
    "#fb9a99",
    "#17becf",
)


@dataclass(frozen=True)
class Section:
    """A part of a page: what it shows and how to read it."""

    title: str
    text: str
    root: Any


def check_library() -> None:
    """Raises a ReportError that says what to install if Bokeh is missing."""
    try:
        import bokeh  # noqa: F401
    except ModuleNotFoundError as error:
        raise ReportError(
            f"[report.save] needs Bokeh to draw a page; got: {error}. Install it with: pip install "
            "'ipujax[report]', or save as .json."
        ) from None


def template(name: str) -> str:
    """The text of a file beside this one."""
    return (resources.files("ipujax.reporting") / "templates" / name).read_text(encoding="utf-8")


def render(title: str, header: str, sections: Sequence[Section]) -> str:
    """A page that needs no network."""
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    return str(
        file_html(
            [section.root for section in sections],
            INLINE,
            title,
            template=template("page.html"),
            template_variables={"header": header, "sections": sections},
            suppress_callback_warning=True,
        )
    )


def header(report: Report, title: str = "") -> str:
    """The verdict, and the figures of the whole program."""
    sign, verdict = ("good", "fits") if report.fits else ("bad", "does not fit")
    fullest = report.fullest_tile_bytes
    figures = [
        (f"{report.seconds:.4g} s", f"one run, {report.cycles:,.0f} cycles"),
        (f"{report.headroom:.1%}", "free on the fullest tile"),
        (f"{fullest:,} B", f"on the fullest tile, of {report.tile_capacity_bytes:,}"),
        (f"{len(report.ipus)}", f"IPUs in a replica; replicas: {report.num_replicas}"),
        (f"{len(report.steps):,}", "steps"),
    ]
    if report.num_replicas > 1:
        figures.append((f"{report.collective_share:.1%}", "of the steps' time in collectives"))
    cells = "".join(f"<div><b>{big}</b>{small}</div>" for big, small in figures)
    name = html.escape(title or report.name)
    return (
        f'<h1>{name} <span class="verdict {sign}">{verdict}</span></h1>'
        f'<div class="figures">{cells}</div>'
        + "".join(f"<p>{html.escape(note)}</p>" for note in (*origin(report), *notes(report)))
    )


def plot(title: str, height: int, x_label: str, y_label: str, **options: Any) -> Any:
    """A figure that zooms along x with the wheel."""
    from bokeh.plotting import figure

    made = figure(
        title=title,
        width=WIDTH,
        height=height,
        tools="xpan,xwheel_zoom,box_zoom,reset,save",
        active_scroll="xwheel_zoom",
        x_axis_label=x_label,
        y_axis_label=y_label,
        output_backend="canvas",
        **options,
    )
    made.toolbar.logo = None
    whole_numbers(made.axis)
    return made


def whole_numbers(axes: Any) -> None:
    """Writes the numbers of axes as 20,000, not as 2.000e+4."""
    from bokeh.models import NumeralTickFormatter

    for axis in axes:
        axis.formatter = NumeralTickFormatter(format="0,0")


def legend_beside(chart: Any) -> None:
    """Moves the legend to the right of a chart, and makes the chart high enough for it."""
    legend = chart.legend[0]
    chart.add_layout(legend, "right")
    chart.height = max(chart.height, LEGEND_ROW * len(legend.items) + 60)
