"""scatter: combines windows of arrays with updates at run-time indices."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.elementwise import body_expressions
from ipujax.compiler.rules.registry import rule

declare(
    "scatter",
    update=True,
    combines=True,
    complex="pairs",
    indices=lambda op: range(len(op.results), len(op.results) + 1),
)


@rule("scatter")
def scatter(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Copies of the operands, changed in place; a copy is free at the operand's last use."""
    count, debug, numbers = (
        len(op.results),
        builder.debug(op),
        op.attrs["scatter_dimension_numbers"],
    )
    tensors = builder.operands(op)
    operands = [builder.materialise(tensor, debug) for tensor in tensors[:count]]
    dims = ipu.popx.ScatterDims()
    dims.update_window_dims = list(numbers.update_window_dims)
    dims.inserted_window_dims = list(numbers.inserted_window_dims)
    dims.input_batching_dims = list(numbers.input_batching_dims)
    dims.scatter_indices_batching_dims = list(numbers.scatter_indices_batching_dims)
    dims.scatter_dims_to_operand_dims = list(numbers.scattered_dims_to_operand_dims)
    dims.index_vector_dim = numbers.index_vector_dim
    dims.unique_indices = bool(op.attrs.get("unique_indices", False))
    dims.indices_are_sorted = bool(op.attrs.get("indices_are_sorted", False))
    ipu.popx.scatter(
        builder.graph,
        operands,
        tensors[count],
        tensors[count + 1 :],
        dims,
        body_expressions(op.regions[0]),
        builder.program,
        debug,
    )
    return operands
