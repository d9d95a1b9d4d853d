"""gather: windows of an array at run-time indices."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule

declare("gather", moves=True, complex="parts", indices=lambda op: range(1, 2))


@rule("gather")
def gather(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Indices are clamped so that each window lies inside."""
    operand, indices = builder.operands(op)
    numbers = op.attrs["dimension_numbers"]
    dims = ipu.popx.GatherDims()
    dims.offset_dims = list(numbers.offset_dims)
    dims.collapsed_slice_dims = list(numbers.collapsed_slice_dims)
    dims.operand_batching_dims = list(numbers.operand_batching_dims)
    dims.start_indices_batching_dims = list(numbers.start_indices_batching_dims)
    dims.start_index_map = list(numbers.start_index_map)
    dims.index_vector_dim = numbers.index_vector_dim
    dims.slice_sizes = list(op.attrs["slice_sizes"])
    return [
        ipu.popx.gather(builder.graph, operand, indices, dims, builder.program, builder.debug(op))
    ]
