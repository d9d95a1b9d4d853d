"""Steps that move elements and compute nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
from jax import lax

from tests.fuzz.generator import MAX_ELEMENTS, Generator, step
from tests.fuzz.values import Node, union, whole


def factored(g: Generator, size: int, max_rank: int = 5) -> tuple[int, ...]:
    """A shape with the given number of elements."""
    if size == 0:
        return tuple(g.shuffled((0, g.integer(0, 3), g.integer(1, 3))))[: g.integer(1, 3)] or (0,)
    dims: list[int] = []
    rest = size
    while rest > 1 and len(dims) < max_rank - 1:
        divisors = [d for d in range(2, min(rest, 140) + 1) if rest % d == 0]
        if not divisors:
            break
        dims.append(g.choice(divisors))
        rest //= dims[-1]
    if rest > 1:
        dims.append(rest)
    while len(dims) < 5 and g.chance(0.3):
        dims.append(1)
    return tuple(g.shuffled(dims))


@step(2)
def reshape(g: Generator) -> Sequence[Node]:
    a = g.pick()
    shape = factored(g, a.size)
    if math.prod(shape) != a.size:
        return []
    return [a.like(lax.reshape(a.value, shape))]


@step(2)
def transpose(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 1)
    return [a.like(lax.transpose(a.value, g.shuffled(range(a.rank))))]


@step(1)
def reverse(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0)
    return [a.like(lax.rev(a.value, g.subset(range(a.rank))))]


@step(2)
def slice_(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0)
    starts = [g.integer(0, d) if g.chance(0.1) else g.integer(0, max(0, d // 2)) for d in a.shape]
    limits = [g.integer(s, d) if g.chance(0.5) else d for s, d in zip(starts, a.shape, strict=True)]
    strides = [g.choice((1, 1, 1, 2, 3)) for _ in a.shape]
    return [a.like(lax.slice(a.value, starts, limits, strides))]


@step(2)
def pad(g: Generator) -> Sequence[Node]:
    """Low, high and interior padding; the first two may be negative."""
    a = g.pick(lambda n: n.size <= MAX_ELEMENTS)
    config = []
    for dim in a.shape:
        interior = g.choice((0, 0, 0, 1, 2))
        wide = dim + max(0, dim - 1) * interior
        low = g.choice((0, 0, 1, 2, -1))
        high = max(g.choice((0, 0, 1, 3, -1, -2)), -(wide + low))
        if wide + low < 0:
            low, high = 0, 0
        config.append((low, high, interior))
    fill = g.constant((), a.dtype)
    value = lax.pad(a.value, fill.value, config)
    return [union(value, a, fill) if a.is_float else whole(value)]


@step(1.5)
def concatenate(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0)
    axis = g.integer(0, a.rank - 1)

    def fits(n: Node) -> bool:
        others = (*a.shape[:axis], *a.shape[axis + 1 :])
        return (
            n.dtype == a.dtype
            and n.rank == a.rank
            and (*n.shape[:axis], *n.shape[axis + 1 :]) == others
        )

    parts = [a, *[n for n in g.nodes if fits(n) and g.chance(0.5)][:3]]
    if len(parts) == 1:
        shape = (*a.shape[:axis], g.integer(0, 3), *a.shape[axis + 1 :])
        parts.append(g.constant(shape, a.dtype))
    parts = g.shuffled(parts)
    value = lax.concatenate([n.value for n in parts], axis)
    return [union(value, *parts) if a.is_float else whole(value)]


@step(2)
def broadcast_in_dim(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank < 5 and n.size <= 200)
    rank = g.integer(a.rank, min(6, a.rank + 2))
    dims = sorted(g.shuffled(range(rank))[: a.rank])
    shape = [g.integer(1, 3) for _ in range(rank)]
    for place, size in zip(dims, a.shape, strict=True):
        if size != 1 or g.chance(0.5):
            shape[place] = size
    return [a.like(lax.broadcast_in_dim(a.value, shape, dims))]


@step(1)
def iota(g: Generator) -> Sequence[Node]:
    shape = g.shape(max_elements=120)
    dtype = g.choice(("int32", "uint8", "int16", "uint32"))
    if not shape:
        return []
    return [whole(lax.broadcasted_iota(dtype, shape, g.integer(0, len(shape) - 1)))]


@step(0.7)
def tile_or_roll(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0 and n.size <= 150)
    if g.chance(0.5):
        return [a.like(jnp.tile(a.value, [g.integer(1, 2) for _ in a.shape]))]
    return [a.like(jnp.roll(a.value, g.integer(-5, 5), g.integer(0, a.rank - 1)))]


@step(0.7)
def triangle(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank >= 2 and not n.is_bool)
    value = g.choice((jnp.tril, jnp.triu))(a.value, g.integer(-2, 2))
    return [a.with_zero(value) if a.is_float else whole(value)]
