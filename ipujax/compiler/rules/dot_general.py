"""dot_general: a grouped matrix product over views of the operands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ipujax.compiler.ir import Op, Shape, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.precision import (
    as_multiplied,
    as_result,
    as_summed,
    product_options,
    rounded_sum,
    summed_type,
)
from ipujax.compiler.rules.registry import rule

declare("dot_general", product=True)


@dataclass(frozen=True, slots=True)
class GroupedShape:
    """A product as [groups, rows, inner] x [groups, inner, columns], and how operands get there."""

    left: list[int]
    right: list[int]
    left_order: tuple[int, ...]
    right_order: tuple[int, ...]


def grouped_shape(op: Op) -> GroupedShape:
    """A dot_general as one grouped matrix product."""
    lhs, rhs = (value.shape for value in op.operands)
    numbers = op.attrs["dot_dimension_numbers"]
    left_batch, left_inner = numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions
    right_batch, right_inner = numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions
    left_free = _free(lhs, left_batch, left_inner)
    right_free = _free(rhs, right_batch, right_inner)
    groups = math.prod(lhs[d] for d in left_batch)
    inner = math.prod(lhs[d] for d in left_inner)
    return GroupedShape(
        left=[groups, math.prod(lhs[d] for d in left_free), inner],
        right=[groups, inner, math.prod(rhs[d] for d in right_free)],
        left_order=(*left_batch, *left_free, *left_inner),
        right_order=(*right_batch, *right_inner, *right_free),
    )


@rule("dot_general")
def dot_general(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """[batch..., rows..., columns...]: both operands are viewed as [groups, rows, columns]."""
    result, debug, shape = op.results[0], builder.debug(op), grouped_shape(op)
    left, right = as_multiplied(builder, op, builder.operands(op))
    left = _view(left, shape.left_order, shape.left)
    right = _view(right, shape.right_order, shape.right)
    type_ = summed_type(builder, op)
    left, right = as_summed(builder, op, left, right, type_)
    product = ipu.poplin.matMulGrouped(
        builder.graph,
        left,
        right,
        builder.program,
        type_,
        debug,
        product_options(builder, op),
        builder.plans,
    )
    product = as_result(builder, op, rounded_sum(builder, op, product))
    return builder.round_bfloat16(op, [product.reshape(list(result.shape))])


def _free(shape: Shape, batch: Sequence[int], contracted: Sequence[int]) -> list[int]:
    return [dim for dim in range(len(shape)) if dim not in batch and dim not in contracted]


def _view(tensor: ipu.Tensor, order: Sequence[int], shape: list[int]) -> ipu.Tensor:
    if list(order) != list(range(len(order))):
        tensor = tensor.dimShuffle(list(order))
    return tensor if tensor.shape == shape else tensor.reshape(shape)
