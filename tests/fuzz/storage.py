"""Complex numbers, and dtypes that are stored narrow and computed wider."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from tests.fuzz.generator import Generator, NotApplicableError, step
from tests.fuzz.values import Node, finite, on_grid, whole


def part(g: Generator) -> Node:
    """Small whole numbers in float32: of two of them, products of complex numbers are exact."""
    a = g.pick(lambda n: n.is_float and n.exact and n.size <= 300)
    a = on_grid(finite(a), 4)
    return Node(a.value.astype(np.float32), a.low, a.high)


@step(1.5)
def complex_numbers(g: Generator) -> Sequence[Node]:
    """A few ops on complex numbers; their real and imaginary parts are the results."""
    a = part(g)
    b = g.constant(a.shape, "float32")
    x, bound = lax.complex(a.value, b.value), 8.0
    for _ in range(g.integer(1, 3)):
        kind = g.choice(("add", "mul", "conj", "neg", "move", "select", "sum", "eq"))
        y = lax.complex(g.constant(x.shape, "float32").value, g.constant((), "float32").value)
        if kind == "add":
            x, bound = x + y, bound + 8
        elif kind == "mul":
            x, bound = x * y, 16 * bound
        elif kind == "conj":
            x = jnp.conj(x)
        elif kind == "neg":
            x = -x
        elif kind == "move" and x.ndim:
            x = jnp.flip(jnp.moveaxis(x, 0, -1), 0)
        elif kind == "select":
            x, bound = jnp.where(g.constant(x.shape, "bool").value, x, y), max(bound, 8)
        elif kind == "sum" and x.ndim:
            x, bound = x.sum(g.integer(0, x.ndim - 1)), bound * max(1, x.size)
        elif kind == "eq":
            x, bound = jnp.where(x == y, y, x), max(bound, 8)
        if bound > 1e5:
            break
    return [Node(lax.real(x), -bound, bound), Node(lax.imag(x), -bound, bound)]


@step(1)
def stored_narrow(g: Generator) -> Sequence[Node]:
    """To a narrow dtype and back, around an op that moves elements."""
    a = g.pick(lambda n: (n.is_integer or (n.is_float and n.exact)) and n.size <= 300)
    if a.is_float:
        kind = g.choice((ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))
        a = on_grid(finite(a), 4)
        back = a.value.dtype
    elif a.dtype in ("int8", "int16", "int32"):
        kind, back = ml_dtypes.int4, a.value.dtype
        a = a.like(lax.clamp(back.type(-8), a.value, back.type(7)))
    else:
        kind, back = ml_dtypes.uint4, a.value.dtype
        a = a.like(lax.min(a.value, jnp.asarray(15, back)))
    x = a.value.astype(kind)
    if x.ndim == 0:
        raise NotApplicableError
    axis = g.integer(0, x.ndim - 1)
    x = g.choice(
        (
            lambda: jnp.flip(x, axis),
            lambda: jnp.concatenate([x, x], axis),
            lambda: jnp.moveaxis(x, axis, 0),
            lambda: x.reshape(-1),
            lambda: jnp.repeat(x, 2, axis),
        )
    )()
    value = x.astype(back)
    return [a.like(value) if a.is_float else whole(value)]
