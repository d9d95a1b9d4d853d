"""The tables of docs/ops.md: how each op is treated, and what popx becomes on hardware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ipujax.compiler.ir.traits import TRAITS
from ipujax.compiler.rules.library_calls import HARDWARE, calls_of
from ipujax.compiler.rules.registry import RULES


class OpRow(NamedTuple):
    """How an op is treated."""

    name: str
    how: str  #: the file of its rule, or why it has none
    functions: str  #: of Poplar's libraries that the rule can call
    where: str  #: what several devices do; empty for an op that is refused


def op_rows() -> Iterator[OpRow]:
    """Every op, by name."""
    for name, row in sorted(TRAITS.items()):
        how = f"refused: {row.refused}" if row.refused else row.removed
        functions = ""
        if name in RULES:
            how = f"rules/{RULES[name].__module__.rpartition('.')[2]}.py"
            functions = ", ".join(map(_shown, calls_of(RULES[name]))) or "views and programs"
        where = f"whole: {row.replicated}" if row.replicated else "in blocks"
        yield OpRow(name, how, functions, "" if row.refused else where)


def op_table() -> str:
    """The ops as a table of Markdown."""
    lines = ["| op | lowered by | functions | over several devices |", "|---|---|---|---|"]
    for row in op_rows():
        lines.append(f"| `{row.name}` | {row.how} | {row.functions} | {row.where} |")
    return "\n".join(lines) + "\n"


def popx_table() -> str:
    """Each function of popx, with the calls and codelets it is composed of on hardware."""
    lines = ["| function | on hardware |", "|---|---|"]
    for name, calls in HARDWARE.items():
        if isinstance(calls, str):
            shown = calls
        else:
            shown = "composed of " + ", ".join(map(_shown, calls)) if calls else "does nothing"
        lines.append(f"| {_shown('popx.' + name)} | {shown} |")
    return "\n".join(lines) + "\n"


def _shown(function: str) -> str:
    if function.startswith("codelets/"):
        return f"`{function}`"
    return f"`{function.replace('.', '::')}`"
