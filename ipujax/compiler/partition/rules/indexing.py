"""Slices, gathers and scatters by numbers that are known when the program runs."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.partition.factors import Dims, Factors, count, localise
from ipujax.compiler.partition.localise import Localiser
from ipujax.compiler.partition.mesh import Digits, Shape


def dynamic_slice(localiser: Localiser, operation: Any) -> None:
    """A dimension that is taken whole can be dealt: it begins at 0 whatever the start says."""
    if localiser.is_whole(operation):
        return
    before = localiser.shape(operation.operands[0])
    dims = _kept(before, localiser.shape(operation.results[0]))
    starts: list[Dims] = [()] * (len(operation.operands) - 1)
    localise(localiser, operation, Factors([dims, *starts], [dims]), _local_sizes)


def _local_sizes(localiser: Localiser, operation: Any, digits: dict[int, Digits]) -> None:
    sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
    local = [size // count(digits.get(d, ())) for d, size in enumerate(sizes)]
    operation.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get(local)


def dynamic_update_slice(localiser: Localiser, operation: Any) -> None:
    if localiser.is_whole(operation):
        return
    whole = localiser.shape(operation.operands[0])
    dims = _kept(whole, localiser.shape(operation.operands[1]))
    starts: list[Dims] = [()] * (len(operation.operands) - 2)
    localise(localiser, operation, Factors([dims, dims, *starts], [dims]))


def gather(localiser: Localiser, operation: Any) -> None:
    """Batches of indices, and dimensions that slices take whole, can be dealt."""
    if localiser.is_whole(operation):
        return
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
    batches = _batch_dims(indices_shape, numbers.index_vector_dim)
    left = [d for d in range(len(result_shape)) if d not in set(numbers.offset_dims)]
    for d, to in zip(batches, left, strict=True):
        indices[d] = result[to] = len(shape) + d
    pairs = zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True)
    for d, batch in pairs:
        operand[d] = indices[batch]
    factors = Factors([tuple(operand), tuple(indices)], [tuple(result)])
    localise(localiser, operation, factors, _local_window(operand))


def _local_window(operand: list[int | None]) -> Any:
    def adjust(localiser: Localiser, operation: Any, digits: dict[int, Digits]) -> None:
        sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
        for d, factor in enumerate(operand):
            # A batching dimension has slices of size 1, however it is dealt.
            if factor == d:
                sizes[d] //= count(digits.get(factor, ()))
        operation.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get(sizes)

    return adjust


def scatter(localiser: Localiser, operation: Any) -> None:
    """Batches that operands and indices share, and whole dimensions of windows, can be dealt."""
    if localiser.is_whole(operation):
        return
    numbers = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    inputs = len(operation.results)
    shape = localiser.shape(operation.operands[0])
    indices_shape = localiser.shape(operation.operands[inputs])
    updates_shape = localiser.shape(operation.operands[inputs + 1])
    operand: list[int | None] = [None] * len(shape)
    indices: list[int | None] = [None] * len(indices_shape)
    updates: list[int | None] = [None] * len(updates_shape)
    missing = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    windows = [d for d in range(len(shape)) if d not in missing]
    for d, update in zip(windows, numbers.update_window_dims, strict=True):
        if updates_shape[update] == shape[d]:
            operand[d] = updates[update] = d
    batches = _batch_dims(indices_shape, numbers.index_vector_dim)
    left = [d for d in range(len(updates_shape)) if d not in set(numbers.update_window_dims)]
    place = dict(zip(batches, left, strict=True))
    pairs = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    for d, batch in pairs:
        operand[d] = indices[batch] = updates[place[batch]] = d
    given = [tuple(operand)] * inputs + [tuple(indices)] + [tuple(updates)] * inputs
    localise(localiser, operation, Factors(given, [tuple(operand)] * inputs))


def _batch_dims(indices: Shape, vector_dim: int) -> list[int]:
    return [d for d in range(len(indices)) if d != vector_dim]


def _kept(before: Shape, after: Shape) -> Dims:
    return tuple(d if b == a else None for d, (b, a) in enumerate(zip(before, after, strict=True)))


RULES = {
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
    "stablehlo.gather": gather,
    "stablehlo.scatter": scatter,
}
