"""Makes 8-bit floats and 2- and 4-bit numbers legal: stored as bytes, computed wider.

Before:  (%a: 3 x f8E4M3FN)                    After:  (%b: 3 x ui8)
         %1 = multiply(%a, %a)                         %a = <decode %b>          f32
         return %1                                     %1 = multiply(%a, %a)     f32
                                                       %2 = <round %1 to the format>
                                                       return <encode %2>        ui8
Integers are held in i8 and ui8 and wrapped where an op may leave their range. An op that cannot
leave it (`_EXACT_INTS`) is left alone. Bodies of reductions and scatters compute wide and their
results are rounded once, as XLA does on machines without these types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.formulas.float8 import SMALL_FLOATS, SmallFloat, decoded, encoded, rounded
from ipujax.compiler.ir import (
    Block,
    Legaliser,
    Op,
    Program,
    Seen,
    Term,
    Value,
    converted,
    number,
    walk_values,
)
from ipujax.jax_compat import CALLBACK_TARGET
from ipujax.types import BY_STABLEHLO


@dataclass(frozen=True, slots=True)
class SmallInt:
    """A number of `bits` bits in a byte."""

    numpy: np.dtype
    bits: int
    signed: bool

    @property
    def held(self) -> str:
        return "i8" if self.signed else "ui8"

    @property
    def range(self) -> tuple[int, int]:
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1


#: By StableHLO's names.
SMALL_INTS: dict[str, SmallInt] = {
    "i2": SmallInt(BY_STABLEHLO["i2"].numpy, 2, True),
    "i4": SmallInt(BY_STABLEHLO["i4"].numpy, 4, True),
    "ui2": SmallInt(BY_STABLEHLO["ui2"].numpy, 2, False),
    "ui4": SmallInt(BY_STABLEHLO["ui4"].numpy, 4, False),
}
SMALL: dict[str, SmallFloat | SmallInt] = {**SMALL_FLOATS, **SMALL_INTS}

#: Ops whose results are in range, or exact, if their operands are; ops that move or choose
#: elements are exact, too.
_EXACT_INTS = frozenset({"and", "or", "remainder", "sign", "xor"})
_EXACT_FLOATS = frozenset({"abs", "sign"})


def widen_small(program: Program) -> Program:
    """Rewrites the program if it has small types.

    Raises:
        UnsupportedOpError: names the ops that have no meaning, or no rule, on them.
    """
    if any(value.dtype in SMALL for value in walk_values(program.main)):
        _Widener().program(program)
    return program


class _Widener(Legaliser):
    """`small` has the small type of each value that is held wider."""

    def __init__(self) -> None:
        super().__init__()
        self.small: dict[Value, str] = {}
        self.bytes: dict[Value, Value] = {}  #: values decoded from bytes
        #: Whether results need no rounding because a later op rounds.
        self.wide = False

    # Boundary ------------------------------------------------------------------------------------

    def illegal_dtype(self, value: Value) -> str:
        return value.dtype if value.dtype in SMALL else self.small.get(value, "")

    def seen(self, value: Value) -> Seen | None:
        kind = SMALL.get(value.dtype)
        return Seen(kind.numpy.name, value.shape) if kind is not None else None

    def enters(self, value: Value) -> Value:
        if value.dtype not in SMALL:
            return value
        kind = SMALL[value.dtype]
        self._hold(value)
        outer = Value(value.shape, "ui8", value.op, value.index)
        byte = self.term(outer)
        if isinstance(kind, SmallFloat):
            number = decoded(kind, byte)
        else:
            number = wrapped(kind, byte.bitcast(kind.held))
        self.replaced[value] = number.value
        self.small[number.value] = self.small[value]
        self.bytes[number.value] = outer
        return outer

    def leaves(self, value: Value) -> Value:
        value = self.now(value)
        kind = SMALL.get(self.small.get(value, ""))
        if kind is None:
            return value
        if value in self.bytes:
            return self.bytes[value]
        number = self.term(value)
        if isinstance(kind, SmallFloat):
            return encoded(kind, number).value
        if kind.signed:
            number = number.bitcast("ui8") & ((1 << kind.bits) - 1)  # as ml_dtypes stores it
        return number.value

    # Values --------------------------------------------------------------------------------------

    def _hold(self, value: Value) -> None:
        self.small[value] = value.dtype
        value.dtype = SMALL[value.dtype].held

    def now(self, value: Value) -> Value:
        value = self.replaced.get(value, value)
        if value.dtype in SMALL and value.const is not None:
            dtype = SMALL[value.dtype].held
            held = converted(value, dtype, lambda const: const.astype(DTYPES[dtype].numpy))
            self.small[held] = value.dtype
            self.replaced[value] = value = held
        return value

    # Ops -----------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for value in block.args:
            if value.dtype in SMALL:
                self._hold(value)
        super().block(block)

    def visit(self, op: Op) -> None:
        self.source = op.source
        op.operands = [self.now(value) for value in op.operands]
        is_small = any(v in self.small for v in op.operands)
        is_small |= any(v.dtype in SMALL for v in op.results)
        if is_small and op.attrs.get("call_target_name") == CALLBACK_TARGET:
            self.callback(op)
            return
        special = _SPECIAL.get(op.name) if is_small else None
        if special is not None:
            special(self, op)
            return
        kinds = {}
        for value in op.results:
            if value.dtype in SMALL:
                kinds[value] = SMALL[value.dtype]
                self._hold(value)
        outer, self.wide = self.wide, self.wide or op.traits.combines
        self.regions(op)
        self.wide, self.source = outer, op.source
        self.ops.append(op)
        if self.wide or _is_exact(op):
            return
        for value, kind in kinds.items():
            exact = _EXACT_INTS if isinstance(kind, SmallInt) else _EXACT_FLOATS
            if op.name not in exact:
                self.round(value)

    def round(self, value: Value) -> None:
        """Replaces uses of the value by the rounded, or wrapped, value."""
        kind, term = SMALL[self.small[value]], self.term(value)
        result = rounded(kind, term) if isinstance(kind, SmallFloat) else wrapped(kind, term)
        self.replaced[value] = result.value
        self.small[result.value] = self.small[value]

    def become(self, op: Op, term: Term) -> None:
        """Replaces the op's small result by `term`, which needs no rounding."""
        result = op.results[0]
        self.small[term.value] = result.dtype
        self.replaced[result] = term.value

    def refuse(self, op: Op, reason: str) -> None:
        super().refuse(op, reason)
        for value in op.results:
            if value.dtype in SMALL:
                self._hold(value)


def _is_exact(op: Op) -> bool:
    """Whether the op moves or chooses elements, or its body only chooses among them."""
    if op.traits.moves or op.traits.chooses:
        return True
    ops = [inner for region in op.regions for inner in region.ops]
    return bool(op.regions) and all(
        _is_exact(inner) or inner.results[0].dtype == "i1" for inner in ops
    )


def wrapped(kind: SmallInt, x: Term) -> Term:
    """The lowest bits of x, sign-extended."""
    if kind.signed:
        return (x << (8 - kind.bits)) >> (8 - kind.bits)
    return x & kind.range[1]


# Ops of their own kind ---------------------------------------------------------------------------


Handler = Callable[[_Widener, Op], None]


def _convert(s: _Widener, op: Op) -> None:
    (source,), (result,) = op.operands, op.results
    kind = SMALL.get(result.dtype)
    x = s.term(source)
    if kind is None:
        s.ops.append(op)
    elif isinstance(kind, SmallFloat):
        if s.small.get(source) != result.dtype:
            x = rounded(kind, x.convert("f32"))
        s.become(op, x)
    else:
        held, is_float = x.convert(kind.held), DTYPES[source.dtype].kind == "f"
        low, high = kind.range
        s.become(op, held.maximum(low).minimum(high) if is_float else wrapped(kind, held))


def _bitcast_convert(s: _Widener, op: Op) -> None:
    """Converts through bytes, which smaller elements fill from the lowest bits up."""
    (source,), (result,) = op.operands, op.results
    took, gives = SMALL.get(s.small.get(source, "")), SMALL.get(result.dtype)
    bits = source
    if took is not None:
        bits = s.leaves(source)
        if len(result.shape) < len(source.shape) and took.bits < 8:
            bits = _packed(s, bits, took.bits, min(8, gives.bits if gives else 8))
    elif gives is not None and DTYPES[source.dtype].size > 1:
        shape = (*source.shape, DTYPES[source.dtype].size)
        bits = s.op("bitcast_convert", [source], shape=shape, dtype="ui8")
    if gives is None:
        if DTYPES[result.dtype].size == 1:
            bits = s.reshape(bits, result.shape)
        op.operands = [bits]
        s.ops.append(op)
        return
    if len(result.shape) > len(source.shape) and gives.bits < 8:
        bits = _unpacked(s, bits, took.bits if took else 8, gives.bits)
    byte = s.term(s.reshape(bits, result.shape)).bitcast("ui8")
    if isinstance(gives, SmallFloat):
        s.become(op, decoded(gives, byte))
        s.bytes[s.replaced[result]] = byte.value
    else:
        s.become(op, wrapped(gives, byte.bitcast(gives.held)))


def _packed(s: _Widener, parts: Value, narrow: int, wide: int) -> Value:
    """Packs elements of `narrow` bits along the last dimension into fewer of `wide` bits."""
    count = wide // narrow
    shape = (*parts.shape[:-1], parts.shape[-1] // count)
    grouped = s.reshape(parts, (*shape, count))
    whole = s.term(s.broadcast(number(0, (), "ui8"), (), shape))
    for index in range(count):
        begin = (*(0,) * len(shape), index)
        part = s.reshape(s.slice(grouped, begin, (*shape, index + 1)), shape)
        whole = whole | (s.term(part) << (index * narrow))
    return whole.value


def _unpacked(s: _Widener, whole: Value, wide: int, narrow: int) -> Value:
    """Splits elements of `wide` bits into ones of `narrow` bits along a new last dimension."""
    count = wide // narrow
    bits = s.term(whole).bitcast("ui8")
    parts = [
        s.reshape(((bits >> (index * narrow)) & ((1 << narrow) - 1)).value, (*whole.shape, 1))
        for index in range(count)
    ]
    how = {"dimension": len(whole.shape)}
    return s.op("concatenate", parts, how, shape=(*whole.shape, count))


def _iota(s: _Widener, op: Op) -> None:
    s._hold(op.results[0])
    s.ops.append(op)
    s.round(op.results[0])


def _negate(s: _Widener, op: Op) -> None:
    (result,) = op.results
    kind = SMALL[result.dtype]
    s._hold(result)
    s.ops.append(op)
    if isinstance(kind, SmallInt) or kind.kind in ("fnuz", "scale"):
        s.round(result)


def _bitwise(formula: Callable[[SmallInt, Term, list[Term]], Term]) -> Handler:
    """An op on the bits of a number: `formula(kind, operand's bits, other operands)`."""

    def handle(s: _Widener, op: Op) -> None:
        kind = SMALL[op.results[0].dtype]
        x, *others = [s.term(value) for value in op.operands]
        assert isinstance(kind, SmallInt)
        s.become(op, wrapped(kind, formula(kind, x, others)))

    return handle


def _own_bits(kind: SmallInt, x: Term) -> Term:
    return x & ((1 << kind.bits) - 1)


def _shift_right_logical(kind: SmallInt, x: Term, others: list[Term]) -> Term:
    return _own_bits(kind, x).binary("shift_right_logical", others[0])


def _shift_right_arithmetic(kind: SmallInt, x: Term, others: list[Term]) -> Term:
    top = (x << (8 - kind.bits)).binary("shift_right_arithmetic", 8 - kind.bits)
    return top.binary("shift_right_arithmetic", others[0])


def _popcnt(kind: SmallInt, x: Term, others: list[Term]) -> Term:
    return _own_bits(kind, x).unary("popcnt")


def _count_leading_zeros(kind: SmallInt, x: Term, others: list[Term]) -> Term:
    return _own_bits(kind, x).unary("count_leading_zeros") - (8 - kind.bits)


_SPECIAL: dict[str, Handler] = {
    "bitcast_convert": _bitcast_convert,
    "convert": _convert,
    "count_leading_zeros": _bitwise(_count_leading_zeros),
    "iota": _iota,
    "negate": _negate,
    "popcnt": _bitwise(_popcnt),
    "shift_right_arithmetic": _bitwise(_shift_right_arithmetic),
    "shift_right_logical": _bitwise(_shift_right_logical),
}
