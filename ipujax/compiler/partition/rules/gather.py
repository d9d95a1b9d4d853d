"""gather in blocks, if the indices or the operand are sharded."""

from __future__ import annotations

import math
from typing import Any

from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.partition.emit import numbers_of
from ipujax.compiler.partition.factors import (
    Factors,
    local_sizes,
    localise,
    no_factors,
    shard,
    sharded,
)
from ipujax.compiler.partition.localise import Localiser, localises
from ipujax.compiler.partition.shift import Shift, batch_dims, can_shift, zero_outside


@localises("gather")
def gather(localiser: Localiser, operation: Any) -> None:
    """Shards batches of indices, dimensions that slices take whole, and looked-up dimensions."""
    numbers = stablehlo.GatherDimensionNumbers(operation.attributes["dimension_numbers"])
    shape, indices_shape, result_shape = (
        localiser.shape(value) for value in (*operation.operands, *operation.results)
    )
    sizes = numbers_of(operation, "slice_sizes")
    operand, indices, result = map(no_factors, (shape, indices_shape, result_shape))
    missing = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    windows = [d for d in range(len(shape)) if d not in missing]
    for d, to in zip(windows, numbers.offset_dims, strict=True):
        if sizes[d] == shape[d]:
            operand[d] = result[to] = d
    # Dimensions that are batched or looked up have slices of size 1, however sharded.
    local = local_sizes("slice_sizes", tuple(operand))
    batches = batch_dims(indices_shape, numbers.index_vector_dim)
    left = [d for d in range(len(result_shape)) if d not in set(numbers.offset_dims)]
    for d, to in zip(batches, left, strict=True):
        indices[d] = result[to] = len(shape) + d
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    for d, batch in pairs:
        operand[d] = indices[batch]
    # Looking up in a block and adding sends results; joining the blocks sends the operand.
    looked_up: list[int] = []
    if math.prod(result_shape) <= math.prod(shape) and can_shift(operation, 1):
        looked_up = [d for d in numbers.start_index_map if d in numbers.collapsed_slice_dims]
    for d in looked_up:
        operand[d] = d
    factors = Factors([operand, indices], [result], frozenset(looked_up), fills=[None, None])
    mesh, axes = shard(localiser, operation, factors)
    shifted = [d for d in looked_up if axes.get(d)]
    if mesh is None or not shifted:
        localise(localiser, operation, factors, local)
        return
    localiser.require(operation, 1, sharded(mesh, indices, axes))
    shift = Shift(mesh, shape, list(numbers.start_index_map), numbers.index_vector_dim, axes)
    emit = localiser.emit
    clamped = shift.clamped(emit, operation.operands[1], shifted)
    places = shift.local(emit, clamped, shifted)
    localiser.put(operation, 1, places)
    inside = shift.inside(emit, places, shifted)
    localise(localiser, operation, factors, local)
    zero_outside(localiser, operation, inside, left)
