"""Facts about a value of a random program, and how it may be used."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

FLOATS = ("float32", "float16", "bfloat16")
SIGNED = ("int32", "int16", "int8")
UNSIGNED = ("uint32", "uint16", "uint8")
INTEGERS = SIGNED + UNSIGNED
DTYPES = (*FLOATS, *INTEGERS, "bool")

#: Whole numbers up to here are exact, with a little left for a carry.
EXACT_LIMIT = {"float32": 2.0**23, "float16": 2.0**10, "bfloat16": 2.0**7}
EPSILON = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
#: Values are kept in here between ops, so that a few ops stay within the limit.
TAME = {"float32": 512.0, "float16": 16.0, "bfloat16": 4.0}


@dataclass(frozen=True)
class Node:
    """One value. The bounds hold for its finite elements; `error` is what oracles may differ by.

    Attributes:
        step: all elements are whole multiples of it (floats only).
        special: whether NaN and infinities may occur.
    """

    value: Any
    low: float = 0.0
    high: float = 0.0
    step: float = 1.0
    error: float = 0.0
    special: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def dtype(self) -> str:
        return str(self.value.dtype)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGERS

    @property
    def is_bool(self) -> bool:
        return self.dtype == "bool"

    @property
    def exact(self) -> bool:
        return self.error == 0.0

    @property
    def bound(self) -> float:
        return max(abs(self.low), abs(self.high))

    def like(self, value: Any) -> Node:
        """The same facts about elements that come from this value."""
        return replace(self, value=value)

    def with_zero(self, value: Any) -> Node:
        """Elements of this value, or zeros."""
        return replace(self, value=value, low=min(self.low, 0.0), high=max(self.high, 0.0))


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def union(value: Any, *nodes: Node) -> Node:
    """Facts about elements each of which comes from one of `nodes`."""
    return Node(
        value,
        min(n.low for n in nodes),
        max(n.high for n in nodes),
        min(n.step for n in nodes),
        max(n.error for n in nodes),
        any(n.special for n in nodes),
    )


def computed(value: Any, low: float, high: float, step: float, error: float, special: bool) -> Node:
    """A float result: exact where it fits the mantissa, else with one more rounding."""
    dtype = str(value.dtype)
    bound = max(abs(low), abs(high))
    fits = error == 0.0 and step > 0 and bound / step <= EXACT_LIMIT[dtype] and step >= 2.0**-9
    if not fits:
        error += 2 * EPSILON[dtype] * bound
        step = 0.0
    return Node(value, low, high, step, error, special)


def whole(value: Any) -> Node:
    """An integer or bool result."""
    return Node(value)


def clamped(node: Node, low: float, high: float) -> Node:
    """The float value held within bounds; exact where it was. NaN stays NaN."""
    if node.low >= low and node.high <= high and not node.special:
        return node
    dtype = node.value.dtype
    value = lax.clamp(jnp.asarray(low, dtype), node.value, jnp.asarray(high, dtype))
    step = node.step
    # The bounds are new elements, and must be multiples of the step too.
    while step and (low % step or high % step):
        step /= 2
    inside = (min(max(node.low, low), high), max(min(node.high, high), low))
    if node.special:
        inside = (min(inside[0], low), max(inside[1], high))
    return replace(node, value=value, low=inside[0], high=inside[1], step=step)


def tame(node: Node) -> Node:
    """The value, small enough that a few more ops stay exact."""
    if not node.is_float:
        return node
    limit = TAME[node.dtype]
    node = clamped(node, -limit, limit)
    if node.exact and node.step < 2.0**-3:
        node = replace(node, value=lax.floor(node.value), low=math.floor(node.low), step=1.0)
    return node


def on_grid(node: Node, limit: float = 8.0) -> Node:
    """An exact finite float value as whole numbers from -limit to limit."""
    assert node.exact
    node = finite(clamped(node, -limit, limit))
    if node.step < 1.0:
        node = replace(node, value=lax.floor(node.value), low=math.floor(node.low), step=1.0)
    return node


def finite(node: Node) -> Node:
    """The float value without NaN and infinities."""
    if not node.special:
        return node
    zeros = jnp.zeros_like(node.value)
    kept = lax.select(lax.is_finite(node.value), node.value, zeros)
    return replace(node.with_zero(kept), special=False)
