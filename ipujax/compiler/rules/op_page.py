"""The tables of docs/ops.md: how each op is treated, and what popx is on hardware."""

from __future__ import annotations

from ipujax.compiler.old_ops import DYNAMIC
from ipujax.compiler.rules.library_calls import HARDWARE, NOT_YET, calls_of
from ipujax.compiler.rules.registry import READ_AWAY, REFUSED, REWRITTEN, RULES, SPLIT_AWAY


def op_table() -> str:
    """Every op of the dialect: its rule and the library functions it calls, or why it has none."""
    lines = ["| op | lowered by | functions |", "|---|---|---|"]
    for name in sorted({*RULES, *REFUSED, *READ_AWAY, *SPLIT_AWAY, *REWRITTEN}):
        if name in RULES:
            module = RULES[name].__module__.rpartition(".")[2]
            functions = ", ".join(map(_shown, calls_of(RULES[name]))) or "views and programs"
            lines.append(f"| `{name}` | rules/{module}.py | {functions} |")
        else:
            lines.append(f"| `{name}` | {_treatment(name)} | |")
    return "\n".join(lines) + "\n"


def _treatment(name: str) -> str:
    """What happens to an op that has no rule."""
    if name in REFUSED:
        return f"refused: {REFUSED[name]}"
    if name in SPLIT_AWAY:
        return "passes/complex.py: complex numbers become two real ones"
    if name in REWRITTEN:
        where = " where its shapes are constants" if name in DYNAMIC else ""
        return f"the reader: becomes {REWRITTEN[name]}{where}"
    return "the reader: it leaves no op"


def popx_table() -> str:
    """Each function of popx: the public calls it is on hardware, or that it is none yet."""
    lines = ["| function | on hardware |", "|---|---|"]
    for name, calls in HARDWARE.items():
        shown = NOT_YET if calls == NOT_YET else "composed of " + ", ".join(map(_shown, calls))
        lines.append(f"| {_shown('popx.' + name)} | {shown} |")
    return "\n".join(lines) + "\n"


def _shown(function: str) -> str:
    return f"`{function.replace('.', '::')}`"
