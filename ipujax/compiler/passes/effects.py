"""Which ops do something beside giving values: never dropped, shared, or put in another order."""

from __future__ import annotations

from ipujax.compiler.ir import Op

EFFECTS = frozenset({"custom_call", "infeed", "outfeed", "raise_if", "send", "recv", "rng"})


def has_effect(op: Op) -> bool:
    """Whether the op must run even if nobody uses its results."""
    if op.name in EFFECTS:
        return op.name != "custom_call" or bool(op.attrs.get("has_side_effect"))
    return any(has_effect(inner) for region in op.regions for inner in region.ops)
