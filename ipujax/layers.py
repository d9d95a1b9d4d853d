"""The layer of an op: the named scopes of the name that JAX gave it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

_TRANSFORMATION = re.compile(r"^(?:jit|pjit|jvp|vjp|transpose|vmap|checkpoint|remat)\((.*)\)$")
#: Parts of names that JAX adds for its own control flow.
_CONTROL = frozenset(
    {"while", "body", "cond", "scan", "closed_call", "rematted_computation", "checkpoint"}
)


@lru_cache(maxsize=1 << 14)
def layer_of(name: str) -> tuple[str, str]:
    """The layer and the op of a name that JAX gave.

    Example:
        >>> layer_of("jit(f)/transpose(jvp(layer1))/attention/dot_general")
        ('layer1/attention', 'dot_general')
    """
    parts = _split(name)
    scopes = []
    for index, part in enumerate(parts[:-1]):
        while wrapped := _TRANSFORMATION.match(part):
            if part.startswith(("jit(", "pjit(")) and index == 0:
                part = ""
                break
            part = wrapped[1]
        if part and part not in _CONTROL:
            scopes.append(part)
    return "/".join(scopes), parts[-1].rstrip(":") if parts else ""


def is_backward(name: str) -> bool:
    """Whether an op is of a derivative's backward pass."""
    return any(part.startswith("transpose(") for part in _split(name)[:-1])


def named_layer(layer: str, patterns: Iterable[str]) -> str:
    """The outermost part of a layer's path that a pattern matches; empty where none does.

    Example:
        >>> named_layer("decoder/layer1/attention", ["*/layer*"])
        'decoder/layer1'
    """
    parts = layer.split("/")
    prefixes = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return next((p for p in prefixes if any(fnmatchcase(p, each) for each in patterns)), "")


def _split(name: str) -> list[str]:
    """At slashes outside of parentheses."""
    parts, depth, begin = [], 0, 0
    for i, character in enumerate(name):
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0:
            parts.append(name[begin:i])
            begin = i + 1
    return [*parts, name[begin:]]
