"""Computes the upper words of 32-bit products in 32 bits.

Before:  %2 = multiply(convert(%x), convert(%y))     i64     (the decomposition of chlo.mulhi)
         %4 = convert(shift_right_logical(%2, 32))   i32
After:   %4 = sums and products of the 16-bit halves of %x and %y
"""

from __future__ import annotations

from ipujax.compiler.ir import Op, Program, Rewriter, Term, Value, number_of, where
from ipujax.compiler.passes.loops import drop_dead

#: Types that 32-bit factors are widened to before they are multiplied.
_WIDE = {"i32": "i64", "ui32": "ui64"}


def split_high_products(program: Program) -> Program:
    """Rewrites all blocks; runs before the passes that check 64-bit types."""
    rewriter = Rewriter({"convert": _split})
    rewriter.program(program)
    return drop_dead(program) if rewriter.replaced else program


def _split(w: Rewriter, op: Op) -> list[Value] | None:
    factors = _factors(op)
    if factors is None:
        return None
    high = _high_word(*(w.term(factor) for factor in factors))
    return [high.unary("bitcast_convert", op.results[0].dtype).value]


def _factors(op: Op) -> list[Value] | None:
    """x and y, if the op is the last one of `(x * y) >> 32` as shown above."""
    if op.name != "convert" or op.results[0].dtype not in _WIDE:
        return None
    shift = op.operands[0].op
    if shift is None or shift.name not in ("shift_right_arithmetic", "shift_right_logical"):
        return None
    product = shift.operands[0].op
    if product is None or product.name != "multiply" or number_of(shift.operands[1]) != 32:
        return None
    converts = [value.op for value in product.operands]
    factors = [c.operands[0] for c in converts if c is not None and c.name == "convert"]
    if len(factors) < 2 or factors[0].dtype != factors[1].dtype:
        return None
    return factors if _WIDE.get(factors[0].dtype) == product.results[0].dtype else None


def _high_word(x: Term, y: Term) -> Term:
    """As ui32. No sum overflows: the largest is 0xffff + 0xffff + 0xffff * 0xffff = 2**32 - 1."""
    a, b = x.bitcast("ui32"), y.bitcast("ui32")
    (a1, a0), (b1, b0) = ((term >> 16, term & 0xFFFF) for term in (a, b))
    middle = a1 * b0
    carry = (a0 * b0 >> 16) + (middle & 0xFFFF) + a0 * b1
    high = a1 * b1 + (middle >> 16) + (carry >> 16)
    if x.dtype == "i32":
        # As unsigned, a negative factor is 2**32 too large: the other one is subtracted once.
        high = high - where(x < 0, b, 0) - where(y < 0, a, 0)
    return high
