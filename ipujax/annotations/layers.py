"""The layer of an op: the named scopes in the name that JAX gave it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

_TRANSFORMATION = re.compile(r"^(?:jit|pjit|jvp|vjp|transpose|vmap|checkpoint|remat)\((.*)\)$")
#: Parts of names that JAX adds for its own control flow.
_CONTROL = re.compile(
    r"while|body|body_pred|cond|branch_\d+_fun|scan|closed_call|rematted_computation|checkpoint"
)
#: The scope of an einsum, which JAX names after its equation.
_EQUATION = re.compile(r"[\w.,\s]*->[\w.\s]*")
_JITTED = re.compile(r"p?jit\((.*)\)")


@lru_cache(maxsize=1 << 14)
def layer_of(name: str) -> tuple[str, str]:
    """The layer and the op of a name that JAX gave.

    Example:
        >>> layer_of("jit(f)/transpose(jvp(layer1))/attention/dot_general")
        ('layer1/attention', 'dot_general')
    """
    parts = _split(name)
    return "/".join(scopes_of(name)), parts[-1].rstrip(":") if parts else ""


def scopes_of(name: str, functions: Collection[str] | None = None) -> list[str]:
    """The named scopes of a name, without those that JAX adds.

    Args:
        name: as JAX gives it.
        functions: those that were running when the op was traced. Functions that were jitted inside
            of the program count as scopes if they are among them: JAX's own, such as `jit(relu)`,
            are not. By default all count.
    """
    scopes = []
    for index, part in enumerate(_split(name)[:-1]):
        while wrapped := _TRANSFORMATION.match(part):
            jitted = _JITTED.fullmatch(part)
            if jitted and (index == 0 or (functions is not None and jitted[1] not in functions)):
                part = ""
                break
            part = wrapped[1]
        if part and not (_CONTROL.fullmatch(part) or _EQUATION.fullmatch(part)):
            scopes.append(part)
    return scopes


def direction_of(name: str) -> str:
    """ "forward" or "backward" for ops of a derivative; empty for others."""
    if is_backward(name):
        return "backward"
    return "forward" if "jvp(" in name else ""


def is_backward(name: str) -> bool:
    """Whether an op is of a derivative's backward pass."""
    return any(part.startswith("transpose(") for part in _split(name)[:-1])


def named_layer(layer: str, patterns: Iterable[str]) -> str:
    """The outermost part of a layer's path that a pattern matches; empty if none does.

    Example:
        >>> named_layer("decoder/layer1/attention", ["*/layer*"])
        'decoder/layer1'
    """
    parts = layer.split("/")
    prefixes = ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
    return next((p for p in prefixes if any(matches(p, each) for each in patterns)), "")


def matches(layer: str, pattern: str) -> bool:
    """Whether a pattern, as for file names, matches this layer; brackets also match themselves.

    Example:
        >>> matches("Model/layers[1]", "Model/layers[*]"), matches("layer1", "layer[0-2]")
        (True, True)
    """
    return fnmatchcase(layer, pattern) or fnmatchcase(layer, pattern.replace("[", "[[]"))


def _split(name: str) -> list[str]:
    """Splits at slashes outside parentheses."""
    parts, depth, begin = [], 0, 0
    for i, character in enumerate(name):
        depth += (character == "(") - (character == ")")
        if character == "/" and depth == 0:
            parts.append(name[begin:i])
            begin = i + 1
    return [*parts, name[begin:]]
