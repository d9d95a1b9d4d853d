"""gather: in blocks, where indices are dealt, or what they look up."""

from __future__ import annotations

import math
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.partition.factors import Factors, deal, dealt, localise
from ipujax.compiler.partition.localise import Localiser, localises
from ipujax.compiler.partition.mesh import Digits, block_size
from ipujax.compiler.partition.shift import Shift, batch_dims, can_shift


@localises("gather")
def gather(localiser: Localiser, operation: Any) -> None:
    """Batches of indices, dimensions that slices take whole, and those that indices look up."""
    numbers = stablehlo.GatherDimensionNumbers(operation.attributes["dimension_numbers"])
    shape, indices_shape, result_shape = (
        localiser.shape(value) for value in (*operation.operands, *operation.results)
    )
    sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
    operand: list[int | None] = [None] * len(shape)
    indices: list[int | None] = [None] * len(indices_shape)
    result: list[int | None] = [None] * len(result_shape)
    missing = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    windows = [d for d in range(len(shape)) if d not in missing]
    for d, to in zip(windows, numbers.offset_dims, strict=True):
        if sizes[d] == shape[d]:
            operand[d] = result[to] = d
    batches = batch_dims(indices_shape, numbers.index_vector_dim)
    left = [d for d in range(len(result_shape)) if d not in set(numbers.offset_dims)]
    for d, to in zip(batches, left, strict=True):
        indices[d] = result[to] = len(shape) + d
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    for d, batch in pairs:
        operand[d] = indices[batch]
    # Looking up in a block and adding up sends results; joining the blocks sends the operand.
    looked_up: list[int] = []
    if math.prod(result_shape) <= math.prod(shape) and can_shift(operation, 1):
        looked_up = [d for d in numbers.start_index_map if d in numbers.collapsed_slice_dims]
    for d in looked_up:
        operand[d] = d
    factors = Factors(
        [tuple(operand), tuple(indices)],
        [tuple(result)],
        frozenset(looked_up),
        fills=[None, None],
    )
    mesh, digits = deal(localiser, operation, factors)
    shifted = [d for d in looked_up if digits.get(d)]
    if mesh is None or not shifted:
        localise(localiser, operation, factors, _local_window(operand, looked_up))
        return
    localiser.require(operation, 1, dealt(mesh, tuple(indices), digits))
    shift = Shift(mesh, shape, list(numbers.start_index_map), numbers.index_vector_dim, digits)
    emit = localiser.emit
    clamped = shift.clamped(emit, operation.operands[1], shifted)
    local = shift.local(emit, clamped, shifted)
    localiser.adopt(local, localiser.info(operation.operands[1]))
    operation.operands[1] = local
    inside = shift.inside(emit, local, shifted)
    # The op moves to a copy, since what it looked up outside its block is put out after it.
    localise(localiser, operation, factors, _local_window(operand, looked_up))
    copy = operation.clone(ip=ir.InsertionPoint(operation))
    found = copy.results[0]
    kept = list(found.type.shape)
    mask = emit.spread(inside, kept, left)
    chosen = emit.one("stablehlo.select", found.type, [mask, found, emit.zeros(kept, found.type)])
    localiser.replace(operation, chosen)


def _local_window(operand: list[int | None], looked_up: list[int]) -> Any:
    def adjust(localiser: Localiser, operation: Any, digits: dict[int, Digits]) -> None:
        sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
        for d, factor in enumerate(operand):
            # Dimensions that are batched or looked up have slices of size 1, however dealt.
            if factor == d and d not in looked_up:
                sizes[d] = block_size(sizes[d], digits.get(factor, ()))
        operation.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get(sizes)

    return adjust
