"""Arithmetic that changes nothing, or that an IPU has as one instruction.

Float identities are only those that hold for every float: x * 1, x / 1, x - 0, never x + 0 (-0 + 0
is 0).
"""

from __future__ import annotations

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, Value, Writer
from ipujax.compiler.ir.fold import is_identity
from ipujax.compiler.ir.rewriter import Rule


def _is_all(value: Value, scalar: float) -> bool:
    return value.is_splat and value.const is not None and bool(value.const.flat[0] == scalar)


def _without_identity(w: Writer, op: Op) -> list[Value] | None:
    if op.name == "add" and DTYPES[op.results[0].dtype].kind == "f":
        return None
    lhs, rhs = op.operands
    if is_identity(rhs, op.name):
        return [lhs]
    return [rhs] if is_identity(lhs, op.name) else None


def _divide(w: Writer, op: Op) -> list[Value] | None:
    if _is_all(op.operands[1], 1):
        return [op.operands[0]]
    x = _argument_of_logistic(op)
    if x is not None:
        op.name, op.operands = "logistic", [x]
    return None


def _argument_of_logistic(op: Op) -> Value | None:
    """x of 1 / (1 + exp(-x)): JAX writes it out, an IPU has it as one instruction."""
    one, below = op.operands
    if not _is_all(one, 1) or below.op is None or below.op.name != "add":
        return None
    lhs, rhs = below.op.operands
    power = rhs if _is_all(lhs, 1) else lhs if _is_all(rhs, 1) else None
    if power is None or power.op is None or power.op.name != "exponential":
        return None
    negated = power.op.operands[0].op
    return negated.operands[0] if negated is not None and negated.name == "negate" else None


def _subtract(w: Writer, op: Op) -> list[Value] | None:
    rhs = op.operands[1]
    if not _is_all(rhs, 0) or rhs.const is None or np.signbit(rhs.const.flat[0]):
        return None
    return [op.operands[0]]


def _select(w: Writer, op: Op) -> list[Value] | None:
    predicate, on_true, on_false = op.operands
    if on_true is on_false:
        return [on_true]
    if predicate.is_splat and predicate.const is not None:
        return [on_true if predicate.const.flat[0] else on_false]
    return None


RULES: dict[str, Rule] = {
    "add": _without_identity,
    "and": _without_identity,
    "divide": _divide,
    "multiply": _without_identity,
    "or": _without_identity,
    "select": _select,
    "subtract": _subtract,
}
