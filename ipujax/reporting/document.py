"""Reports as JSON. Reading one checks it completely: types, ranges and references."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from ipujax.errors import ReportError
from ipujax.host.file_reading import MOST_JSON_BYTES, content_of, json_of
from ipujax.reporting.model import KINDS, Report

SCHEMA = "ipujax report 7"
#: Largest number that a report may have; sums of such numbers stay finite.
LARGEST = 1e24


def write(report: Report) -> str:
    """The report as JSON; lists of objects are tables, which take much less space."""
    return json.dumps({"schema": SCHEMA, "report": _encode(report)}, separators=(",", ":"))


def load_report(path: str | Path) -> Report:
    """Reads a report that `report.save("....json")` wrote.

    Args:
        path: path of the file.
    Returns:
        An equal report.
    Raises:
        ReportError: the file cannot be read, or is not a report of this version of ipujax.

    Example:
        >>> found = ipu.report(jnp.tanh, jax.ShapeDtypeStruct((64, 64), jnp.float32))
        >>> found.save("tanh.json")
        >>> ipu.load_report("tanh.json") == found
        True
    """
    where = Path(path)
    try:
        document = json_of(content_of(where, MOST_JSON_BYTES))
    except (OSError, ValueError) as error:
        raise ReportError(
            f"[load_report] needs a readable JSON file; got {error} for {str(where)!r}. "
            "Save the report again."
        ) from None
    try:
        return read(document)
    except _MalformedError as error:
        raise ReportError(
            f"[load_report] needs a report that this version of ipujax saved; got {error} in "
            f"{str(where)!r}. Save the report again."
        ) from None


class _MalformedError(Exception):
    """What is wrong with a document."""


def read(document: Any) -> Report:
    """A report from parsed JSON."""
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise _MalformedError(f"no schema {SCHEMA!r}")
    report: Report = _decode(Report, document.get("report"), "report")
    _check(report)
    return report


def _encode(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {f.name: _encode(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if not isinstance(value, tuple):
        return value
    if not value or not dataclasses.is_dataclass(value[0]):
        return value
    names = [f.name for f in dataclasses.fields(value[0])]
    return {"fields": names, "rows": [[_encode(getattr(v, n)) for n in names] for v in value]}


@cache
def _hints(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _decode(hint: Any, value: Any, where: str) -> Any:
    if dataclasses.is_dataclass(hint):
        assert isinstance(hint, type)
        if not isinstance(value, dict) or set(value) != set(_hints(hint)):
            raise _MalformedError(f"other fields in {where}")
        return hint(**{n: _decode(h, value[n], n) for n, h in _hints(hint).items()})
    if get_origin(hint) is tuple:
        return _decode_tuple(get_args(hint)[0], value, where)
    if hint is float and type(value) in (int, float):
        if not (math.isfinite(value) and 0 <= value <= LARGEST):
            raise _MalformedError(f"a number out of range in {where}")
        return float(value)
    if type(value) is not hint or (hint is int and not 0 <= value <= LARGEST):
        raise _MalformedError(
            f"no {hint.__name__} from 0 to {LARGEST:g} in {where}"
            if hint is int
            else f"no {hint.__name__} in {where}"
        )
    return value


def _decode_tuple(item: Any, value: Any, where: str) -> tuple[Any, ...]:
    if not dataclasses.is_dataclass(item):
        if not isinstance(value, list):
            raise _MalformedError(f"no list in {where}")
        return tuple(_decode(item, each, where) for each in value)
    if value == []:
        return ()
    assert isinstance(item, type)
    hints = _hints(item)
    if not isinstance(value, dict) or value.get("fields") != list(hints):
        raise _MalformedError(f"other fields in {where}")
    rows = value.get("rows")
    if not isinstance(rows, list):
        raise _MalformedError(f"no rows in {where}")
    made = []
    for row in rows:
        if not isinstance(row, list) or len(row) != len(hints):
            raise _MalformedError(f"a row of another length in {where}")
        pairs = zip(hints.items(), row, strict=True)
        made.append(item(**{n: _decode(h, v, f"{where}.{n}") for (n, h), v in pairs}))
    return tuple(made)


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _check(report: Report) -> None:
    """Checks references and sizes."""
    nodes, ipus = len(report.nodes), len(report.ipus)

    def need(good: bool, what: str) -> None:
        if not good:
            raise _MalformedError(what)

    need(ipus > 0, "no IPU")
    need(report.num_replicas > 0, "no replica")
    need(report.date == "" or _is_date(report.date), "no date")
    need(report.tile_capacity_bytes > 0, "no tile memory")
    for i, node in enumerate(report.nodes):
        need(all(i < child < nodes for child in node.children), "a child before its parent")
    for step in report.steps:
        need(step.node < nodes, "a step at no node")
        need(step.kind in KINDS, "a step of an unknown kind")
        need(all(i < ipus for i in step.ipus), "a step on no IPU")
    for piece in report.slices:
        need(piece.node < nodes and len(piece.by_kind) == len(KINDS), "a malformed slice")
        need(all(i < ipus for i in piece.ipus), "a slice on no IPU")
    for point in report.live:
        need(point.node < nodes, "a live point at no node")
    for tensor in report.tensors:
        need(tensor.category in report.categories, "a tensor of an unknown category")
        need(all(i < ipus for i in tensor.ipus_at_peak), "a tensor on no IPU")
    for ipu in report.ipus:
        need(len(ipu.by_kind) == len(KINDS), "an IPU with other kinds of time")
        need(len(ipu.tile_bytes) == len(report.categories), "an IPU with other categories")
        sizes = {len(tiles) for tiles in ipu.tile_bytes}
        need(len(sizes) == 1 and ipu.fullest_tile < min(sizes), "an IPU without its fullest tile")
