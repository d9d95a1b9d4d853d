"""rng_bit_generator, with the same bits as XLA, and rng, whose bits are not specified."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule

declare("rng", effect=True)
declare("rng_bit_generator", replicated="all devices draw the same bits from the same state")

_ALGORITHMS = {"THREE_FRY": "threefry", "PHILOX": "philox", "DEFAULT": "default"}


@rule("rng_bit_generator")
def rng_bit_generator(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """New state and random bits; the 64-bit words of the state are pairs of 32-bit ones."""
    (state,) = builder.operands(op)
    bits = op.results[1]
    new_state, random = ipu.popx.rngBitGenerator(
        builder.graph,
        state.flatten(),
        _ALGORITHMS[op.attrs["rng_algorithm"]],
        list(bits.shape),
        builder.type_of(bits),
        builder.program,
        builder.debug(op),
    )
    return [new_state.reshape(list(op.results[0].shape)), random]


#: Random bits that fit a float's mantissa with its implicit bit: they give multiples below 1.
_FLOAT_BITS = {"f32": 24, "f16": 11, "bf16": 8}


@rule("rng")
def rng(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """UNIFORM: the bounds are the operands, the upper one excluded. NORMAL: mean and deviation."""
    low, high = (tensor.reshape([]) for tensor in builder.operands(op)[:2])
    result, debug, e = op.results[0], builder.debug(op), ipu.popops.expr
    shape, type_, poprand = list(result.shape), builder.type_of(result), ipu.poprand
    x, a, b = (e.PlaceHolder(i) for i in (1, 2, 3))
    reference = builder.variable(ipu.poplar.FLOAT, shape, debug)
    if op.attrs["rng_distribution"] == "NORMAL":
        source = poprand.normal(
            builder.graph, None, 0, reference, ipu.poplar.FLOAT, 0.0, 1.0, builder.program, debug
        )
        scaled = e.Add(e.Mul(x, e.Cast(b, ipu.poplar.FLOAT)), e.Cast(a, ipu.poplar.FLOAT))
    else:
        source = poprand.uniform(
            builder.graph,
            None,
            0,
            reference,
            ipu.poplar.UNSIGNED_INT,
            0.0,
            float(2**32 - 1),
            builder.program,
            debug,
        )
        scaled = _uniform(result.dtype, x, a, b)
    if type_ != ipu.poplar.BOOL:
        scaled = e.Cast(scaled, type_)
    return builder.round_bfloat16(op, builder.map([scaled], [source, low, high], debug))


def _uniform(dtype: str, bits: ipu.Expr, low: ipu.Expr, high: ipu.Expr) -> ipu.Expr:
    """Random 32 bits as a number in [low, high)."""
    e, poplar = ipu.popops.expr, ipu.poplar
    word = poplar.UNSIGNED_INT
    if dtype in _FLOAT_BITS:
        count = _FLOAT_BITS[dtype]
        unit = e.Mul(
            e.Cast(e.Shr(bits, e.Const(word, 32 - count)), poplar.FLOAT),
            e.Const(poplar.FLOAT, 2.0**-count),
        )
        low, high = (e.Cast(each, poplar.FLOAT) for each in (low, high))
        return e.Add(low, e.Mul(unit, e.Sub(high, low)))
    if dtype == "i1":
        return e.Equal(e.BitwiseAnd(bits, e.Const(word, 1)), e.Const(word, 1))
    low, high = (e.Cast(each, word) for each in (low, high))
    return e.Add(low, e.Rem(bits, e.Sub(high, low)))
