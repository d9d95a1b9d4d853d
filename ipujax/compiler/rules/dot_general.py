"""dot_general: a grouped matrix product over views of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ipujax.compiler.dtypes import DTYPES
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
    if DTYPES[result.dtype].kind == "f":
        left, right = _same_type(builder, op, left, right, debug)
        product = ipu.poplin.matMulGrouped(
            builder.graph,
            left,
            right,
            builder.program,
            builder.type_of(result),
            debug,
            matmul_options(builder),
        )
    else:
        product = _integer_product(builder, op, left, right, debug)
    return builder.round_bfloat16(op, [product.reshape(list(result.shape))])


def _free(shape: Shape, batch: Sequence[int], contracted: Sequence[int]) -> list[int]:
    return [dim for dim in range(len(shape)) if dim not in batch and dim not in contracted]


def _view(tensor: Any, order: Sequence[int], shape: list[int]) -> Any:
    if list(order) != list(range(len(order))):
        tensor = tensor.dimShuffle(list(order))
    return tensor if tensor.shape == shape else tensor.reshape(shape)


def _same_type(builder: Builder, op: Op, left: Any, right: Any, debug: Any) -> tuple[Any, Any]:
    """Operands of different types are widened to float: no product is done half in one type."""
    if left.elementType() == right.elementType():
        return left, right
    e, wide = ipu.popops.expr, ipu.poplar.FLOAT
    cast = [
        tensor
        if tensor.elementType() == wide
        else builder.map([e.Cast(e.PlaceHolder(1), wide)], [tensor], debug)[0]
        for tensor in (left, right)
    ]
    return cast[0], cast[1]


def _integer_product(builder: Builder, op: Op, left: Any, right: Any, debug: Any) -> Any:
    """The AMP unit multiplies floats only: products elementwise, then their sum, wrapping."""
    e = ipu.popops.expr
    type_ = builder.type_of(op.results[0])
    groups, rows, inner = left.shape
    columns = right.shape[2]
    shape = [groups, rows, columns, inner]
    left = left.reshape([groups, rows, 1, inner]).broadcast(columns, 2)
    right = right.dimShuffle([0, 2, 1]).reshape([groups, 1, columns, inner]).broadcast(rows, 1)
    factors = []
    for index, tensor in enumerate((left, right)):
        place = e.PlaceHolder(index + 1)
        factors.append(place if tensor.elementType() == type_ else e.Cast(place, type_))
    is_bool = op.results[0].dtype == "i1"
    multiply, add = (e.And, e.Or) if is_bool else (e.Mul, e.Add)
    if inner == 0 or 0 in shape:
        return _zeros(builder, type_, [groups, rows, columns], debug)
    (products,) = builder.map([multiply(*factors)], [left, right], debug)
    zero = _zeros(builder, type_, [], debug)
    body = [add(e.PlaceHolder(1), e.PlaceHolder(2))]
    (total,) = ipu.popx.reduce(builder.graph, [products], [zero], body, [3], builder.program, debug)
    return total


def _zeros(builder: Builder, type_: Any, shape: list[int], debug: Any) -> Any:
    size = builder.graph.getTarget().getTypeSize(type_)
    return builder.graph.addConstantBytes(type_, shape, bytes(size * math.prod(shape)), "zeros")
