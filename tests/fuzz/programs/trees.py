"""How several values travel together: alone, as a tuple, as a dict, or none at all."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fuzz.programs.writer import Writer


def kind_for(w: Writer, count: int) -> str:
    if count == 0:
        return "none"
    if count == 1 and w.chance(0.7):
        return "single"
    return w.choice(("tuple", "tuple", "dict"))


def packed(kind: str, items: Sequence[str]) -> str:
    if kind == "none":
        return "None"
    if kind == "single":
        return items[0]
    if kind == "tuple":
        return f"({', '.join(items)},)" if len(items) == 1 else f"({', '.join(items)})"
    return "{" + ", ".join(f'"k{k}": {item}' for k, item in enumerate(items)) + "}"


def target(w: Writer, kind: str, names: Sequence[str]) -> tuple[str, list[str]]:
    """What to assign a packed value to, and the lines after it that name its items."""
    if kind in ("none", "dict"):
        name = w.fresh("t")
        return name, [f'{item} = {name}["k{k}"]' for k, item in enumerate(names)]
    return packed(kind, names), []
