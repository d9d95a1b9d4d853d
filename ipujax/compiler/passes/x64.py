"""64-bit types, as `ipu_x64` asks for them: computed in 32 bits, or by software arithmetic.

demote, before:  (%x: 4 x f64)              after:  (%x: 4 x f64)
                 %1 = multiply(%x, %x)              %0 = convert(%x)           f32
                 return %1                          %1 = multiply(%0, %0)      f32
                                                    %2 = convert(%1)           f64
                                                    return %2
Callers hand over and get the 64-bit arrays they asked for. Integers of arguments that do not fit
saturate. Constants that do not fit are refused, but for the largest and the least number of their
type, which stand for those of the 32-bit type (they start reductions); so is everything that looks
at 64-bit numbers' bits.

emulate keeps 64-bit values. Indices, which the library takes in 32 bits, are clamped into them:
gather and slices clamp them anyway, and scatter drops what is still outside.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ipujax.compiler.dtypes import DTYPES, numpy_type
from ipujax.compiler.ir import NO_SOURCE, Block, Op, Program, Source, Value, walk_blocks, walk_ops
from ipujax.compiler.passes.loops import drop_dead
from ipujax.compiler.passes.terms import Term, Writer
from ipujax.errors import UnsupportedDtypeError, UnsupportedOpError
from ipujax.jax_compat import CALLBACK_TARGET

NARROW = {"f64": "f32", "i64": "i32", "ui64": "ui32", "complex<f64>": "complex<f32>"}
#: Ops that count or move bits, of which a 32-bit number has fewer.
_SEES_BITS = frozenset({"count_leading_zeros", "popcnt"})

#: LAPACK's names begin with the type: double, double complex.
_LAPACK = {"lapack_d": "lapack_s", "lapack_z": "lapack_c"}
#: What the library does in float32 alone.
_SINGLE = frozenset({"cholesky", "custom_call", "fft", "triangular_solve"})


def legalise_x64(program: Program) -> Program:
    """Rewrites the program as `program.x64` says; "error" leaves it to the pass `narrow`.

    Raises:
        UnsupportedDtypeError: demoted, the program would compute something else.
        UnsupportedOpError: emulated, it has ops without float64.
    """
    if program.x64 == "demote":
        _Demoter().program(program)
    elif program.x64 == "emulate":
        _refuse_single(program.main)
        _narrow_indices(program.main)
    return program


class _Demoter:
    """Walks the program once, changing the types of values where they stand."""

    def __init__(self) -> None:
        self.replaced: dict[Value, Value] = {}
        self.ops: list[Op] = []
        #: Who takes each value: the op where it is a convert, else None.
        self.users: dict[Value, list[Op | None]] = {}

    def program(self, program: Program) -> None:
        main = program.main
        for block in walk_blocks(main):
            _draw_in_32_bits(block)
        drop_dead(program)
        for block in walk_blocks(main):
            for value in block.results:
                self.users.setdefault(value, []).append(None)
            for op in block.ops:
                for value in op.operands:
                    is_convert = op.name == "convert"
                    self.users.setdefault(value, []).append(op if is_convert else None)
        entry: list[Op] = []
        wanted = [value.dtype for value in main.results]
        main.args = [self._entering(value, entry) for value in main.args]
        self.block(main)
        main.ops = entry + main.ops
        main.results = [
            _leaving(value, dtype, main.ops, NO_SOURCE)
            for value, dtype in zip(main.results, wanted, strict=True)
        ]

    def _entering(self, value: Value, ops: list[Op]) -> Value:
        """What stands for the value outside; `value` itself is replaced by what it is within."""
        if value.dtype not in NARROW:
            return value
        w = Writer(value.shape, NO_SOURCE, ops)
        self.replaced[value] = _saturated(w.term(value), NARROW[value.dtype]).value
        return value

    def block(self, block: Block) -> None:
        outer, self.ops = self.ops, []
        for op in block.ops:
            self.op(op)
        block.ops, self.ops = self.ops, outer
        block.results = [self.now(value, NO_SOURCE) for value in block.results]

    def now(self, value: Value, source: Source) -> Value:
        if value not in self.replaced and value.const is not None and value.dtype in NARROW:
            self.replaced[value] = _constant(value, source)
        return self.replaced.get(value, value)

    def op(self, op: Op) -> None:
        if self._takes_a_half(op):
            return
        is_bitcast = op.name == "bitcast_convert" and op.operands[0].dtype != op.results[0].dtype
        moves_sign = op.name == "shift_right_logical" and op.results[0].dtype == "i64"
        if is_bitcast or moves_sign or op.name in _SEES_BITS or op.name == "rng_bit_generator":
            self._refuse_bits(op)
        if op.name == "shift_left" and op.results[0].dtype in NARROW:
            amount = _one_number(op.operands[1])
            if amount is not None and amount >= 32:
                raise _refusal(f"a shift by {amount} bits", "nothing would be left", op.source)
        if op.attrs.get("call_target_name") == CALLBACK_TARGET:
            self._callback(op)
            return
        op.operands = [self.now(value, op.source) for value in op.operands]
        target = str(op.attrs.get("call_target_name", ""))
        if target[:8] in _LAPACK:
            op.attrs = {**op.attrs, "call_target_name": _LAPACK[target[:8]] + target[8:]}
        for value in op.results:
            value.dtype = NARROW.get(value.dtype, value.dtype)
        for region in op.regions:
            for value in region.args:
                value.dtype = NARROW.get(value.dtype, value.dtype)
            self.block(region)
        self.ops.append(op)

    def _takes_a_half(self, op: Op) -> bool:
        """`x & 0xffffffff` and `x >> 32`, made ui32, are the low word and what the sign fills.

        So jax.random takes seeds apart.
        """
        if op.name not in ("and", "shift_right_logical") or op.results[0].dtype != "i64":
            return False
        x, other = op.operands
        wanted = 0xFFFFFFFF if op.name == "and" else 32
        if _one_number(other) != wanted:
            return False
        users = self.users.get(op.results[0], [])
        if any(user is None or user.results[0].dtype != "ui32" for user in users):
            return False
        word = Writer(x.shape, op.source, self.ops).term(self.now(x, op.source))
        if op.name != "and":
            word = word.writer.where(word < 0, word.like(-1), 0)
        self.replaced[op.results[0]] = word.value
        return True

    def _callback(self, op: Op) -> None:
        """Python takes and gives 64-bit arrays."""
        operands = []
        for value in op.operands:
            operands.append(_leaving(self.now(value, op.source), value.dtype, self.ops, op.source))
        op.operands = operands
        self.ops.append(op)
        for value in op.results:
            self._entering(value, self.ops)

    def _refuse_bits(self, op: Op) -> None:
        wide = [v.dtype for v in (*op.operands, *op.results) if v.dtype in NARROW]
        if op.name == "rng_bit_generator":
            wide = [v.dtype for v in op.results[1:] if v.dtype in NARROW]
        if wide:
            raise _refusal(f"bits of {wide[0]}", "a 32-bit number has other bits", op.source)


def _one_number(value: Value) -> int | None:
    """The integer that all elements are, where that is known."""
    while value.op is not None and value.op.name == "broadcast_in_dim":
        value = value.op.operands[0]
    return int(value.const.flat[0]) if value.is_splat and value.const is not None else None


def _draw_in_32_bits(block: Block) -> None:
    """jax.random draws a float64 from [1, 2) as 52 random bits beside the bits of 1.0.

    A float32 takes the first 23 of them: the same number, rounded down.
    """
    kept: list[Op] = []
    for op in block.ops:
        high = _high_word(op)
        if high is None:
            kept.append(op)
            continue
        result = op.results[0]
        words = Writer(result.shape, op.source, kept).term(high)
        drawn = (words >> 9 | 0x3F800000).bitcast("f32").convert("f64")
        assert drawn.value.op is not None
        drawn.value.op.results = [result]
        result.op = drawn.value.op
    block.ops = kept


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
    """The operands of the op of that name that makes the value; none where another does."""
    if value is None or value.op is None or value.op.name != name:
        return []
    return value.op.operands


def _other_than(operands: list[Value], number: int) -> Value | None:
    """Of two operands that which is not the number; None where neither is."""
    if len(operands) != 2:
        return None
    for this, other in (operands, operands[::-1]):
        if _one_number(other) == number:
            return this
    return None


def _leaving(value: Value, dtype: str, ops: list[Op], source: Source) -> Value:
    if dtype == value.dtype or dtype not in NARROW:
        return value
    return Writer(value.shape, source, ops).term(value).convert(dtype).value


def _saturated(x: Term, dtype: str) -> Term:
    """The number in `dtype`; an integer outside becomes the nearest inside."""
    if dtype in ("i32", "ui32"):
        info = np.iinfo(DTYPES[dtype].numpy)
        x = x.minimum(int(info.max))
        if DTYPES[x.dtype].kind == "i":
            x = x.maximum(int(info.min))
    return x.convert(dtype)


def _constant(value: Value, source: Source) -> Value:
    assert value.const is not None
    wide = value.const.flat[0:1].reshape(()) if value.is_splat else value.const
    dtype = NARROW[value.dtype]
    target, is_float = numpy_type(dtype), dtype == "f32"
    assert target is not None
    with np.errstate(all="ignore"):
        small = wide.astype(target)
    info, narrow_info = _limits(wide.dtype), _limits(target)
    small = np.where(wide == info.max, narrow_info.max, small)
    small = np.where(wide == info.min, narrow_info.min, small).astype(target)
    if is_float:
        small = _kept_apart(wide, small)
    lost = (wide != info.max) & (wide != info.min) & _is_lost(wide, small)
    if lost.any():
        number = wide[lost].flat[0]
        raise _refusal(f"the constant {number}", f"it does not fit {target.name}", source)
    return Value(value.shape, dtype, const=np.broadcast_to(small, value.shape))


def _kept_apart(wide: np.ndarray, small: np.ndarray) -> np.ndarray:
    """float32 numbers that are neither zero nor one where the float64 ones were not.

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
    """Names all ops that have no float64."""
    found = []
    for op in walk_ops(block):
        if op.name not in _SINGLE or op.attrs.get("call_target_name") == CALLBACK_TARGET:
            continue
        if any(v.dtype in ("f64", "complex<f64>") for v in (*op.operands, *op.results)):
            name = op.attrs.get("call_target_name", op.name)
            reason = 'it has no float64; ipu_x64="demote" computes it in float32'
            found.append((str(name), reason, op.source.line))
    if found:
        raise UnsupportedOpError(found)


#: Which operands are indices.
_INDICES: dict[str, Callable[[Op], range]] = {
    "case": lambda op: range(1),
    "dynamic_slice": lambda op: range(1, len(op.operands)),
    "dynamic_update_slice": lambda op: range(2, len(op.operands)),
    "gather": lambda op: range(1, 2),
    "scatter": lambda op: range(len(op.results), len(op.results) + 1),
}


def _narrow_indices(block: Block) -> None:
    kept: list[Op] = []
    for op in block.ops:
        for index in _INDICES[op.name](op) if op.name in _INDICES else ():
            value = op.operands[index]
            if value.dtype not in ("i64", "ui64"):
                continue
            w = Writer(value.shape, op.source, kept)
            op.operands[index] = _saturated(w.term(value).minimum((1 << 31) - 1), "i32").value
        if op.name == "rng_bit_generator" and op.operands[0].dtype == "ui64":
            _split_state(op, kept)
        else:
            kept.append(op)
        for region in op.regions:
            _narrow_indices(region)
    block.ops = kept


def _split_state(op: Op, kept: list[Op]) -> None:
    """The generator's 64-bit state is two 32-bit words to an IPU (new last dimension)."""
    state, result = op.operands[0], op.results[0]
    words = Op("bitcast_convert", [state], {}, op.source)
    op.operands = [words.add_result((*state.shape, 2), "ui32")]
    joined = Op("bitcast_convert", [Value((*result.shape, 2), "ui32", op, 0)], {}, op.source)
    op.results[0] = joined.operands[0]
    result.op, result.index = joined, 0
    joined.results = [result]
    kept += [words, op, joined]
