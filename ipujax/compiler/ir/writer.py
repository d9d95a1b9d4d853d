"""Makes ops. Passes and the reader add ops to a program only in this way.

w = Writer(ops, source)                         # ops appended to `ops`, with that source
y = w.op("negate", [x])                         # a value, of x's shape and dtype
x, y = w.term(a), w.term(b)
(x * x + y * y).sqrt().value                    # multiply, multiply, add, sqrt
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir.program import (
    NO_SOURCE,
    Block,
    Op,
    Shape,
    Source,
    Value,
    number,
)


class Writer:
    """Appends ops to `ops`, with the source of the op that they replace."""

    def __init__(self, ops: list[Op], source: Source = NO_SOURCE):
        self.ops = ops
        self.source = source

    def term(self, value: Value) -> Term:
        return Term(self, value)

    def op(
        self,
        name: str,
        operands: Sequence[Value],
        attrs: dict[str, Any] | None = None,
        *,
        shape: Shape | None = None,
        dtype: str | None = None,
        like: Value | None = None,
        regions: list[Block] | None = None,
    ) -> Value:
        """Appends an op and returns its only result.

        Args:
            shape, dtype: of the result; else those of `like`, else those of the first operand.
        """
        made = Op(name, list(operands), attrs or {}, self.source, regions)
        self.ops.append(made)
        if like is None and operands:
            like = operands[0]
        if like is not None:
            shape = like.shape if shape is None else shape
            dtype = like.dtype if dtype is None else dtype
        assert shape is not None
        assert dtype is not None
        return made.add_result(shape, dtype)

    def reshape(self, value: Value, shape: Shape) -> Value:
        return self.op("reshape", [value], shape=shape)

    def slice(self, value: Value, begin: Sequence[int], end: Sequence[int]) -> Value:
        """The elements from `begin` up to but not including `end`."""
        attrs = {
            "start_indices": tuple(begin),
            "limit_indices": tuple(end),
            "strides": (1,) * len(begin),
        }
        shape = tuple(e - b for b, e in zip(begin, end, strict=True))
        return self.op("slice", [value], attrs, shape=shape)

    def broadcast(self, value: Value, dims: Sequence[int], shape: Shape) -> Value:
        """The value, whose dimensions are `dims` of `shape`, repeated over the others."""
        attrs = {"broadcast_dimensions": tuple(dims)}
        return self.op("broadcast_in_dim", [value], attrs, shape=shape)

    def reduce(self, value: Value, dims: Sequence[int], name: str, start: float) -> Value:
        """Combines over the dimensions, if any, with the named op."""
        if not dims:
            return value
        shape = tuple(n for dim, n in enumerate(value.shape) if dim not in dims)
        operands, attrs = [value, number(start, (), value.dtype)], {"dimensions": tuple(dims)}
        regions = [combiner(name, value.dtype, self.source)]
        return self.op("reduce", operands, attrs, shape=shape, regions=regions)


def combiner(name: str, dtype: str, source: Source) -> Block:
    """A region that combines two elements with the named op."""
    args, block = [Value((), dtype), Value((), dtype)], Block()
    block.args = args
    block.results = [Writer(block.ops, source).op(name, args)]
    return block


def _unary(name: str) -> Callable[[Term], Term]:
    return lambda self: self.unary(name)


def _binary(name: str) -> Callable[[Term, Term | float], Term]:
    return lambda self, other: self.binary(name, other)


def _comparison(direction: str) -> Callable[[Term, Term | float], Term]:
    return lambda self, other: self.compare(direction, other)


class Term:
    """A value with Python's operators. Plain numbers become constants of its shape and dtype."""

    __slots__ = ("value", "writer")

    def __init__(self, writer: Writer, value: Value):
        self.writer = writer
        self.value = value

    @property
    def dtype(self) -> str:
        return self.value.dtype

    def like(self, other: Term | float) -> Term:
        if isinstance(other, Term):
            return other
        return Term(self.writer, number(other, self.value.shape, self.dtype))

    def unary(self, name: str, dtype: str = "") -> Term:
        return Term(self.writer, self.writer.op(name, [self.value], dtype=dtype or None))

    def binary(self, name: str, other: Term | float) -> Term:
        return Term(self.writer, self.writer.op(name, [self.value, self.like(other).value]))

    def compare(self, direction: str, other: Term | float) -> Term:
        kind = {"f": "FLOAT", "i": "SIGNED"}.get(DTYPES[self.dtype].kind, "UNSIGNED")
        attrs = {"comparison_direction": direction, "compare_type": kind}
        operands = [self.value, self.like(other).value]
        return Term(self.writer, self.writer.op("compare", operands, attrs, dtype="i1"))

    def convert(self, dtype: str) -> Term:
        return self if dtype == self.dtype else self.unary("convert", dtype)

    def bitcast(self, dtype: str) -> Term:
        return self if dtype == self.dtype else self.unary("bitcast_convert", dtype)

    __add__ = _binary("add")
    __sub__ = _binary("subtract")
    __mul__ = _binary("multiply")
    __truediv__ = _binary("divide")
    __and__ = _binary("and")
    __or__ = _binary("or")
    __lshift__ = _binary("shift_left")

    def __rsub__(self, other: float) -> Term:
        return self.like(other) - self

    def __rtruediv__(self, other: float) -> Term:
        return self.like(other) / self

    def __rshift__(self, other: Term | float) -> Term:
        """Shifts in the sign bit where the dtype is signed."""
        signed = DTYPES[self.dtype].kind == "i"
        return self.binary("shift_right_arithmetic" if signed else "shift_right_logical", other)

    __neg__ = _unary("negate")
    __invert__ = _unary("not")
    __abs__ = _unary("abs")

    __lt__ = _comparison("LT")
    __le__ = _comparison("LE")
    __gt__ = _comparison("GT")
    __ge__ = _comparison("GE")
    eq = _comparison("EQ")
    ne = _comparison("NE")

    def is_nan(self) -> Term:
        return self.ne(self)

    def is_infinite(self) -> Term:
        return abs(self).eq(float("inf"))

    def is_finite(self) -> Term:
        return self.unary("is_finite", "i1")

    def with_sign_of(self, other: Term) -> Term:
        """|self| with the other's sign bit, even that of a zero."""
        signed, lowest = ("i64", -(1 << 63)) if self.dtype == "f64" else ("i32", -(1 << 31))
        minus = other.bitcast(signed) & lowest
        return ((abs(self)).bitcast(signed) | minus).bitcast(self.dtype)

    exp = _unary("exponential")
    expm1 = _unary("exponential_minus_one")
    log = _unary("log")
    log1p = _unary("log_plus_one")
    sqrt = _unary("sqrt")
    sin = _unary("sine")
    cos = _unary("cosine")
    tan = _unary("tan")
    sinh = _unary("chlo.sinh")
    cosh = _unary("chlo.cosh")

    atan2 = _binary("atan2")
    pow = _binary("power")
    maximum = _binary("maximum")
    minimum = _binary("minimum")


def where(predicate: Term, on_true: Term | float, on_false: Term | float) -> Term:
    """Chooses element by element; plain numbers take the other side's dtype."""
    like = on_true if isinstance(on_true, Term) else on_false
    assert isinstance(like, Term)
    chosen = [like.like(side).value for side in (on_true, on_false)]
    writer = predicate.writer
    return Term(writer, writer.op("select", [predicate.value, *chosen], like=like.value))
