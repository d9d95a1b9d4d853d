"""dot_general and convolution, with all their attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jax import lax

from tests.fuzz.generator import Generator, NotApplicableError, step
from tests.fuzz.reductions import summed
from tests.fuzz.values import Node, computed, tame, whole

_DTYPES = ("float32", "float32", "float16", "bfloat16", "int32", "int8", "uint16")


def contracted(value, a: Node, b: Node, count: int) -> Node:
    """A sum of at most `count` products."""
    if not a.is_float:
        return whole(value)
    ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    error = a.error * (b.bound + b.error) + b.error * a.bound
    product = computed(value, min(ends), max(ends), a.step * b.step, error, False)
    return summed(value, product, count)


def operand(g: Generator, dtype: str | None = None) -> Node:
    """A finite value, or a constant of a random shape."""
    if dtype is None and g.chance(0.6):
        node = g.pick(lambda n: not n.is_bool and not n.special and n.size <= 300)
        return g.pick_float(special=False) if node.is_float else small(node)
    return small(g.constant(g.shape(max_elements=150), dtype or g.choice(_DTYPES)))


def small(node: Node) -> Node:
    """Integers held so small that products do not overflow: JAX on the CPU then saturates some."""
    if node.is_float:
        return node
    kind = node.value.dtype.type
    low = 0 if node.dtype.startswith("u") else -1
    return whole(lax.clamp(kind(low), node.value, kind(2)))


@step(3)
def dot_general(g: Generator) -> Sequence[Node]:
    a = operand(g)
    if a.size > 600:
        raise NotApplicableError
    axes = g.shuffled(range(a.rank))
    num_batch = g.integer(0, min(2, a.rank))
    num_contracted = g.integer(0, min(2, a.rank - num_batch))
    batch, contracting = axes[:num_batch], axes[num_batch : num_batch + num_contracted]
    shared = [(axis, a.shape[axis]) for axis in (*batch, *contracting)]
    free = [g.integer(1, 5) for _ in range(g.integer(0, 2))]
    # The right side's dimensions in a random order: (axis of a, size) or (None, size).
    order = g.shuffled([*shared, *[(None, size) for size in free]])
    b = small(g.constant([size for _, size in order], a.dtype))
    if "8" in a.dtype and math.prod(a.shape[axis] for axis in contracting) > 30:
        raise NotApplicableError
    place = {axis: k for k, (axis, _) in enumerate(order) if axis is not None}
    numbers = (
        (contracting, [place[x] for x in contracting]),
        (batch, [place[x] for x in batch]),
    )
    precision = g.choice((None, lax.Precision.HIGHEST))
    value = lax.dot_general(a.value, b.value, numbers, precision=precision)
    return [contracted(value, a, b, math.prod(a.shape[x] for x in contracting))]


@step(1.5)
def convolution(g: Generator) -> Sequence[Node]:
    """Any strides, padding, dilation, groups, and order of dimensions."""
    num_spatial = g.integer(0, 2) if g.chance(0.9) else 3
    groups = g.choice((1, 1, 1, 2, 3))
    feature_groups, batch_groups = g.choice(((groups, 1), (1, groups)))
    features = g.integer(1, 2) * feature_groups
    batch = g.integer(1, 2) * batch_groups
    filters = g.integer(1, 2) * groups
    spatial = [g.integer(1, 7) for _ in range(num_spatial)]
    window = [g.integer(1, 3) for _ in range(num_spatial)]
    dtype = g.choice(("float32", "float32", "float16", "bfloat16", "int32", "int16"))
    image = [batch, features, *spatial]
    kernel = [filters, features // feature_groups, *window]
    order = [g.shuffled(range(num_spatial + 2)) for _ in range(3)]
    a = g.constant([image[k] for k in order[0]], dtype)
    found = [n for n in g.nodes if n.dtype == dtype and n.size >= a.size > 0 and not n.special]
    if found:
        source = g.choice(found)
        flat = lax.slice(lax.reshape(source.value, (source.size,)), [0], [a.size])
        a = source.like(lax.reshape(flat, a.shape))
        if a.is_float:
            a = tame(a)
    a, b = small(a), small(g.constant([kernel[k] for k in order[1]], dtype))
    # Where each of (batch, feature, spatial...) stands in the operand.
    specs = [tuple(spec.index(k) for k in range(num_spatial + 2)) for spec in order]
    padding = [(g.integer(-1, 2), g.integer(-1, 2)) for _ in spatial]
    strides = [g.integer(1, 2) for _ in spatial]
    lhs_dilation = [g.choice((1, 1, 2)) for _ in spatial]
    rhs_dilation = [g.choice((1, 1, 2)) for _ in spatial]
    for size, width, (low, high), base, far in zip(
        spatial, window, padding, lhs_dilation, rhs_dilation, strict=True
    ):
        if (size - 1) * base + 1 + low + high < max(0, (width - 1) * far + 1):
            raise NotApplicableError
    value = lax.conv_general_dilated(
        a.value,
        b.value,
        window_strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=lax.ConvDimensionNumbers(*specs),
        feature_group_count=feature_groups,
        batch_group_count=batch_groups,
    )
    count = math.prod(window) * features // feature_groups
    return [contracted(value, a, b, count)]
