"""Pytrees of dicts, lists and tuples as JSON."""

from __future__ import annotations

from typing import Any

from ipujax.errors import FeedError


def to_json(tree: Any) -> Any:
    """The structure, with a number for each leaf in JAX's order."""
    counter = iter(range(10**9))

    def walk(node: Any) -> Any:
        if type(node) is dict and all(isinstance(key, str) for key in node):
            return {"dict": {key: walk(node[key]) for key in sorted(node)}}
        if type(node) in (list, tuple):
            return {type(node).__name__: [walk(x) for x in node]}
        if node is None:
            return {"none": []}
        if hasattr(node, "shape") or isinstance(node, (bool, int, float, complex)):
            return next(counter)
        raise FeedError(
            "[export] needs dicts with names, lists and tuples of arrays; got "
            f"{type(node).__name__}. Convert it."
        )

    return walk(tree)


def from_json(structure: Any, leaves: list[Any]) -> Any:
    """The inverse. Raises ValueError, KeyError, IndexError or TypeError."""
    if type(structure) is int and structure >= 0:
        return leaves[structure]
    ((kind, held),) = structure.items()
    if kind == "dict":
        return {key: from_json(x, leaves) for key, x in held.items()}
    if kind not in ("list", "tuple", "none"):
        raise ValueError(f"{kind!r} is no structure")
    made = [from_json(x, leaves) for x in held]
    return None if kind == "none" else tuple(made) if kind == "tuple" else made
