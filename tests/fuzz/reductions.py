"""Reductions, windows, scans along an axis, and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.fuzz.generator import Generator, NotApplicableError, step
from tests.fuzz.values import Node, computed, on_grid, whole


def summed(value, a: Node, count: int) -> Node:
    """A sum of at most `count` elements of a."""
    low, high = count * min(a.low, 0.0), count * max(a.high, 0.0)
    node = computed(value, low, high, a.step, count * a.error, a.special)
    # One rounding for each addition, whatever their order.
    return node if node.exact else replace(node, error=node.error * max(1, count))


def axes_of(g: Generator, a: Node) -> list[int]:
    return g.subset(range(a.rank))


@step(3)
def reduce_float(g: Generator) -> Sequence[Node]:
    a = g.pick_float()
    axes = axes_of(g, a)
    kind = g.choice(("sum", "sum", "max", "min"))
    count = math.prod(a.shape[axis] for axis in axes)
    if kind == "sum":
        zero = jnp.zeros((), a.value.dtype)
        return [summed(lax.reduce(a.value, zero, lax.add, axes), a, count)]
    f = lax.max if kind == "max" else lax.min
    value = lax.reduce(a.value, start_of(f, a), f, axes)
    return [replace(a, value=value, special=a.special or count == 0)]


@step(2)
def reduce_whole(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: not n.is_float)
    axes = axes_of(g, a)
    fs = [lax.bitwise_or, lax.bitwise_and, lax.bitwise_xor, lax.max, lax.min]
    if a.is_integer:
        fs += [lax.add, lax.mul]
    f = g.choice(fs)
    return [whole(lax.reduce(a.value, start_of(f, a), f, axes))]


def start_of(f: Callable, a: Node) -> jnp.ndarray:
    """The start of a reduction: its identity, since it may be used any number of times."""
    kind = a.value.dtype
    if a.is_bool:
        return jnp.asarray(f in (lax.bitwise_and, lax.min))
    if f in (lax.max, lax.min):
        ends = (-np.inf, np.inf) if a.is_float else (np.iinfo(kind).min, np.iinfo(kind).max)
        return jnp.asarray(ends[0] if f is lax.max else ends[1], kind)
    number = {lax.add: 0, lax.mul: 1, lax.bitwise_xor: 0, lax.bitwise_or: 0, lax.bitwise_and: -1}[f]
    return jnp.asarray(np.asarray(number).astype(kind))


@step(1)
def reduce_jnp(g: Generator) -> Sequence[Node]:
    """Reductions as NumPy has them, with the identity as the start; empty ones too."""
    a = g.pick(lambda n: n.is_integer or (n.is_float and n.exact and not n.special))
    a = on_grid(a, 4) if a.is_float else a
    axes = tuple(axes_of(g, a))
    count = math.prod(a.shape[axis] for axis in axes)
    kind = g.choice(("sum", "any", "all", "count_nonzero", "max"))
    if kind == "max":
        if count == 0:
            raise NotApplicableError
        return [a.like(jnp.max(a.value, axes, keepdims=g.chance(0.5)))]
    if kind == "sum":
        value = jnp.sum(a.value, axes, keepdims=g.chance(0.5))
        return [summed(value, a, count) if a.is_float else whole(value)]
    return [whole(getattr(jnp, kind)(a.value, axes))]


@step(1.5)
def arg_reduce(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.exact and n.rank > 0 and 0 not in n.shape and not n.is_bool)
    axis = g.integer(0, a.rank - 1)
    f = g.choice((lax.argmax, lax.argmin))
    return [whole(f(a.value, axis, g.choice((np.int32, np.uint32))))]


@step(1)
def reduce_several(g: Generator) -> Sequence[Node]:
    """A body over two operands: the largest element and how often something was counted."""
    a = g.pick(lambda n: n.is_integer and n.rank > 0)
    counts = g.constant(a.shape, "int32")

    def body(x, y):
        return lax.max(x[0], y[0]), x[1] + y[1]

    start = (start_of(lax.max, a), np.int32(0))
    results = lax.reduce((a.value, counts.value), start, body, axes_of(g, a))
    return [whole(r) for r in results]


@step(1.5)
def cumulative(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0 and not n.is_bool)
    axis = g.integer(0, a.rank - 1)
    backwards = g.chance(0.5)
    if a.is_float:
        a = clamped_for_sum(g)
        axis = g.integer(0, a.rank - 1)
        f = g.choice((lax.cumsum, lax.cummax, lax.cummin))
        value = f(a.value, axis=axis, reverse=backwards)
        return [summed(value, a, a.shape[axis]) if f is lax.cumsum else a.like(value)]
    f = g.choice((lax.cumsum, lax.cummax, lax.cummin, lax.cumprod))
    return [whole(f(a.value, axis=axis, reverse=backwards))]


def clamped_for_sum(g: Generator) -> Node:
    """A float value with an axis, without infinities: partial sums may be grouped in any way."""
    a = g.pick_float(special=False)
    if a.rank == 0:
        raise NotApplicableError
    return a


@step(2)
def reduce_window(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: 0 < n.rank <= 4 and n.size <= 600)
    window = [g.integer(1, 3) for _ in a.shape]
    strides = [g.integer(1, 2) for _ in a.shape]
    padding = [(g.integer(0, 2), g.integer(0, 2)) for _ in a.shape]
    base = [g.choice((1, 1, 2)) for _ in a.shape]
    dilation = [g.choice((1, 1, 2)) for _ in a.shape]
    if a.is_bool:
        f = g.choice((lax.bitwise_or, lax.bitwise_and))
    else:
        f = g.choice((lax.add, lax.max, lax.min))
    if a.is_integer and g.chance(0.2):
        f = lax.mul
    if a.is_float and f is lax.add:
        a = clamped_for_sum(g)
        if a.rank != len(window):
            raise NotApplicableError
        zero = jnp.zeros((), a.value.dtype)
        value = lax.reduce_window(a.value, zero, f, window, strides, padding, base, dilation)
        return [summed(value, a, math.prod(window))]
    value = lax.reduce_window(a.value, start_of(f, a), f, window, strides, padding, base, dilation)
    return [replace(a, value=value, special=a.is_float)]


@step(1.5)
def sort(g: Generator) -> Sequence[Node]:
    """One to three operands, one or two of them keys."""
    a = g.pick(lambda n: n.rank > 0 and not n.is_bool)
    dimension = g.integer(0, a.rank - 1)
    if not a.exact:
        return [a.like(lax.sort(a.value, dimension=dimension))]
    others = [n for n in g.nodes if n.shape == a.shape and n.exact and not n.is_bool]
    others = others[: g.integer(0, 2)] + [g.constant(a.shape, "int32")][: g.integer(0, 1)]
    operands = [a, *others]
    num_keys = g.integer(1, min(2, len(operands)))
    results = lax.sort(
        [n.value for n in operands], dimension=dimension, is_stable=True, num_keys=num_keys
    )
    return [n.like(r) for n, r in zip(operands, results, strict=True)]


@step(1)
def top_k(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0 and n.shape[-1] > 0 and not n.is_bool and not n.special)
    if a.is_float and a.exact:
        # top_k distinguishes -0 from 0, and it is undefined which of them a sum gives.
        a = on_grid(a)
        a = a.like(a.value.astype(np.int32).astype(a.value.dtype))
    values, indices = lax.top_k(a.value, g.integer(1, a.shape[-1]))
    return [a.like(values), whole(indices)] if a.exact else [a.like(values)]


@step(0.7)
def select_and_scatter(g: Generator) -> Sequence[Node]:
    """The gradient of max-pooling."""
    from jax._src.lax import windowed_reductions

    a = g.pick_float(exact=True, special=False)
    if not 0 < a.rank <= 4 or 0 in a.shape:
        raise NotApplicableError
    window = [g.integer(1, min(3, d)) for d in a.shape]
    strides = [g.integer(1, 2) for _ in a.shape]
    padding = [(0, 0)] * a.rank
    shape = [(d - w) // s + 1 for d, w, s in zip(a.shape, window, strides, strict=True)]
    source = g.constant(shape, a.dtype)
    value = windowed_reductions._select_and_scatter_add(
        source.value, a.value, lax.ge_p, window, strides, padding
    )
    return [summed(value, source, math.prod(window))]
