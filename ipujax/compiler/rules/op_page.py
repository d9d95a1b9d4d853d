"""The tables of docs/ops.md: how each op is treated, and what popx becomes on hardware."""

from __future__ import annotations

from ipujax.compiler.ir.traits import TRAITS
from ipujax.compiler.rules.library_calls import HARDWARE, calls_of
from ipujax.compiler.rules.registry import RULES


def op_table() -> str:
    """Every op: its rule and the library functions it calls, and what several devices do."""
    lines = ["| op | lowered by | functions | over several devices |", "|---|---|---|---|"]
    for name, row in sorted(TRAITS.items()):
        how = f"refused: {row.refused}" if row.refused else row.removed
        functions = ""
        if name in RULES:
            how = f"rules/{RULES[name].__module__.rpartition('.')[2]}.py"
            functions = ", ".join(map(_shown, calls_of(RULES[name]))) or "views and programs"
        where = f"whole: {row.replicated}" if row.replicated else "in blocks"
        lines.append(f"| `{name}` | {how} | {functions} | {'' if row.refused else where} |")
    return "\n".join(lines) + "\n"


def popx_table() -> str:
    """Each function of popx: the calls and codelets that it is on hardware, if any."""
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
