"""convolution: maps each layout, stride, padding, dilation and grouping of XLA to poplin's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, declare, splat
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.precision import as_result, as_summed, product_options, summed_type
from ipujax.compiler.rules.registry import rule

declare("convolution", product=True)


@rule("convolution")
def convolution(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Operands in poplin's layout: [batch, channels, field...], [group, out, in, kernel...]."""
    numbers, attrs, debug = op.attrs["dimension_numbers"], op.attrs, builder.debug(op)
    data, kernel = builder.operands(op)
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
    rank = len(kernel_shape)
    padding = [list(map(int, pair)) for pair in attrs.get("padding", [(0, 0)] * rank)]
    dilation = list(attrs.get("lhs_dilation", (1,) * rank))
    data = _cut_to_nothing_before(builder, op, data, padding, dilation)
    type_ = summed_type(builder, op)
    data, weights = as_summed(builder, op, data, weights, type_)
    params = conv_params(attrs, data, weights, type_, padding, dilation)
    product = ipu.poplin.convolution(
        builder.graph,
        data,
        weights,
        params,
        False,
        builder.program,
        debug,
        product_options(builder, op),
        builder.plans,
    )
    order = [
        numbers.output_batch_dimension,
        numbers.output_feature_dimension,
        *numbers.output_spatial_dimensions,
    ]
    inverse = [order.index(dim) for dim in range(len(order))]
    product = as_result(builder, op, product)
    return builder.round_bfloat16(op, [product.dimShuffle(inverse)])


def _batch_groups_as_channels(data: ipu.Tensor, groups: int) -> ipu.Tensor:
    """[groups * n, c, ...] -> [n, groups * c, ...]: each group convolves its part of the batch."""
    batch, channels, *field = data.shape
    split = data.reshape([groups, batch // groups, channels, *field])
    order = [1, 0, *range(2, len(split.shape))]
    return split.dimShuffle(order).reshape([batch // groups, groups * channels, *field])


def _cut_to_nothing_before(
    builder: Builder, op: Op, data: ipu.Tensor, padding: list[list[int]], dilation: list[int]
) -> ipu.Tensor:
    """Pads dimensions where a negative edge removes the whole field and the other edge adds to it.

    poplin cuts before it pads. `padding` and `dilation` of such dimensions are reset, in place.
    """
    low, high, interior = ([0] * len(data.shape) for _ in range(3))
    for dim, (pair, step) in enumerate(zip(padding, dilation, strict=True)):
        cut = sum(_cut_and_pad(edge, step)[0] for edge in pair)
        if cut and cut >= data.shape[dim + 2]:
            low[dim + 2], high[dim + 2] = pair
            interior[dim + 2] = step - 1
            padding[dim], dilation[dim] = [0, 0], 1
    if not any(low) and not any(high):
        return data
    dtype = op.operands[0].dtype
    zero = builder.tensor(splat(np.zeros((), DTYPES[dtype].numpy), (1,), dtype))
    debug = builder.debug(op)
    return ipu.popx.pad(builder.graph, data, zero, low, high, interior, builder.program, debug)


def conv_params(
    attrs: Mapping[str, Any],
    data: ipu.Tensor,
    weights: ipu.Tensor,
    type_: ipu.Type,
    padding: list[list[int]],
    input_dilation: list[int],
) -> ipu.poplin.ConvParams:
    """The parameters for operands in poplin's layout, from XLA's attributes."""
    poplin = ipu.poplin
    groups, out_channels, in_channels, *kernel_shape = weights.shape
    rank = len(kernel_shape)
    kernel_dilation = list(attrs.get("rhs_dilation", (1,) * rank))
    strides = list(attrs.get("window_strides", (1,) * rank))
    reversal = [bool(flag) for flag in attrs.get("window_reversal", (False,) * rank)]
    cut_pad = [
        [_cut_and_pad(edge, dilation) for edge in pair]
        for pair, dilation in zip(padding, input_dilation, strict=True)
    ]
    none, false = [0] * rank, [False] * rank
    return poplin.ConvParams(
        data.elementType(),
        type_,
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

    Between two elements lie `dilation - 1` zeros: if the edge falls among them, one more element
    is cut and the zeros are put back.
    """
    if edge >= 0:
        return 0, edge
    cut = -(edge // dilation)
    return cut, cut * dilation + edge
