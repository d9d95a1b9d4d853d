"""convolution: every layout, stride, padding, dilation and grouping of XLA's as one of poplin's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule


@rule("convolution")
def convolution(builder: Builder, op: Op) -> Sequence[Any]:
    """Operands are seen as poplin's: [batch, channels, field...], [group, out, in, kernel...]."""
    numbers, attrs, debug = op.attrs["dimension_numbers"], op.attrs, builder.debug(op)
    data, kernel = builder.operands(op)
    data, kernel = _of_one_type(builder, op, data, kernel)
    data = data.dimShuffle(
        [
            numbers.input_batch_dimension,
            numbers.input_feature_dimension,
            *numbers.input_spatial_dimensions,
        ]
    )
    kernel = kernel.dimShuffle(
        [
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            *numbers.kernel_spatial_dimensions,
        ]
    )
    groups = attrs.get("feature_group_count", 1)
    batch_groups = attrs.get("batch_group_count", 1)
    if batch_groups > 1:
        data, groups = _batch_groups_as_channels(data, batch_groups), batch_groups
    out_channels, in_channels, *kernel_shape = kernel.shape
    weights = kernel.reshape([groups, out_channels // groups, in_channels, *kernel_shape])
    params = _params(builder, op, data, weights)
    product = ipu.poplin.convolution(
        builder.graph,
        data,
        weights,
        params,
        False,
        builder.program,
        debug,
        builder.matmul_options,
        builder.plans,
    )
    order = [
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        *numbers.output_spatial_dimensions,
    ]
    inverse = [order.index(dim) for dim in range(len(order))]
    return builder.round_bfloat16(op, [product.dimShuffle(inverse)])


def _batch_groups_as_channels(data: Any, groups: int) -> Any:
    """[groups * n, c, ...] -> [n, groups * c, ...]: each group convolves its part of the batch."""
    batch, channels, *field = data.shape
    split = data.reshape([groups, batch // groups, channels, *field])
    order = [1, 0, *range(2, len(split.shape))]
    return split.dimShuffle(order).reshape([batch // groups, groups * channels, *field])


def _params(builder: Builder, op: Op, data: Any, weights: Any) -> Any:
    poplin, attrs = ipu.poplin, op.attrs
    groups, out_channels, in_channels, *kernel_shape = weights.shape
    rank = len(kernel_shape)
    input_dilation = list(attrs.get("lhs_dilation", (1,) * rank))
    kernel_dilation = list(attrs.get("rhs_dilation", (1,) * rank))
    strides = list(attrs.get("window_strides", (1,) * rank))
    reversal = [bool(flag) for flag in attrs.get("window_reversal", (False,) * rank)]
    padding = [list(map(int, pair)) for pair in attrs.get("padding", [(0, 0)] * rank)]
    cut_pad = [
        [_cut_and_pad(edge, dilation) for edge in pair]
        for pair, dilation in zip(padding, input_dilation, strict=True)
    ]
    none, false = [0] * rank, [False] * rank
    return poplin.ConvParams(
        data.elementType(),
        builder.type_of(op.results[0]),
        data.shape[0],
        list(data.shape[2:]),
        kernel_shape,
        in_channels,
        out_channels,
        groups,
        poplin.InputTransform(
            [pair[0][0] for pair in cut_pad],
            [pair[1][0] for pair in cut_pad],
            input_dilation,
            [pair[0][1] for pair in cut_pad],
            [pair[1][1] for pair in cut_pad],
            false,
        ),
        poplin.InputTransform(none, none, kernel_dilation, none, none, reversal),
        poplin.OutputTransform(none, none, strides, none, none),
    )


def _cut_and_pad(edge: int, dilation: int) -> tuple[int, int]:
    """(elements cut before dilation, zeros added after it) for XLA's padding, maybe negative.

    Between two elements lie `dilation - 1` zeros: where the edge falls among them, one more element
    is cut and the zeros are put back.
    """
    if edge >= 0:
        return 0, edge
    cut = -(edge // dilation)
    return cut, cut * dilation + edge


def _of_one_type(builder: Builder, op: Op, data: Any, kernel: Any) -> tuple[Any, Any]:
    """Floats of one type stay (halves may give a float); others take the result's type."""
    kinds = {DTYPES[value.dtype].kind for value in op.operands}
    if data.elementType() == kernel.elementType() and DTYPES[op.results[0].dtype].kind in kinds:
        return data, kernel
    type_, debug = builder.type_of(op.results[0]), builder.debug(op)
    data, kernel = (
        each if each.elementType() == type_ else _cast(builder, each, type_, debug)
        for each in (data, kernel)
    )
    return data, kernel


def _cast(builder: Builder, tensor: Any, type_: Any, debug: Any) -> Any:
    e = ipu.popops.expr
    return builder.map([e.Cast(e.PlaceHolder(1), type_)], [tensor], debug)[0]
