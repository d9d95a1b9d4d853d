"""scatter in blocks, if the updates or the operand are sharded."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.partition.factors import Factors, localise, no_factors, shard, sharded
from ipujax.compiler.partition.localise import Localiser, is_neutral, localises
from ipujax.compiler.partition.mesh import Mesh, SubAxes
from ipujax.compiler.partition.rules.products import combiner_of, zeros_for
from ipujax.compiler.partition.shift import Shift, batch_dims, can_shift


@localises("scatter")
def scatter(localiser: Localiser, operation: Any) -> None:
    """Shards batches that all share, whole dimensions of windows, and looked-up dimensions.

    Sharded updates are scattered on their own devices, and the results combined.
    """
    numbers = stablehlo.ScatterDimensionNumbers(operation.attributes["scatter_dimension_numbers"])
    inputs = len(operation.results)
    shape = localiser.shape(operation.operands[0])
    indices_shape = localiser.shape(operation.operands[inputs])
    updates_shape = localiser.shape(operation.operands[inputs + 1])
    operand, indices, updates = map(no_factors, (shape, indices_shape, updates_shape))
    missing = {*numbers.inserted_window_dims, *numbers.input_batching_dims}
    windows = [d for d in range(len(shape)) if d not in missing]
    for d, update in zip(windows, numbers.update_window_dims, strict=True):
        if updates_shape[update] == shape[d]:
            operand[d] = updates[update] = d
    batches = batch_dims(indices_shape, numbers.index_vector_dim)
    left = [d for d in range(len(updates_shape)) if d not in set(numbers.update_window_dims)]
    place = dict(zip(batches, left, strict=True))
    pairs = zip(numbers.input_batching_dims, numbers.scatter_indices_batching_dims, strict=True)
    for d, batch in pairs:
        operand[d] = indices[batch] = updates[place[batch]] = d
    looked_up: list[int] = []
    if can_shift(operation, inputs):
        components = numbers.scattered_dims_to_operand_dims
        looked_up = [d for d in components if d in numbers.inserted_window_dims]
    for d in looked_up:
        operand[d] = d
    kind = combiner_of(operation.regions[0]) if inputs == 1 else None
    reduced: set[int] = set()
    if kind in ("add", "maximum", "minimum") and can_shift(operation, inputs):
        for d in batches:
            if indices[d] is None:
                factor = len(shape) + d
                indices[d] = updates[place[d]] = factor
                reduced.add(factor)
    given = [operand] * inputs + [indices] + [updates] * inputs
    fills = zeros_for(operation) if kind == "add" else None
    factors = Factors(given, [operand] * inputs, frozenset(reduced), kind or "add", fills)
    mesh, axes = shard(localiser, operation, factors)
    if mesh is not None:
        _once(localiser, operation, factors, mesh, axes)
        shifted = [d for d in looked_up if axes.get(d)]
        if shifted:
            localiser.require(operation, inputs, sharded(mesh, indices, axes))
            value = operation.operands[inputs]
            components = list(numbers.scattered_dims_to_operand_dims)
            shift = Shift(mesh, shape, components, numbers.index_vector_dim, axes)
            # Scatters skip updates outside the block.
            localiser.put(operation, inputs, shift.local(localiser.emit, value, shifted))
    localise(localiser, operation, factors)


def _once(
    localiser: Localiser, operation: Any, factors: Factors, mesh: Mesh, axes: dict[int, SubAxes]
) -> None:
    """Keeps the operand on one of the devices whose results are summed; the others get zeros."""
    combined = factors.combined(axes)
    value = operation.operands[0]
    if not combined or factors.kind != "add" or is_neutral(value, "add"):
        return
    localiser.require(operation, 0, sharded(mesh, factors.operands[0], axes))
    value, emit = operation.operands[0], localiser.emit
    first = emit.is_device(mesh.values(combined) == 0)
    zeros = emit.zeros(value.type.shape, value.type)
    localiser.put(operation, 0, emit.select(first, value, zeros))
