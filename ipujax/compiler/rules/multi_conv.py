"""`ipu.ops.multi_conv`: convolutions in one call of poplin."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.convolution import conv_params
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.config.product_options import flags_of


@custom_call_rule("ipu_multi_conv", computes=True)
def multi_conv(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Operands are [batch, channels, field...] and [out, in, kernel...], in turn.

    A cast rounds the results if they are not to be rounded to nearest.
    """
    config, multiconv = parameters_of(op), ipu.poplin.multiconv
    operands = builder.operands(op)
    common = builder.product_options(op, is_convolution=True)
    options = builder.options
    rounds_later = options.stochastic_rounding or options.half_overflow != "infinity"
    args = []
    for number, conv in enumerate(config["convs"]):
        strides, padding, left, right, groups, own = conv
        data, kernel = operands[2 * number : 2 * number + 2]
        out_channels, in_channels, *shape = kernel.shape
        weights = kernel.reshape([groups, out_channels // groups, in_channels, *shape])
        attrs = {"rhs_dilation": right, "window_strides": strides}
        type_ = builder.type_of(op.results[number])
        if rounds_later and type_ == ipu.poplar.HALF:
            type_ = ipu.poplar.FLOAT
        params = conv_params(attrs, data, weights, type_, padding, left)
        args.append(multiconv.ConvolutionArgs(data, weights, params, {**common, **flags_of(own)}))
    made = multiconv.convolution(
        builder.graph,
        args,
        False,
        builder.program,
        builder.debug(op),
        dict(flags_of(config["options"])),
        builder.plans,
    )
    made = [
        builder.cast(tensor, builder.type_of(value), builder.debug(op))
        for tensor, value in zip(made, op.results, strict=True)
    ]
    return builder.round_bfloat16(op, made)
