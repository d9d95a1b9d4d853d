"""Converts values between layouts with the collectives that move their blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ipujax.compiler.partition.emit import Emitter
from ipujax.compiler.partition.mesh import (
    Layout,
    Shape,
    SubAxes,
    SubAxis,
    block_size,
    count,
    dims_of,
    is_even,
    layout_of,
    reduced,
)


def reshard(
    emit: Emitter, value: Any, shape: Shape, source: Layout | None, target: Layout | None
) -> Any:
    """Writes the ops that turn this device's block of `source` into its block of `target`.

    Args:
        value: the block, or part of one, that the device has.
        shape: of the whole tensor.
    """
    if source == target:
        return value
    if 0 in shape:
        return emit.reshape(value, target.local(shape) if target else shape)
    if source is not None and source.unreduced:
        value, source = _combine(emit, value, shape, source, target)
    added = tuple(d for d in _unreduced(target) if d not in _unreduced(source))
    if source is not None and target is not None and added:
        value, source = _place(emit, value, shape, source, target)
    value = _move_blocks(emit, value, shape, source, target)
    return _keep_first(emit, value, target, [d for d in added if d not in _unreduced(source)])


def _unreduced(layout: Layout | None) -> SubAxes:
    return layout.unreduced if layout is not None else ()


def _combine(
    emit: Emitter, value: Any, shape: Shape, source: Layout, target: Layout | None
) -> tuple[Any, Layout | None]:
    """Combines parts over the axes that are reduced in `target`, into its blocks where possible.

    Returns:
        the combined value, and its layout.
    """
    stays: SubAxes = ()
    if target is not None and target.mesh is source.mesh and target.kind == source.kind:
        stays = tuple(d for d in source.unreduced if d in target.unreduced)
    over = tuple(d for d in source.unreduced if d not in stays)
    if not over:
        return value, source
    left = layout_of(source.mesh, source.dims, stays, source.kind)
    scattered = _scattered(shape, source, target, over)
    if scattered is not None:
        dim, axes = scattered
        value = emit.reduce_scatter(value, source.kind, dim, source.mesh.groups(axes))
        dims = [*source.dims]
        dims[dim] += axes
        return value, layout_of(source.mesh, dims, stays, source.kind)
    return emit.all_reduce(value, source.kind, source.mesh.groups(over)), left


def _scattered(
    shape: Shape, source: Layout, target: Layout | None, over: SubAxes
) -> tuple[int, SubAxes] | None:
    """The only dimension where `target` differs, if it adds just the axes `over` there.

    None if there is no such dimension, or if its blocks have padding: then they are not parts
    of larger blocks.
    """
    if target is None or target.mesh is not source.mesh:
        return None
    differ = [d for d, new in enumerate(target.dims) if new != source.dims[d]]
    if len(differ) != 1:
        return None
    (dim,) = differ
    old, new = source.dims[dim], target.dims[dim]
    axes = new[len(old) :]
    if new[: len(old)] != old or {*axes} != {*over} or not is_even(shape[dim], new):
        return None
    return dim, axes


def _place(
    emit: Emitter, value: Any, shape: Shape, source: Layout, target: Layout
) -> tuple[Any, Layout]:
    """Turns blocks into parts that are zero elsewhere, along axes that are unreduced in `target`.

    Returns:
        the value, and its layout.
    """
    if source.mesh is not target.mesh:
        return value, source
    dims: list[SubAxes] = []
    placed: list[SubAxis] = []
    for size, have, common in zip(shape, source.dims, _common(source, target), strict=True):
        axes = have[len(common) :]
        can = {*axes} <= {*target.unreduced} and is_even(size, have)
        dims.append(common if can else have)
        placed += axes if can else ()
    made = Layout(source.mesh, tuple(dims), source.mesh.ordered((*source.unreduced, *placed)))
    if not placed:
        return value, source
    starts = []
    for have, left, local in zip(source.dims, made.dims, value.type.shape, strict=True):
        starts.append(emit.by_device(source.mesh.values(have[len(left) :]) * local))
    zeros = emit.zeros(made.local(shape), value.type)
    return emit.one("stablehlo.dynamic_update_slice", zeros.type, [zeros, value, *starts]), made


def _keep_first(emit: Emitter, value: Any, target: Layout | None, axes: Sequence[SubAxis]) -> Any:
    """Makes parts: the value on the first device along the axes, zeros on the others."""
    if target is None or not axes:
        return value
    first = emit.is_device(target.mesh.values(tuple(axes)) == 0)
    return emit.select(first, value, emit.zeros(value.type.shape, value.type))


def _move_blocks(
    emit: Emitter, value: Any, shape: Shape, source: Layout | None, target: Layout | None
) -> Any:
    """Turns the blocks of one layout into those of another; parts stay parts."""
    if source is not None and target is not None and source.counts() == target.counts():
        return _exchange(emit, value, source, target._replace(unreduced=source.unreduced))
    source, target = reduced(source), reduced(target)
    if source == target:
        return value
    if source is not None and target is not None and source.mesh is not target.mesh:
        value, source = _gather(emit, value, shape, source, None), None
    # Blocks with padding are not parts of others: such dimensions are joined first, and cut last.
    first = _without_uneven(shape, source, target)
    if source is not None and first != source:
        value, source = _gather(emit, value, shape, source, first), first
    last = _without_uneven(shape, target, source)
    value = _move(emit, value, shape, source, last)
    return take_block(emit, value, shape, last, target)


def _without_uneven(shape: Shape, layout: Layout | None, other: Layout | None) -> Layout | None:
    """The layout without dimensions that differ from `other`'s and have padding in either."""
    if layout is None:
        return None
    others = dims_of(other, len(shape))
    return layout_of(
        layout.mesh,
        (
            mine if mine == its or (is_even(size, mine) and is_even(size, its)) else ()
            for size, mine, its in zip(shape, layout.dims, others, strict=True)
        ),
    )


def _move(
    emit: Emitter, value: Any, shape: Shape, source: Layout | None, target: Layout | None
) -> Any:
    """Converts between layouts of one mesh; dimensions that change have no padding."""
    if source is None:
        return take_block(emit, value, shape, None, target)
    if target is None:
        return _gather(emit, value, shape, source, None)
    common = _common(source, target)
    moved = _moved(source, target, common)
    if moved is not None:
        split, concat, axes = moved
        return emit.all_to_all(value, split, concat, source.mesh.groups(axes))
    # Blocks are cut first where possible, to send less.
    cut = _cut_first(source, target)
    if cut != source:
        value = take_block(emit, value, shape, source, cut)
    rest = layout_of(cut.mesh, _common(cut, target))
    value = _gather(emit, value, shape, cut, rest)
    return take_block(emit, value, shape, rest, target)


def take_block(
    emit: Emitter, value: Any, shape: Shape, source: Layout | None, target: Layout | None
) -> Any:
    """Cuts the device's block of `target` out of its block of `source`, which contains it."""
    if target is None or source == target:
        return value
    rank = len(target.dims)
    have = dims_of(source, rank)
    sizes, starts = list(value.type.shape), []
    zero = None
    for dim in range(rank):
        added = target.dims[dim][len(have[dim]) :]
        if not added:
            zero = zero if zero is not None else emit.by_device(np.zeros(1, np.int64))
            starts.append(zero)
            continue
        numbers = target.mesh.values(added)
        sizes[dim] = block_size(shape[dim], target.dims[dim])
        if not is_even(shape[dim], target.dims[dim]):
            value = emit.pad_with_last(value, dim, sizes[dim] * count(added))
        starts.append(emit.by_device(numbers * sizes[dim]))
    return emit.dynamic_slice(value, starts, sizes)


def _gather(emit: Emitter, value: Any, shape: Shape, source: Layout, target: Layout | None) -> Any:
    """Joins blocks; the axes of `target` are the first ones of `source`'s."""
    have = dims_of(target, len(source.dims))
    for dim, axes in enumerate(source.dims):
        removed = axes[len(have[dim]) :]
        if removed:
            value = emit.all_gather(value, dim, source.mesh.groups(removed))
            if not is_even(shape[dim], axes):
                value = emit.take(value, dim, 0, shape[dim])
    return value


def _exchange(emit: Emitter, value: Any, source: Layout, target: Layout) -> Any:
    """Sends each block to one device that needs it; both layouts have the same blocks."""
    have, need = source.blocks(), target.blocks()
    pairs: dict[int, int] = {}
    for block in range(int(have.max()) + 1):
        senders = set(np.flatnonzero(have == block).tolist())
        takers = set(np.flatnonzero(need == block).tolist())
        stay = senders & takers
        pairs.update((d, d) for d in stay)
        pairs.update(zip(sorted(senders - stay), sorted(takers - stay), strict=True))
    if all(s == t for s, t in pairs.items()):
        return value
    return emit.permute(value, np.asarray(sorted(pairs.items())))


def _common(source: Layout, target: Layout) -> tuple[SubAxes, ...]:
    """The leading axes that both share, for each dimension."""
    common = []
    for have, need in zip(source.dims, target.dims, strict=True):
        count = 0
        while count < min(len(have), len(need)) and have[count] == need[count]:
            count += 1
        common.append(have[:count])
    return tuple(common)


def _moved(
    source: Layout, target: Layout, common: tuple[SubAxes, ...]
) -> tuple[int, int, SubAxes] | None:
    """(dim that is cut, dim that is joined, axes), if axes moved between two dimensions."""
    lost = [(d, x[len(c) :]) for d, (x, c) in enumerate(zip(source.dims, common, strict=True))]
    won = [(d, x[len(c) :]) for d, (x, c) in enumerate(zip(target.dims, common, strict=True))]
    lost, won = [x for x in lost if x[1]], [x for x in won if x[1]]
    if len(lost) == len(won) == 1 and lost[0][1] == won[0][1] and lost[0][0] != won[0][0]:
        return won[0][0], lost[0][0], won[0][1]
    return None


def _cut_first(source: Layout, target: Layout) -> Layout:
    """`source`, with all axes of `target` that only need to be added."""
    used = set(source.sub_axes())
    dims = []
    for have, need in zip(source.dims, target.dims, strict=True):
        added = need[len(have) :]
        if need[: len(have)] == have and not used & set(added):
            dims.append(need)
            used |= set(added)
        else:
            dims.append(have)
    return Layout(source.mesh, tuple(dims))
