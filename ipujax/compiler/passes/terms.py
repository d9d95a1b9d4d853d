"""Arithmetic on values of the program, written as formulas: what passes make elementwise ops with.

w = Writer(op, ops)                 # ops like `op`, appended to `ops`
x, y = w.term(a), w.term(b)
(x * x + y * y).sqrt().value        # multiply, multiply, add, sqrt
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, Shape, Source, Value, splat


class Writer:
    """Makes ops of one shape, with the source of the op that they take the place of."""

    def __init__(self, shape: Shape, source: Source, ops: list[Op]):
        self.shape = shape
        self.source = source
        self._ops = ops

    def term(self, value: Value) -> Term:
        return Term(self, value)

    def constant(self, number: float, dtype: str) -> Term:
        scalar = np.array(number, DTYPES[dtype].numpy)
        return Term(self, splat(scalar, self.shape, dtype))

    def op(self, name: str, operands: list[Term], dtype: str, **attrs: Any) -> Term:
        op = Op(name, [operand.value for operand in operands], attrs, self.source)
        self._ops.append(op)
        return Term(self, op.add_result(self.shape, dtype))

    def where(self, predicate: Term, on_true: Term | float, on_false: Term | float) -> Term:
        """Element by element; plain numbers take the other side's dtype."""
        like = on_true if isinstance(on_true, Term) else on_false
        assert isinstance(like, Term)
        chosen = [like.like(side) for side in (on_true, on_false)]
        return self.op("select", [predicate, *chosen], like.dtype)


class Term:
    """A value with Python's operators. Plain numbers become constants of its dtype."""

    __slots__ = ("value", "writer")

    def __init__(self, writer: Writer, value: Value):
        self.writer = writer
        self.value = value

    @property
    def dtype(self) -> str:
        return self.value.dtype

    def like(self, other: Term | float) -> Term:
        return other if isinstance(other, Term) else self.writer.constant(other, self.dtype)

    def unary(self, name: str, dtype: str = "") -> Term:
        return self.writer.op(name, [self], dtype or self.dtype)

    def binary(self, name: str, other: Term | float) -> Term:
        return self.writer.op(name, [self, self.like(other)], self.dtype)

    def compare(self, direction: str, other: Term | float) -> Term:
        kind = {"f": "FLOAT", "i": "SIGNED"}.get(DTYPES[self.dtype].kind, "UNSIGNED")
        operands = [self, self.like(other)]
        return self.writer.op(
            "compare", operands, "i1", comparison_direction=direction, compare_type=kind
        )

    def convert(self, dtype: str) -> Term:
        return self if dtype == self.dtype else self.unary("convert", dtype)

    def bitcast(self, dtype: str) -> Term:
        return self.unary("bitcast_convert", dtype)

    def __add__(self, other: Term | float) -> Term:
        return self.binary("add", other)

    def __sub__(self, other: Term | float) -> Term:
        return self.binary("subtract", other)

    def __rsub__(self, other: float) -> Term:
        return self.like(other) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.binary("multiply", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.binary("divide", other)

    def __rtruediv__(self, other: float) -> Term:
        return self.like(other) / self

    def __and__(self, other: Term | float) -> Term:
        return self.binary("and", other)

    def __or__(self, other: Term | float) -> Term:
        return self.binary("or", other)

    def __lshift__(self, other: Term | float) -> Term:
        return self.binary("shift_left", other)

    def __rshift__(self, other: Term | float) -> Term:
        """The sign comes in where the dtype has one."""
        signed = DTYPES[self.dtype].kind == "i"
        return self.binary("shift_right_arithmetic" if signed else "shift_right_logical", other)

    def __neg__(self) -> Term:
        return self.unary("negate")

    def __invert__(self) -> Term:
        return self.unary("not")

    def __abs__(self) -> Term:
        return self.unary("abs")

    def __lt__(self, other: Term | float) -> Term:
        return self.compare("LT", other)

    def __le__(self, other: Term | float) -> Term:
        return self.compare("LE", other)

    def __gt__(self, other: Term | float) -> Term:
        return self.compare("GT", other)

    def __ge__(self, other: Term | float) -> Term:
        return self.compare("GE", other)

    def eq(self, other: Term | float) -> Term:
        return self.compare("EQ", other)

    def ne(self, other: Term | float) -> Term:
        return self.compare("NE", other)

    def is_nan(self) -> Term:
        return self.ne(self)

    def is_infinite(self) -> Term:
        return abs(self).eq(float("inf"))

    def is_finite(self) -> Term:
        return self.unary("is_finite", "i1")

    def with_sign_of(self, other: Term) -> Term:
        """|self| with the other's sign bit, so that a zero's sign counts."""
        signed, lowest = ("i64", -(1 << 63)) if self.dtype == "f64" else ("i32", -(1 << 31))
        minus = other.bitcast(signed) & lowest
        return ((abs(self)).bitcast(signed) | minus).bitcast(self.dtype)

    def exp(self) -> Term:
        return self.unary("exponential")

    def expm1(self) -> Term:
        return self.unary("exponential_minus_one")

    def log(self) -> Term:
        return self.unary("log")

    def log1p(self) -> Term:
        return self.unary("log_plus_one")

    def sqrt(self) -> Term:
        return self.unary("sqrt")

    def sin(self) -> Term:
        return self.unary("sine")

    def cos(self) -> Term:
        return self.unary("cosine")

    def tan(self) -> Term:
        return self.unary("tan")

    def sinh(self) -> Term:
        return self.unary("chlo.sinh")

    def cosh(self) -> Term:
        return self.unary("chlo.cosh")

    def atan2(self, other: Term) -> Term:
        return self.binary("atan2", other)

    def pow(self, other: Term | float) -> Term:
        return self.binary("power", other)

    def maximum(self, other: Term | float) -> Term:
        return self.binary("maximum", other)

    def minimum(self, other: Term | float) -> Term:
        return self.binary("minimum", other)
