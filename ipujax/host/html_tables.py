"""HTML tables, which notebooks show instead of text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

_HEAD = '<th style="text-align:{}">{}</th>'
_CELL = '<td style="text-align:{}">{}</td>'


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column to the left, others to the right, as in text."""
    lines = "".join(f"<tr>{_cells(_CELL, row)}</tr>" for row in rows)
    return f"<table><thead><tr>{_cells(_HEAD, heads)}</tr></thead><tbody>{lines}</tbody></table>"


def paragraphs(lines: Iterable[str]) -> str:
    """A paragraph for each line."""
    return "".join(f"<p>{html.escape(line)}</p>" for line in lines)


def _cells(form: str, cells: Sequence[str]) -> str:
    return "".join(
        form.format("left" if i == 0 else "right", html.escape(cell))
        for i, cell in enumerate(cells)
    )
