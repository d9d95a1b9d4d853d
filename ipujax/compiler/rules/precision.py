"""The precision that a program requests for products, and StableHLO's dot algorithms.

An IPU multiplies float16 and float32 and sums in either. If an algorithm asks for one
multiplication narrower than float32, its operands are rounded; if it builds float32 from several
narrow ones, it runs in float32, and so does TensorFloat-32, which is narrower. The pass
`dot_algorithms` has removed algorithms that multiply other types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder

_FIELD = re.compile(r"(\w+) = (\w+)")
_MULTIPLIED = ("f16", "bf16", "f32", "tf32")
_SUMMED = {"f16": "half", "bf16": "float", "f32": "float"}


@dataclass(frozen=True, slots=True)
class Algorithm:
    """An algorithm attribute, as far as it changes what an IPU does."""

    left: str
    right: str
    summed: str
    multiplications: int


def algorithm_of(op: Op) -> Algorithm | None:
    """The op's algorithm, or None if it requests none."""
    text = op.attrs.get("algorithm")
    if text is None:
        return None
    fields = dict(_FIELD.findall(str(text)))
    return Algorithm(
        fields["lhs_precision_type"],
        fields["rhs_precision_type"],
        fields["accumulation_type"],
        int(fields["num_primitive_operations"]),
    )


def algorithm_refusal(op: Op) -> str | None:
    """Why the op's algorithm is not supported, or None if it is."""
    algorithm = algorithm_of(op)
    if algorithm is None:
        return None
    for name in (algorithm.left, algorithm.right):
        if name not in _MULTIPLIED:
            return f"no algorithm multiplies {name} on an IPU; choose F32_F32_F32"
    if algorithm.summed not in _SUMMED:
        return f"no algorithm sums {algorithm.left} in {algorithm.summed} on an IPU; choose f32"
    return None


def product_options(builder: Builder, op: Op) -> dict[str, str]:
    """The options of poplin's products: the user's, unless the op itself says how to sum."""
    options, algorithm = builder.product_options(op), algorithm_of(op)
    if algorithm is not None:
        return {**options, "partialsType": _SUMMED[algorithm.summed]}
    if "HIGHEST" in op.attrs.get("precision_config", ()):
        return {**options, "partialsType": "float"}
    return options


def as_multiplied(builder: Builder, op: Op, tensors: Sequence[ipu.Tensor]) -> list[ipu.Tensor]:
    """The operands, rounded if one narrow multiplication was requested."""
    algorithm = algorithm_of(op)
    if algorithm is None or algorithm.multiplications > 1:
        return list(tensors)
    rounded = []
    for value, wanted, tensor in zip(
        op.operands, (algorithm.left, algorithm.right), tensors, strict=True
    ):
        if wanted == "bf16" and value.dtype == "f32":
            tensor = builder.each(tensor, ipu.popx.expr.RoundToBFloat16, builder.debug(op))
        elif wanted == "f16" and value.dtype == "f32":
            tensor = builder.cast(tensor, ipu.poplar.HALF, builder.debug(op))
        rounded.append(tensor)
    return rounded


def rounded_sum(builder: Builder, op: Op, product: ipu.Tensor) -> ipu.Tensor:
    """The product, rounded if sums in bfloat16 were requested."""
    algorithm = algorithm_of(op)
    if algorithm is None or algorithm.summed != "bf16" or op.results[0].dtype != "f32":
        return product
    return builder.each(product, ipu.popx.expr.RoundToBFloat16, builder.debug(op))


def summed_type(builder: Builder, op: Op) -> ipu.Type:
    """The type to sum in: the result's, or a more exact one that is cast afterwards.

    Booleans are summed as integers, and floats as floats: as float64 if an operand is.
    """
    result = op.results[0]
    if result.dtype == "i1":
        return ipu.poplar.INT
    floats = [value.dtype for value in op.operands if DTYPES[value.dtype].kind == "f"]
    if "f64" in floats:
        return builder.types["f64"]
    if floats and DTYPES[result.dtype].kind != "f":
        return ipu.poplar.FLOAT
    return builder.type_of(result)


def as_summed(
    builder: Builder, op: Op, left: ipu.Tensor, right: ipu.Tensor, type_: ipu.Type
) -> tuple[ipu.Tensor, ipu.Tensor]:
    """Keeps integers, and floats of one type (halves may give a float); casts others to `type_`."""
    native = (ipu.poplar.FLOAT, ipu.poplar.HALF)
    if left.elementType() == right.elementType() in native and type_ in native:
        return left, right
    if all(_is_integer(builder, t) for t in (left.elementType(), right.elementType(), type_)):
        return left, right
    debug = builder.debug(op)
    return builder.cast(left, type_, debug), builder.cast(right, type_, debug)


def _is_integer(builder: Builder, type_: ipu.Type) -> bool:
    """Whether the type is an integer of any width and sign; bool counts as 0 and 1."""
    return type_ not in (ipu.poplar.FLOAT, ipu.poplar.HALF, builder.types.get("f64"))


def as_result(builder: Builder, op: Op, product: ipu.Tensor) -> ipu.Tensor:
    """The product in the type of the op's result."""
    type_, e = builder.type_of(op.results[0]), ipu.popops.expr
    summed = product.elementType()
    if type_ == ipu.poplar.BOOL != summed:
        return builder.each(product, lambda x: e.NotEqual(x, e.Const(summed, 0)), builder.debug(op))
    return builder.cast(product, type_, builder.debug(op))
