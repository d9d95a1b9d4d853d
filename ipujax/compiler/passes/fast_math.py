"""Applies rules that hold for real numbers, where `fast_math` allows it.

Before:  %1 = divide(%0, 3.0)      After:  %1 = multiply(%0, 0.333...)
         %2 = multiply(%1, 6.0)            %2 = multiply(%0, 2.0)
         %3 = subtract(%2, %2)             0.0
NaN, infinities and the sign of zero are not preserved; results may differ in the last place.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.dtypes import FLOATS
from ipujax.compiler.ir import Op, Program, Rewriter, Value, Writer, number, number_of
from ipujax.compiler.ir.rewriter import Rule


def rewrite_fast(program: Program) -> Program:
    """Rewrites the ops of all blocks that allow it."""
    return _FastMath(RULES).program(program)


class _FastMath(Rewriter):
    def rule(self, op: Op) -> Sequence[Value] | None:
        if op.name not in RULES or op.results[0].dtype not in FLOATS:
            return None
        return super().rule(op) if self.options.of(op).fast_math else None


def _add(w: Writer, op: Op) -> list[Value] | None:
    a, b = op.operands
    return [a] if number_of(b) == 0 else [b] if number_of(a) == 0 else None


def _subtract(w: Writer, op: Op) -> list[Value] | None:
    a, b = op.operands
    if a is b:
        return [number(0, a.shape, a.dtype)]
    return [a] if number_of(b) == 0 else None


def _multiply(w: Writer, op: Op) -> list[Value] | None:
    a, b = op.operands
    if number_of(a) == 0 or number_of(b) == 0:
        return [number(0, a.shape, a.dtype)]
    if number_of(a) is not None:
        a, b = b, a
    factor = number_of(b)
    if factor is None:
        return None
    op.operands = [a, b]
    inner = a.op
    if inner is not None and inner.name == "multiply":
        other = number_of(inner.operands[1])
        if other is not None:
            both = number(float(factor) * float(other), a.shape, a.dtype)
            op.operands = [inner.operands[0], both]
    return op.operands[:1] if number_of(op.operands[1]) == 1 else None


def _divide(w: Writer, op: Op) -> list[Value] | None:
    a, b = op.operands
    if a is b:
        return [number(1, a.shape, a.dtype)]
    divisor = number_of(b)
    if divisor is None or divisor == 0:
        return None
    op.name = "multiply"
    op.operands = [a, number(1 / float(divisor), b.shape, b.dtype)]
    return _multiply(w, op)


#: A rule may change the operands of an op that stays.
RULES: dict[str, Rule] = {
    "add": _add,
    "divide": _divide,
    "multiply": _multiply,
    "subtract": _subtract,
}
