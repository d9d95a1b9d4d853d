"""Slices, gathers and scatters by numbers that are known when the program runs."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.partition.emit import Emitter, tensor_type
from ipujax.compiler.partition.factors import Dims, Factors, count, deal, dealt, localise
from ipujax.compiler.partition.localise import Localiser
from ipujax.compiler.partition.mesh import Digits, Mesh, Shape
from ipujax.compiler.partition.rules.products import combiner_of, is_neutral


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
    """Batches of indices, dimensions that slices take whole, and those that indices look up."""
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
    # Looking up in a block and adding up sends results; joining the blocks sends the operand.
    looked_up: list[int] = []
    if math.prod(result_shape) <= math.prod(shape) and _can_shift(operation, 1):
        looked_up = [d for d in numbers.start_index_map if d in numbers.collapsed_slice_dims]
    for d in looked_up:
        operand[d] = d
    factors = Factors([tuple(operand), tuple(indices)], [tuple(result)], frozenset(looked_up))
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


def _can_shift(operation: Any, indices: int) -> bool:
    """Whether places in a block can be computed in the indices' type, and zeros be added."""
    element = operation.operands[indices].type.element_type
    values = operation.results[0].type.element_type
    return (
        isinstance(element, ir.IntegerType)
        and element.width >= 32
        and not isinstance(values, ir.ComplexType)
    )


def _local_window(operand: list[int | None], looked_up: list[int]) -> Any:
    def adjust(localiser: Localiser, operation: Any, digits: dict[int, Digits]) -> None:
        sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
        for d, factor in enumerate(operand):
            # Dimensions that are batched or looked up have slices of size 1, however dealt.
            if factor == d and d not in looked_up:
                sizes[d] //= count(digits.get(factor, ()))
        operation.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get(sizes)

    return adjust


class Shift(NamedTuple):
    """Indices into a tensor become indices into a device's block of it.

    Attributes:
        shape: of the whole tensor.
        components: the dimension that each number of an index vector counts in.
        vector_dim: the dimension of the indices that holds those numbers.
        digits: how the tensor's dimensions are dealt.
    """

    mesh: Mesh
    shape: Shape
    components: list[int]
    vector_dim: int
    digits: dict[int, Digits]

    def clamped(self, emit: Emitter, indices: Any, dims: list[int]) -> Any:
        """Gathers take the nearest element where an index is outside."""
        limits = [self.shape[d] - 1 if d in dims else 2**31 - 1 for d in self.components]
        low = [0 if d in dims else -(2**31) for d in self.components]
        element = indices.type.element_type
        if element.is_unsigned:
            low = [0] * len(low)
        bounds = [self._vectors(emit, np.array([row]), indices) for row in (low, limits)]
        return emit.one("stablehlo.clamp", indices.type, [bounds[0], indices, bounds[1]])

    def local(self, emit: Emitter, indices: Any, dims: list[int]) -> Any:
        """The indices, counted from where the device's block begins."""
        columns = [
            self.mesh.values(self.digits[d]) * (self.shape[d] // count(self.digits[d]))
            if d in dims
            else np.zeros_like(self.mesh.values(()))
            for d in self.components
        ]
        starts = self._vectors(emit, np.stack(columns, 1), indices)
        return emit.one("stablehlo.subtract", indices.type, [indices, starts])

    def inside(self, emit: Emitter, indices: Any, dims: list[int]) -> Any:
        """For each local index vector whether it points into the block: i1, without vector_dim."""
        found = None
        for k, d in enumerate(self.components):
            if d not in dims:
                continue
            part = self._component(emit, indices, k)
            size = self.shape[d] // count(self.digits[d])
            shape, element = part.type.shape, part.type.element_type
            low, high = (
                emit.broadcast(emit.constant(np.asarray(number), element), shape)
                for number in (0, size)
            )
            above, below = emit.compare("GE", part, low), emit.compare("LT", part, high)
            here = emit.one("stablehlo.and", above.type, [above, below])
            found = here if found is None else emit.one("stablehlo.and", here.type, [found, here])
        return found

    def _component(self, emit: Emitter, indices: Any, k: int) -> Any:
        shape = list(indices.type.shape)
        if self.vector_dim == len(shape):
            return indices
        start, limit = [0] * len(shape), list(shape)
        start[self.vector_dim], limit[self.vector_dim] = k, k + 1
        taken = [high - low for low, high in zip(start, limit, strict=True)]
        part = emit.one(
            "stablehlo.slice",
            tensor_type(taken, indices.type),
            [indices],
            start_indices=ir.DenseI64ArrayAttr.get(start),
            limit_indices=ir.DenseI64ArrayAttr.get(limit),
            strides=ir.DenseI64ArrayAttr.get([1] * len(shape)),
        )
        return emit.reshape(part, [s for d, s in enumerate(shape) if d != self.vector_dim])

    def _vectors(self, emit: Emitter, rows: np.ndarray, indices: Any) -> Any:
        """A device's row, next to every index vector."""
        shape, element = list(indices.type.shape), indices.type.element_type
        if self.vector_dim == len(shape):
            return emit.broadcast(emit.by_device(rows[:, 0], element), shape)
        return emit.spread(emit.by_device(rows, element), shape, [self.vector_dim])


def scatter(localiser: Localiser, operation: Any) -> None:
    """Batches that all share, whole dimensions of windows, and dimensions that indices look up.

    Updates that are dealt are scattered where they are, and the results combined.
    """
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
    looked_up: list[int] = []
    if _can_shift(operation, inputs):
        components = numbers.scattered_dims_to_operand_dims
        looked_up = [d for d in components if d in numbers.inserted_window_dims]
    for d in looked_up:
        operand[d] = d
    kind = combiner_of(operation.regions[0]) if inputs == 1 else None
    reduced: set[int] = set()
    if kind in ("add", "max", "min") and _can_shift(operation, inputs):
        for d in batches:
            if indices[d] is None:
                factor = len(shape) + d
                indices[d] = updates[place[d]] = factor
                reduced.add(factor)
    given = [tuple(operand)] * inputs + [tuple(indices)] + [tuple(updates)] * inputs
    factors = Factors(given, [tuple(operand)] * inputs, frozenset(reduced), kind or "add")
    mesh, digits = deal(localiser, operation, factors)
    if mesh is not None:
        _once(localiser, operation, factors, mesh, digits)
        shifted = [d for d in looked_up if digits.get(d)]
        if shifted:
            localiser.require(operation, inputs, dealt(mesh, tuple(indices), digits))
            value = operation.operands[inputs]
            components = list(numbers.scattered_dims_to_operand_dims)
            shift = Shift(mesh, shape, components, numbers.index_vector_dim, digits)
            # What is outside the block is left out, as scatters do.
            local = shift.local(localiser.emit, value, shifted)
            localiser.adopt(local, localiser.info(value))
            operation.operands[inputs] = local
    localise(localiser, operation, factors)


def _once(
    localiser: Localiser, operation: Any, factors: Factors, mesh: Mesh, digits: dict[int, Digits]
) -> None:
    """Of devices whose results are added up one has the operand, the others have zeros."""
    combined = tuple(d for f in sorted(factors.reduced) for d in digits.get(f, ()))
    value = operation.operands[0]
    if not combined or factors.kind != "add" or is_neutral(value, "add"):
        return
    localiser.require(operation, 0, dealt(mesh, factors.operands[0], digits))
    value, emit = operation.operands[0], localiser.emit
    first = emit.is_device(mesh.values(combined) == 0)
    zeros = emit.zeros(value.type.shape, value.type)
    chosen = emit.one("stablehlo.select", value.type, [first, value, zeros])
    localiser.adopt(chosen, localiser.info(value))
    operation.operands[0] = chosen


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
