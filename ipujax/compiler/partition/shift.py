"""Converts indices into a tensor to indices into a device's block of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from ipujax.compiler.partition.emit import Emitter
from ipujax.compiler.partition.localise import Localiser
from ipujax.compiler.partition.mesh import Mesh, Shape, SubAxes, block_size


def can_shift(operation: Any, indices: int) -> bool:
    """Whether places in a block can be computed in the indices' type, and zeros added."""
    element = operation.operands[indices].type.element_type
    values = operation.results[0].type.element_type
    return (
        isinstance(element, ir.IntegerType)
        and element.width >= 32
        and not isinstance(values, ir.ComplexType)
    )


def batch_dims(indices: Shape, vector_dim: int) -> list[int]:
    """The dimensions of the indices, without the one that holds index vectors."""
    return [d for d in range(len(indices)) if d != vector_dim]


def is_inside(emit: Emitter, places: Any, size: int, others: Any) -> Any:
    """Whether places are inside a block of that size, and `others`, if any, are too: i1."""
    low, high = (emit.filled(number, places.type) for number in (0, size))
    above, below = emit.compare("GE", places, low), emit.compare("LT", places, high)
    here = emit.one("stablehlo.and", above.type, [above, below])
    return here if others is None else emit.one("stablehlo.and", here.type, [others, here])


def zero_outside(
    localiser: Localiser, operation: Any, inside: Any, dims: Sequence[int] | None = None
) -> None:
    """Sets elements of the op's local result to zero where they are not `inside`.

    Args:
        dims: the result dimensions that correspond to those of `inside`; None for a scalar.
    """
    # A copy replaces the op, since the selection comes after it.
    found = operation.clone(ip=ir.InsertionPoint(operation)).results[0]
    emit, shape = localiser.emit, list(found.type.shape)
    if dims is not None:
        inside = emit.spread(inside, shape, dims)
    localiser.replace(operation, emit.select(inside, found, emit.zeros(shape, found.type)))


class Shift(NamedTuple):
    """Converts indices into a tensor to indices into a device's block.

    Attributes:
        shape: of the whole tensor.
        components: the dimension that each number of an index vector indexes.
        vector_dim: the dimension of the indices that holds those numbers.
        axes: how the tensor's dimensions are sharded.
    """

    mesh: Mesh
    shape: Shape
    components: list[int]
    vector_dim: int
    axes: dict[int, SubAxes]

    def clamped(self, emit: Emitter, indices: Any, dims: list[int]) -> Any:
        """Clamps the indices: gathers take the nearest element if an index is outside."""
        limits = [self.shape[d] - 1 if d in dims else 2**31 - 1 for d in self.components]
        low = [0 if d in dims else -(2**31) for d in self.components]
        element = indices.type.element_type
        if element.is_unsigned:
            low = [0] * len(low)
        bounds = [self._vectors(emit, np.array([row]), indices) for row in (low, limits)]
        return emit.one("stablehlo.clamp", indices.type, [bounds[0], indices, bounds[1]])

    def local(self, emit: Emitter, indices: Any, dims: list[int]) -> Any:
        """The indices, relative to the start of the device's block."""
        columns = [
            self.mesh.values(self.axes[d]) * block_size(self.shape[d], self.axes[d])
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
            if d in dims:
                part = self._component(emit, indices, k)
                found = is_inside(emit, part, block_size(self.shape[d], self.axes[d]), found)
        return found

    def _component(self, emit: Emitter, indices: Any, k: int) -> Any:
        shape = list(indices.type.shape)
        if self.vector_dim == len(shape):
            return indices
        part = emit.take(indices, self.vector_dim, k, k + 1)
        return emit.reshape(part, [s for d, s in enumerate(shape) if d != self.vector_dim])

    def _vectors(self, emit: Emitter, rows: np.ndarray, indices: Any) -> Any:
        """A device's row, repeated for every index vector."""
        shape, element = list(indices.type.shape), indices.type.element_type
        if self.vector_dim == len(shape):
            return emit.broadcast(emit.by_device(rows[:, 0], element), shape)
        return emit.spread(emit.by_device(rows, element), shape, [self.vector_dim])
