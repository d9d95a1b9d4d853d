"""Slices whose starts are only known at run time.

When one element along a sharded dimension is read, the device that holds it reads it, and the
others read zeros; when one is written, only the device that holds it changes it.
"""

from __future__ import annotations

from typing import Any

from ipujax.compiler.partition.emit import Emitter
from ipujax.compiler.partition.factors import (
    Dims,
    Factors,
    kept,
    local_sizes,
    localise,
    shard,
    sharded,
)
from ipujax.compiler.partition.localise import Localiser, localises
from ipujax.compiler.partition.mesh import Mesh, Shape, SubAxes, block_size
from ipujax.compiler.partition.shift import can_shift, is_inside, zero_outside


@localises("dynamic_slice")
def dynamic_slice(localiser: Localiser, operation: Any) -> None:
    """A dimension that is taken whole can be sharded: it begins at 0 whatever the start is."""
    shape = localiser.shape(operation.operands[0])
    taken = localiser.shape(operation.results[0])
    whole = kept(shape, taken)
    single = _single(operation, shape, taken)
    operand = tuple(d if d in single else factor for d, factor in enumerate(whole))
    starts: list[Dims] = [()] * len(shape)
    fills = [None] * len(operation.operands)
    factors = Factors([operand, *starts], [whole], frozenset(single), fills=fills, linear=[0])
    local = local_sizes("slice_sizes", whole)
    mesh, axes = shard(localiser, operation, factors)
    shifted = [d for d in single if axes.get(d)]
    if mesh is None or not shifted:
        localise(localiser, operation, factors, local)
        return
    inside = _shift(localiser, operation, 1, shape, shifted, mesh, axes)
    localise(localiser, operation, factors, local)
    zero_outside(localiser, operation, inside)


@localises("dynamic_update_slice")
def dynamic_update_slice(localiser: Localiser, operation: Any) -> None:
    shape = localiser.shape(operation.operands[0])
    written = localiser.shape(operation.operands[1])
    update = kept(shape, written)
    single = _single(operation, shape, written)
    whole = tuple(d if d in single else factor for d, factor in enumerate(update))
    starts: list[Dims] = [()] * len(shape)
    factors = Factors([whole, update, *starts], [whole], linear=[0, 1])
    mesh, axes = shard(localiser, operation, factors)
    shifted = [d for d in single if axes.get(d)]
    if mesh is not None and shifted:
        inside = _shift(localiser, operation, 2, shape, shifted, mesh, axes)
        for index in (0, 1):
            localiser.require(operation, index, sharded(mesh, factors.operands[index], axes))
        # Other devices write the old elements again, so the array is still changed in place.
        array, new, *places = operation.operands
        old = localiser.emit.dynamic_slice(array, places, list(new.type.shape))
        localiser.put(operation, 1, localiser.emit.select(inside, new, old))
    localise(localiser, operation, factors)


def _single(operation: Any, shape: Shape, part: Shape) -> list[int]:
    """Dimensions along which one of several elements is read or written."""
    if not can_shift(operation, len(operation.operands) - 1):
        return []
    return [d for d, size in enumerate(part) if size == 1 and shape[d] > 1]


def _shift(
    localiser: Localiser,
    operation: Any,
    first: int,
    shape: Shape,
    dims: list[int],
    mesh: Mesh,
    axes: dict[int, SubAxes],
) -> Any:
    """Makes starts relative to the device's block; returns whether they are inside it."""
    emit, found = localiser.emit, None
    for d in dims:
        localiser.require(operation, first + d, None)
        size = block_size(shape[d], axes[d])
        place = _clamped(emit, operation.operands[first + d], shape[d] - 1)
        begin = emit.by_device(mesh.values(axes[d]) * size, place.type.element_type)
        place = emit.one("stablehlo.subtract", place.type, [place, begin])
        found = is_inside(emit, place, size, found)
        operation.operands[first + d] = place
    return found


def _clamped(emit: Emitter, place: Any, last: int) -> Any:
    """Moves the start of a slice that would leave the array into it."""
    low, high = (emit.filled(number, place.type) for number in (0, last))
    return emit.one("stablehlo.clamp", place.type, [low, place, high])
