"""Two reports side by side, as one self-contained page."""

from __future__ import annotations

from typing import Any

from ipujax.reporting.compare import Comparison, relative
from ipujax.reporting.drawing import Section, check_library, header, render
from ipujax.types import Grouping


def comparison_page(comparison: Comparison) -> str:
    """HTML that opens without a network.

    Raises:
        ReportError: the drawing library is missing.
    """
    check_library()
    sections = [
        Section("Whole program", "Figures of both reports.", _totals(comparison)),
        *(
            Section(
                f"Time by {grouping}",
                "Cycles of a run; the greatest changes first.",
                _changes(comparison, grouping),
            )
            for grouping in comparison.groupings
        ),
    ]
    before, after = comparison.before, comparison.after
    heads = header(before, f"before: {before.name}") + header(after, f"after: {after.name}")
    return render(f"{before.name} and {after.name}: ipujax reports", heads, sections)


def _totals(comparison: Comparison) -> Any:
    from bokeh.models import ColumnDataSource

    from ipujax.reporting.tables import data_table

    names, before, after = zip(*comparison.totals(), strict=True)
    changes = [relative(a, b) for a, b in zip(before, after, strict=True)]
    source = ColumnDataSource({"name": names, "before": before, "after": after, "change": changes})
    return data_table(source, _columns("figure"), 320)


def _changes(comparison: Comparison, grouping: Grouping) -> Any:
    from bokeh.models import ColumnDataSource

    from ipujax.reporting.tables import LISTED, data_table

    changes = comparison.by(grouping)[:LISTED]
    source = ColumnDataSource(
        {
            "name": [change.name or f"(no {grouping})" for change in changes],
            "before": [change.before for change in changes],
            "after": [change.after for change in changes],
            "difference": [change.difference for change in changes],
            "change": [relative(change.before, change.after) for change in changes],
        }
    )
    columns = _columns(grouping)
    columns.insert(3, ("difference", "difference", "number", 120))
    return data_table(source, columns, 280)


def _columns(head: str) -> list[tuple[str, str, str, int]]:
    return [
        ("name", head, "text", 500),
        ("before", "before", "number", 120),
        ("after", "after", "number", 120),
        ("change", "change", "text", 90),
    ]
