"""8-bit floats of `ipu.ops`: casts to and from quarters, and their products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.errors import UnsupportedDtypeError

#: poplibs has convolution vertices for quarters only on this architecture.
_ARCHITECTURE = "ipu21"
#: The largest number of each format.
_LARGEST = {"F143": 240.0, "F152": 57344.0}


@custom_call_rule("ipu_cast_to_float8")
def cast_to_float8(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The bytes of quarters. Clamps numbers that are too large: a cast would make them NaN."""
    parameters, debug = parameters_of(op), builder.debug(op)
    name, scale = parameters["format"], parameters["scale"]
    (x,) = builder.operands(op)
    expr, floats = ipu.popops.expr, ipu.poplar.FLOAT
    largest = expr.Const(floats, _LARGEST[name] * 2.0**scale)
    wide = expr.Cast(expr.PlaceHolder(1), floats)
    cut = expr.Clamp(wide, expr.Neg(largest), largest)
    (bounded,) = builder.map([expr.Select(cut, wide, expr.IsFinite(wide))], [x], debug)
    quarters = ipu.popops.cast(
        builder.graph,
        bounded,
        ipu.poplar.QUARTER,
        _metadata(builder, op, name, scale),
        builder.program,
        debug,
    )
    return [quarters.reinterpret(ipu.poplar.UNSIGNED_CHAR)]


@custom_call_rule("ipu_cast_from_float8")
def cast_from_float8(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The numbers that the bytes encode."""
    parameters = parameters_of(op)
    (bits,) = builder.operands(op)
    quarters = _quarters(builder, op, bits, parameters["format"], parameters["scale"])
    type_ = builder.type_of(op.results[0])
    return [ipu.popops.cast(builder.graph, quarters, type_, builder.program, builder.debug(op))]


@custom_call_rule("ipu_float8_matmul", computes=True)
def float8_matmul(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Multiplies numbers without their scales, which the caller applies to the result."""
    arch = builder.whole_graph.getTarget().getTargetArchString()
    parameters = parameters_of(op)
    if arch != _ARCHITECTURE and not parameters["emulate"]:
        raise UnsupportedDtypeError(
            f"[ipu.ops.float8_matmul] needs a C600 ({_ARCHITECTURE}), whose tiles multiply floats "
            f"of 8 bits; got a machine of architecture {arch}. Pass emulate=True, or set "
            "IPUJAX_MACHINE=c600."
        )
    operands = [
        _quarters(builder, op, bits, name, 0)
        for bits, name in zip(builder.operands(op), parameters["formats"], strict=True)
    ]
    if parameters["emulate"]:
        half, debug = ipu.poplar.HALF, builder.debug(op)
        operands = [
            ipu.popops.cast(builder.graph, each, half, builder.program, debug) for each in operands
        ]
    left, right = operands
    groups = math.prod(left.shape[:-2])
    rounds_later = (
        builder.options.stochastic_rounding or builder.options.half_overflow != "infinity"
    )
    type_ = ipu.poplar.FLOAT if rounds_later else builder.type_of(op.results[0])
    product = ipu.poplin.matMulGrouped(
        builder.graph,
        left.reshape([groups, *left.shape[-2:]]),
        right.reshape([groups, *right.shape[-2:]]),
        builder.program,
        type_,
        builder.debug(op),
        builder.product_options(op),
        builder.plans,
    )
    product = builder.cast(product, builder.type_of(op.results[0]), builder.debug(op))
    return [product.reshape(list(op.results[0].shape))]


def _metadata(builder: Builder, op: Op, name: str, scale: int) -> ipu.Tensor:
    format_ = getattr(ipu.poplar.QuarterFormat, name)
    return ipu.poplar.createConstantMetadataTensor(builder.graph, format_, scale, builder.debug(op))


def _quarters(builder: Builder, op: Op, bits: ipu.Tensor, name: str, scale: int) -> ipu.Tensor:
    """A variable of quarters with these bytes."""
    debug, metadata = builder.debug(op), _metadata(builder, op, name, scale)
    quarters = builder.graph.clone(ipu.poplar.QUARTER, metadata, bits, debug)
    builder.copy(bits, quarters.reinterpret(ipu.poplar.UNSIGNED_CHAR), debug)
    return quarters
