"""dot_general: a grouped matrix product over views of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ipujax.compiler.ir import Op, Shape
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule


def matmul_options(builder: Builder) -> dict[str, str]:
    """What poplin is told of the user's wishes."""
    return {
        "partialsType": builder.options.partials_type,
        "availableMemoryProportion": str(builder.options.available_memory_proportion),
    }


@rule("dot_general")
def dot_general(builder: Builder, op: Op) -> Sequence[Any]:
    """[batch..., rows..., columns...]: both operands are seen as [groups, rows, columns]."""
    lhs, rhs = op.operands
    numbers, debug = op.attrs["dot_dimension_numbers"], builder.debug(op)
    lhs_free = _free(lhs.shape, numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions)
    rhs_free = _free(rhs.shape, numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions)
    groups = math.prod(lhs.shape[d] for d in numbers.lhs_batching_dimensions)
    inner = math.prod(lhs.shape[d] for d in numbers.lhs_contracting_dimensions)
    rows = math.prod(lhs.shape[d] for d in lhs_free)
    columns = math.prod(rhs.shape[d] for d in rhs_free)
    left_order = (*numbers.lhs_batching_dimensions, *lhs_free, *numbers.lhs_contracting_dimensions)
    right_order = (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions, *rhs_free)
    left = _view(builder.tensor(lhs), left_order, [groups, rows, inner])
    right = _view(builder.tensor(rhs), right_order, [groups, inner, columns])
    result = op.results[0]
    type_ = builder.type_of(result) if result.dtype != "i1" else ipu.poplar.INT
    left, right = _same_type(builder, left, right, type_, debug)
    product = ipu.poplin.matMulGrouped(
        builder.graph, left, right, builder.program, type_, debug, matmul_options(builder)
    )
    if result.dtype == "i1":
        e = ipu.popops.expr
        is_any = e.NotEqual(e.PlaceHolder(1), e.Const(type_, 0))
        (product,) = builder.map([is_any], [product], debug)
    return builder.round_bfloat16(op, [product.reshape(list(result.shape))])


def _free(shape: Shape, batch: Sequence[int], contracted: Sequence[int]) -> list[int]:
    return [dim for dim in range(len(shape)) if dim not in batch and dim not in contracted]


def _view(tensor: Any, order: Sequence[int], shape: list[int]) -> Any:
    if list(order) != list(range(len(order))):
        tensor = tensor.dimShuffle(list(order))
    return tensor if tensor.shape == shape else tensor.reshape(shape)


def _same_type(builder: Builder, left: Any, right: Any, type_: Any, debug: Any) -> tuple[Any, Any]:
    """Floats of one type stay (halves may give a float); others take the result's type."""
    if left.elementType() == right.elementType() and left.elementType() in (
        ipu.poplar.FLOAT,
        ipu.poplar.HALF,
    ):
        return left, right
    e = ipu.popops.expr
    cast = [
        tensor
        if tensor.elementType() == type_
        else builder.map([e.Cast(e.PlaceHolder(1), type_)], [tensor], debug)[0]
        for tensor in (left, right)
    ]
    return cast[0], cast[1]
