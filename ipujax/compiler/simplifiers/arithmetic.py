"""Simplifies arithmetic that changes nothing, or that is one instruction on an IPU.

Float identities are only those that hold for every float: x * 1, x / 1, x - 0, never x + 0 (-0 + 0
is 0).
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from ipujax.compiler.dtypes import DTYPES, FLOATS
from ipujax.compiler.ir import Op, Value, Writer, number, splat_of
from ipujax.compiler.ir.fold import is_identity
from ipujax.compiler.ir.rewriter import Rule

#: A divisor's reciprocal is computed first if the divisor is repeated at least this often.
FEWER = 8


def _without_identity(w: Writer, op: Op) -> list[Value] | None:
    if op.name == "add" and DTYPES[op.results[0].dtype].kind == "f":
        return None
    lhs, rhs = op.operands
    if is_identity(rhs, op.name):
        return [lhs]
    return [rhs] if is_identity(lhs, op.name) else None


def _divide(w: Writer, op: Op) -> list[Value] | None:
    dividend, divisor = op.operands
    if splat_of(divisor) == 1:
        return [dividend]
    reciprocal = _exact_reciprocal(divisor)
    if reciprocal is not None:
        op.name, op.operands = "multiply", [dividend, reciprocal]
        return None
    x = _argument_of_logistic(op)
    if x is not None:
        op.name, op.operands = "logistic", [x]
    elif divisor.dtype in ("f16", "bf16"):
        return _times_reciprocal(w, dividend, divisor)
    return None


def _exact_reciprocal(divisor: Value) -> Value | None:
    """1 / 2^k: x / 2^k and x * 2^-k are the same float for every x, and a product is faster."""
    power = splat_of(divisor)
    if power is None or divisor.dtype not in FLOATS:
        return None
    mantissa, exponent = math.frexp(power)
    if abs(mantissa) != 0.5:
        return None
    inverse = np.float64(math.ldexp(2 * mantissa, 1 - exponent))
    with np.errstate(over="ignore"):
        is_exact = np.float64(inverse.astype(DTYPES[divisor.dtype].numpy)) == inverse
    is_normal = abs(inverse) >= np.finfo(np.float16 if divisor.dtype == "f16" else np.float32).tiny
    if not (is_exact and is_normal):
        return None
    return number(float(inverse), divisor.shape, divisor.dtype)


def _times_reciprocal(w: Writer, x: Value, divisor: Value) -> list[Value] | None:
    """x / s with one s per row, as in a softmax: x times 1 / s in float32, rounded once.

    popnn's softmax does this too: s has far fewer elements, and products are faster.
    """
    repeat = divisor.op
    if repeat is None or repeat.name != "broadcast_in_dim":
        return None
    s = repeat.operands[0]
    if s.num_elements == 1 or s.is_splat or s.num_elements * FEWER > divisor.num_elements:
        return None
    wide = w.term(s).convert("f32")
    reciprocal = w.op("broadcast_in_dim", [(1 / wide).value], repeat.attrs, shape=divisor.shape)
    return [w.op("multiply_wide", [x, reciprocal])]


def _argument_of_logistic(op: Op) -> Value | None:
    """x of 1 / (1 + exp(-x)): JAX writes it out; on an IPU it is one instruction."""
    one, below = op.operands
    if splat_of(one) != 1 or below.op is None or below.op.name != "add":
        return None
    lhs, rhs = below.op.operands
    power = rhs if splat_of(lhs) == 1 else lhs if splat_of(rhs) == 1 else None
    if power is None or power.op is None or power.op.name != "exponential":
        return None
    negated = power.op.operands[0].op
    return negated.operands[0] if negated is not None and negated.name == "negate" else None


def _subtract(w: Writer, op: Op) -> list[Value] | None:
    lhs, rhs = op.operands
    zero = splat_of(rhs)
    return [lhs] if zero == 0 and not np.signbit(zero) else None


def _select(w: Writer, op: Op) -> list[Value] | None:
    predicate, on_true, on_false = op.operands
    if on_true is on_false:
        return [on_true]
    chosen = splat_of(predicate)
    return None if chosen is None else [on_true if chosen else on_false]


def _dot_general(w: Writer, op: Op) -> list[Value] | None:
    """Without a sum, it multiplies pairs of elements, and fuses with its neighbours."""
    numbers, result = op.attrs["dot_dimension_numbers"], op.results[0]
    sides = [
        (numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    ]
    is_sum = any(op.operands[0].shape[dim] != 1 for dim in sides[0][1])
    if is_sum or "algorithm" in op.attrs or 0 in result.shape:
        return None
    if any(value.dtype not in FLOATS for value in (*op.operands, result)):
        return None
    factors = []
    begin = len(sides[0][0])  #: of the free dimensions in the result
    for value, (batch, contracted) in zip(op.operands, sides, strict=True):
        if value.dtype != result.dtype:
            value = w.op("convert", [value], dtype=result.dtype)
        kept = [dim for dim in range(len(value.shape)) if dim not in contracted]
        free = [dim for dim in kept if dim not in batch]
        place = {dim: n for n, dim in enumerate(batch)}
        place |= {dim: begin + n for n, dim in enumerate(free)}
        begin += len(free)
        shape = tuple(value.shape[dim] for dim in kept)
        if shape != value.shape:
            value = w.reshape(value, shape)
        places = tuple(place[dim] for dim in kept)
        if value.shape != result.shape or places != tuple(range(len(places))):
            value = w.broadcast(value, places, result.shape)
        factors.append(value)
    return [w.op("multiply", factors)]


def _reduce_precision(w: Writer, op: Op) -> list[Value] | None:
    """Drops it if the type has no more bits, as for values that a jax.checkpoint policy saves."""
    (operand,) = op.operands
    own: Any = ml_dtypes.finfo(DTYPES[operand.dtype].numpy)  # type: ignore[no-untyped-call]
    keeps = op.attrs["exponent_bits"] >= own.nexp and op.attrs["mantissa_bits"] >= own.nmant
    return [operand] if keeps else None


RULES: dict[str, Rule] = {
    "add": _without_identity,
    "and": _without_identity,
    "divide": _divide,
    "dot_general": _dot_general,
    "multiply": _without_identity,
    "or": _without_identity,
    "reduce_precision": _reduce_precision,
    "select": _select,
    "subtract": _subtract,
}
