"""Writes reports to files, whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ipujax.errors import ConfigError, ReportError
from ipujax.host.new_files import replacing

if TYPE_CHECKING:
    from ipujax.reporting.model import Report


def save(report: Report, path: str | Path) -> None:
    """Writes a report in the format given by the file's suffix."""
    name = str(path)
    for suffix, write in _WRITERS.items():
        if name.endswith(suffix):
            return write_whole(path, write(report))
    raise ConfigError(
        f"[report.save] needs a file name that ends in {', '.join(_WRITERS)}; got {name!r}. "
        "Use one of them."
    )


def write_whole(path: str | Path, text: str) -> None:
    """Replaces a file atomically, so that no reader sees half of it.

    Raises:
        ReportError: the file cannot be written.
    """
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise ReportError(
            f"[report.save] needs a file that it can write; got {error} for {str(path)!r}. "
            "Free some space, or pass another path."
        ) from None


def _page(report: Report) -> str:
    from ipujax.reporting.page import page

    return page(report)


def _document(report: Report) -> str:
    from ipujax.reporting.document import write

    return write(report)


def _trace(report: Report) -> str:
    from ipujax.reporting.trace import trace

    return trace(report)


#: The longer suffix first.
_WRITERS: dict[str, Callable[[Report], str]] = {
    ".trace.json": _trace,
    ".json": _document,
    ".html": _page,
}
