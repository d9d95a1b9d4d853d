"""Treats 64-bit types as `ipu_x64` asks: computes in 32 bits, or by software arithmetic.

demote, before:  (%x: 4 x f64)              after:  (%x: 4 x f64)
                 %1 = multiply(%x, %x)              %0 = convert(%x)           f32
                 return %1                          %1 = multiply(%0, %0)      f32
                                                    %2 = convert(%1)           f64
                                                    return %2
Callers pass and get the 64-bit arrays they asked for. Integer arguments that do not fit saturate.
Constants that do not fit are refused, except the largest and the least number of their type, which
become those of the 32-bit type (they start reductions). Ops on the bits of 64-bit numbers are
refused, too.

emulate keeps 64-bit values. Indices, which the library takes in 32 bits, are clamped to that range:
gather and slices clamp them anyway, and scatter drops updates that are still outside. Conversions
to floats of fewer bits than float32 round once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ipujax.compiler.dtypes import DTYPES, numpy_type
from ipujax.compiler.formulas.float8 import SMALL_FLOATS
from ipujax.compiler.ir import (
    Block,
    Legaliser,
    Op,
    Program,
    Rewriter,
    Source,
    Term,
    Value,
    converted,
    number_of,
    walk_blocks,
    walk_ops,
    where,
)
from ipujax.compiler.passes.loops import drop_dead
from ipujax.compiler.rules.custom_call import refusal
from ipujax.errors import UnsupportedDtypeError, UnsupportedOpError
from ipujax.jax_compat import CALLBACK_TARGET

NARROW = {"f64": "f32", "i64": "i32", "ui64": "ui32", "complex<f64>": "complex<f32>"}

#: Floats that are rounded from float32, to which float64 has to be converted first.
ROUNDED_FROM_F32 = frozenset({"f16", "bf16", *SMALL_FLOATS})

#: LAPACK's names begin with the type: double, double complex.
_LAPACK = {"lapack_d": "lapack_s", "lapack_z": "lapack_c"}


def legalise_x64(program: Program) -> Program:
    """Rewrites the program as the option `ipu_x64` says; "error" leaves it to the pass `narrow`.

    Raises:
        UnsupportedDtypeError: demoted, the program would compute something else.
        UnsupportedOpError: emulated, it has ops without float64.
    """
    wanted = program.options.program.x64
    if wanted == "demote":
        _Demoter().program(program)
    elif wanted == "emulate":
        _refuse_single(program.main)
        _Emulator().program(program)
    return program


class _Demoter(Legaliser):
    """Changes the types of values in place."""

    outer_first = True

    def __init__(self) -> None:
        super().__init__()
        #: The users of each value: an op if it is a convert, else None.
        self.users: dict[Value, list[Op | None]] = {}
        self.wide: dict[Value, str] = {}  #: the old types of values that were changed in place

    def program(self, program: Program) -> Program:
        main = program.main
        Rewriter({"bitcast_convert": _draw_in_32_bits}).program(program)
        drop_dead(program)
        for block in walk_blocks(main):
            for value in block.results:
                self.users.setdefault(value, []).append(None)
            for op in block.ops:
                for value in op.operands:
                    is_convert = op.name == "convert"
                    self.users.setdefault(value, []).append(op if is_convert else None)
        return super().program(program)

    def illegal_dtype(self, value: Value) -> str:
        return value.dtype if value.dtype in NARROW else self.wide.get(value, "")

    def seen(self, value: Value) -> None:
        """None: callers see values as the program holds them at its boundary."""

    def enters(self, value: Value) -> Value:
        if value.dtype in NARROW:
            self.replaced[value] = _saturated(self.term(value), NARROW[value.dtype]).value
        return value

    def leaves(self, value: Value) -> Value:
        return self.term(self.now(value)).convert(self.wide.get(value, value.dtype)).value

    def now(self, value: Value) -> Value:
        if value not in self.replaced and value.const is not None and value.dtype in NARROW:
            self.replaced[value] = _constant(value, self.source)
        return self.replaced.get(value, value)

    def visit(self, op: Op) -> None:
        self.source = op.source
        if self._takes_a_half(op):
            return
        self._refuse_bits(op)
        if op.attrs.get("call_target_name") == CALLBACK_TARGET:
            self.callback(op)
        else:
            super().visit(op)

    def rule(self, op: Op) -> None:
        target = str(op.attrs.get("call_target_name", ""))
        if target[:8] in _LAPACK:
            op.attrs = {**op.attrs, "call_target_name": _LAPACK[target[:8]] + target[8:]}
        for values in (op.results, *(region.args for region in op.regions)):
            for value in values:
                if value.dtype in NARROW:
                    self.wide[value] = value.dtype
                    value.dtype = NARROW[value.dtype]

    def _takes_a_half(self, op: Op) -> bool:
        """`x & 0xffffffff` and `x >> 32`, converted to ui32, are the low word and the sign's bits.

        jax.random splits seeds in this way.
        """
        if op.name not in ("and", "shift_right_logical") or op.results[0].dtype != "i64":
            return False
        x, other = op.operands
        wanted = 0xFFFFFFFF if op.name == "and" else 32
        if number_of(other) != wanted:
            return False
        users = self.users.get(op.results[0], [])
        if any(user is None or user.results[0].dtype != "ui32" for user in users):
            return False
        word = self.term(self.now(x))
        if op.name != "and":
            word = where(word < 0, word.like(-1), 0)
        self.replaced[op.results[0]] = word.value
        return True

    def _refuse_bits(self, op: Op) -> None:
        """Refuses ops on the bits of 64-bit numbers, and shifts out of 32 bits."""
        name, dtype = op.name, op.results[0].dtype if op.results else ""
        is_bitcast = name == "bitcast_convert" and op.operands[0].dtype != dtype
        moves_sign = name == "shift_right_logical" and dtype == "i64"
        wide: list[str] = []
        if name == "rng_bit_generator":
            wide = [v.dtype for v in op.results[1:] if v.dtype in NARROW]
        elif is_bitcast or moves_sign or op.traits.sees_bits:
            wide = [v.dtype for v in (*op.operands, *op.results) if v.dtype in NARROW]
        if wide:
            raise _refusal(f"bits of {wide[0]}", "a 32-bit number has other bits", op.source)
        if name == "shift_left" and dtype in NARROW:
            amount = number_of(op.operands[1])
            if amount is not None and amount >= 32:
                raise _refusal(
                    f"a shift by {amount} bits",
                    "no bit of a 32-bit number would be left",
                    op.source,
                )


def _draw_in_32_bits(w: Rewriter, op: Op) -> list[Value] | None:
    """jax.random draws a float64 from [1, 2) as 52 random bits or-ed with the bits of 1.0.

    A float32 takes the first 23 of them: the same number, rounded down.
    """
    high = _high_word(op)
    if high is None:
        return None
    return [(w.term(high) >> 9 | 0x3F800000).bitcast("f32").convert("f64").value]


def _high_word(op: Op) -> Value | None:
    """h of bitcast_convert((h << 32 | l) >> 12 | bits of 1.0)."""
    if op.name != "bitcast_convert" or op.results[0].dtype != "f64":
        return None
    shifted = _other_than(_operands(op.operands[0], "or"), 0x3FF0000000000000)
    bits = _other_than(_operands(shifted, "shift_right_logical"), 12)
    for half in _operands(bits, "or"):
        word = _other_than(_operands(half, "shift_left"), 32)
        for high in _operands(word, "convert"):
            if high.dtype == "ui32":
                return high
    return None


def _operands(value: Value | None, name: str) -> list[Value]:
    """The operands of the op that makes the value, if it has that name; else none."""
    if value is None or value.op is None or value.op.name != name:
        return []
    return value.op.operands


def _other_than(operands: list[Value], number: int) -> Value | None:
    """The other one of two operands, if one is the number; else None."""
    if len(operands) != 2:
        return None
    for this, other in (operands, operands[::-1]):
        if number_of(other) == number:
            return this
    return None


def _saturated(x: Term, dtype: str) -> Term:
    """The number in `dtype`; integers out of range saturate."""
    if dtype in ("i32", "ui32"):
        info = np.iinfo(DTYPES[dtype].numpy)
        x = x.minimum(int(info.max))
        if DTYPES[x.dtype].kind == "i":
            x = x.maximum(int(info.min))
    return x.convert(dtype)


def _constant(value: Value, source: Source) -> Value:
    dtype = NARROW[value.dtype]
    target = numpy_type(dtype)
    assert target is not None
    return converted(value, dtype, lambda wide: _demoted(wide, target, source))


def _demoted(wide: np.ndarray, target: np.dtype, source: Source) -> np.ndarray:
    """The elements of a constant in a 32-bit type, which must be able to hold them."""
    with np.errstate(all="ignore"):
        small = wide.astype(target)
    info, narrow_info = _limits(wide.dtype), _limits(target)
    small = np.where(wide == info.max, narrow_info.max, small)
    small = np.where(wide == info.min, narrow_info.min, small).astype(target)
    if target == np.float32:
        small = _kept_apart(wide, small)
    lost = (wide != info.max) & (wide != info.min) & _is_lost(wide, small)
    if lost.any():
        number = wide[lost].flat[0]
        raise _refusal(f"the constant {number}", f"it does not fit {target.name}", source)
    return small


def _kept_apart(wide: np.ndarray, small: np.ndarray) -> np.ndarray:
    """Keeps float32 numbers from being zero or one where the float64 ones were not.

    Bounds of random draws end just inside of one; guards of logarithms and quotients are tiny.
    """
    zero, one = np.float32(0), np.float32(1)
    inside = (np.abs(wide) < 1) & (np.abs(small) == one)
    small = np.where(inside, np.nextafter(small, zero), small)
    tiny = np.copysign(np.finfo(np.float32).tiny, wide).astype(np.float32)
    return np.where((wide != 0) & (small == zero), tiny, small)


def _limits(dtype: np.dtype) -> np.finfo | np.iinfo:
    return np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)


def _is_lost(wide: np.ndarray, small: np.ndarray) -> np.ndarray:
    if wide.dtype.kind in "fc":
        return np.isfinite(wide) & ~np.isfinite(small)
    return np.asarray(small.astype(wide.dtype) != wide)


def _refusal(what: str, why: str, source: Source) -> UnsupportedDtypeError:
    where = f" (at {source.line})" if source.line else ""
    return UnsupportedDtypeError(
        f'[normalise] with ipu_x64="demote" needs programs that compute the same in 32 bits; got '
        f'{what}{where}: {why}. Set ipu_x64="emulate", or give it a 32-bit dtype.'
    )


# Emulation ---------------------------------------------------------------------------------------


def _refuse_single(block: Block) -> None:
    """Refuses all ops that have no float64, by name."""
    found = []
    for op in walk_ops(block):
        if not op.traits.no_double:
            continue
        if any(v.dtype in ("f64", "complex<f64>") for v in (*op.operands, *op.results)):
            # Ops that cannot be lowered in any dtype are not refused for their dtype.
            in_any = refusal(op) if op.name == "custom_call" else None
            reason = in_any or 'it has no float64; ipu_x64="demote" computes it in float32'
            found.append((op.shown_name, reason, op.source.line))
    if found:
        raise UnsupportedOpError(found)


class _Emulator(Rewriter):
    def rule(self, op: Op) -> Sequence[Value] | None:
        for index in op.traits.indices(op) if op.traits.indices is not None else ():
            value = op.operands[index]
            if value.dtype in ("i64", "ui64"):
                inside = self.term(value).minimum((1 << 31) - 1)
                op.operands[index] = _saturated(inside, "i32").value
        if op.name == "rng_bit_generator" and op.operands[0].dtype == "ui64":
            return self._with_words(op)
        if op.name == "convert" and op.results[0].dtype in ROUNDED_FROM_F32:
            (value,) = op.operands
            if value.dtype == "f64":
                op.operands = [_rounded_to_odd(self.term(value)).value]
        return None

    def _with_words(self, op: Op) -> list[Value]:
        """Makes the generator's 64-bit state two 32-bit words, in a new last dimension."""
        state, (result, bits) = op.operands[0], op.results
        op.operands = [self.op("bitcast_convert", [state], shape=(*state.shape, 2), dtype="ui32")]
        op.results = []
        words = op.add_result((*result.shape, 2), "ui32")
        op.results.append(bits)
        self.ops.append(op)
        joined = self.op("bitcast_convert", [words], shape=result.shape, dtype=result.dtype)
        return [joined, bits]


def _rounded_to_odd(x: Term) -> Term:
    """float64 -> the neighbouring float32 whose last bit is 1, or itself if it is a float32.

    Such a number is on no boundary of a narrower type, so that rounding it again is correct
    (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008).
    """
    near = x.convert("f32")
    back, bits = near.convert("f64"), near.bitcast("i32")
    other = where(abs(x) > abs(back), bits + 1, bits - 1)
    is_even = (bits & 1).eq(0) & x.ne(back) & x.eq(x)
    return where(is_even, other, bits).bitcast("f32")
