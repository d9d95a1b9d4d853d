"""Dynamic slices, gather and scatter, with indices inside and outside."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.fuzz.generator import Generator, NotApplicableError, step
from tests.fuzz.reductions import summed
from tests.fuzz.values import Node, on_grid, union, whole

_MODES = (
    lax.GatherScatterMode.CLIP,
    lax.GatherScatterMode.FILL_OR_DROP,
    lax.GatherScatterMode.PROMISE_IN_BOUNDS,
)


def scalar_index(g: Generator) -> Node:
    """A scalar integer that may be far outside of anything."""
    found = [n for n in g.nodes if n.is_integer and n.shape == () and n.dtype != "int8"]
    if found and g.chance(0.5):
        return g.choice(found)
    return Node(jnp.asarray(g.integer(-3, 9), np.int32))


@step(1.5)
def dynamic_slice(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0)
    starts = [scalar_index(g).value for _ in a.shape]
    kinds = {str(s.dtype) for s in starts}
    if len(kinds) > 1:
        starts = [s.astype(np.int32) for s in starts]
    sizes = [g.integer(0 if g.chance(0.05) else min(1, d), d) for d in a.shape]
    return [a.like(lax.dynamic_slice(a.value, starts, sizes))]


@step(1.5)
def dynamic_update_slice(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0)
    found = [
        n
        for n in g.nodes
        if n.dtype == a.dtype
        and n.rank == a.rank
        and all(x <= y for x, y in zip(n.shape, a.shape, strict=True))
    ]
    b = g.choice(found)
    if b is a or g.chance(0.3):
        b = g.constant([g.integer(min(1, d), d) for d in a.shape], a.dtype)
    starts = [scalar_index(g).value.astype(np.int32) for _ in a.shape]
    value = lax.dynamic_update_slice(a.value, b.value, starts)
    return [union(value, a, b) if a.is_float else whole(value)]


def indices(g: Generator, shape: Sequence[int], limits: Sequence[int], inside: bool) -> jnp.ndarray:
    """Index vectors of shape [..., len(limits)]; some outside unless `inside`."""
    rng = np.random.default_rng(g.rng.getrandbits(32))
    reach = 0 if inside else 3
    columns = [rng.integers(-reach, max(1, limit + reach), shape) for limit in limits]
    array = np.stack(columns, -1) if limits else np.zeros((*shape, 0))
    constant = jnp.asarray(array.astype(np.int32))
    # Seldom known when compiling: made a result of the program.
    return lax.optimization_barrier(constant) if g.chance(0.5) else constant


def window_dims(g: Generator, a: Node) -> tuple[list[int], list[int], list[int], list[int]]:
    """Dimensions that are batched, collapsed and indexed, and the slice's sizes."""
    batching = [d for d in range(a.rank) if g.chance(0.15)]
    collapsed = [d for d in range(a.rank) if d not in batching and g.chance(0.4)]
    indexed = [d for d in range(a.rank) if d not in batching and g.chance(0.7)]
    sizes = [
        1 if d in batching or d in collapsed else g.integer(min(1, n), n)
        for d, n in enumerate(a.shape)
    ]
    return batching, collapsed, g.shuffled(indexed), sizes


@step(2.5)
def gather(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.rank > 0 and 0 not in n.shape)
    batching, collapsed, indexed, sizes = window_dims(g, a)
    outer = [a.shape[d] for d in batching] + [g.integer(1, 4) for _ in range(g.integer(0, 2))]
    mode = g.choice(_MODES)
    inside = mode == lax.GatherScatterMode.PROMISE_IN_BOUNDS
    limits = [a.shape[d] - sizes[d] + 1 for d in indexed]
    where = indices(g, outer, limits, inside)
    num_window = a.rank - len(batching) - len(collapsed)
    rank = len(outer) + num_window
    if rank > 6:
        raise NotApplicableError
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(sorted(g.shuffled(range(rank))[:num_window])),
        collapsed_slice_dims=tuple(collapsed),
        start_index_map=tuple(indexed),
        operand_batching_dims=tuple(batching),
        start_indices_batching_dims=tuple(range(len(batching))),
    )
    value = lax.gather(a.value, where, numbers, tuple(sizes), mode=mode, fill_value=0)
    return [a.with_zero(value) if a.is_float else whole(value)]


@step(2.5)
def scatter(g: Generator) -> Sequence[Node]:
    """Updates that may meet in any order: add, min, max; or each place at most once."""
    a = g.pick(lambda n: n.rank > 0 and 0 not in n.shape and not n.is_bool and not n.special)
    if a.is_float:
        if not a.exact:
            raise NotApplicableError
        a = on_grid(a, 4)
    batching, inserted, indexed, sizes = window_dims(g, a)
    if not indexed:
        raise NotApplicableError  # XLA's CPU backend loses updates there
    outer = [a.shape[d] for d in batching] + [g.integer(1, 4) for _ in range(g.integer(0, 2))]
    window = [n for d, n in enumerate(sizes) if d not in batching and d not in inserted]
    rank = len(outer) + len(window)
    if rank > 6:
        raise NotApplicableError
    places = sorted(g.shuffled(range(rank))[: len(window)])
    shape, rest, inner = [], list(outer), list(window)
    for k in range(rank):
        shape.append(inner.pop(0) if k in places else rest.pop(0))
    updates = g.constant(shape, a.dtype)
    mode = g.choice(_MODES)
    inside = mode == lax.GatherScatterMode.PROMISE_IN_BOUNDS
    # A window partly outside is dropped whole by XLA, and only in part by the interpreter.
    inside |= mode != lax.GatherScatterMode.CLIP and any(sizes[d] > 1 for d in indexed)
    where = indices(g, outer, [a.shape[d] - sizes[d] + 1 for d in indexed], inside)
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(places),
        inserted_window_dims=tuple(inserted),
        scatter_dims_to_operand_dims=tuple(indexed),
        operand_batching_dims=tuple(batching),
        scatter_indices_batching_dims=tuple(range(len(batching))),
    )
    once = math.prod(outer) == math.prod(a.shape[d] for d in batching)
    fs = [lax.scatter_add, lax.scatter_min, lax.scatter_max]
    if a.is_integer:
        fs.append(lax.scatter_mul)
    if once:
        fs.append(lax.scatter)
    f = g.choice(fs)
    value = f(a.value, where, updates.value, numbers, mode=mode)
    if not a.is_float:
        return [whole(value)]
    if f is not lax.scatter_add:
        return [union(value, a, updates)]
    return [summed(value, union(value, a, updates), math.prod(outer) + 1)]


@step(1)
def take(g: Generator) -> Sequence[Node]:
    """Indexing as NumPy has it, by computed indices."""
    a = g.pick(lambda n: n.rank > 0 and 0 not in n.shape)
    axis = g.integer(0, a.rank - 1)
    found = [n for n in g.nodes if n.dtype == "int32" and n.rank <= 2 and n.size <= 20]
    where = g.choice(found) if found else g.constant((3,), "int32")
    if a.size // a.shape[axis] * where.size > 4000 or a.rank + where.rank > 6:
        raise NotApplicableError
    mode = g.choice(("clip", "wrap", "fill"))
    value = jnp.take(a.value, where.value, axis=axis, mode=mode, fill_value=0)
    return [a.with_zero(value) if a.is_float else whole(value)]
