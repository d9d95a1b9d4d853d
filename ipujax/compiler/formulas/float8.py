"""Formulas for 8-bit and 4-bit floats: numbers are held in float32, bits in bytes.

The formats are those of ml_dtypes (and its README's sources: OCP FP8, OCP MX, arXiv:2206.02915).
Rounding is to nearest even; numbers that are too large become infinity, or NaN if the format has
no infinity, or the largest number if it has neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ipujax.compiler.ir import Term, where
from ipujax.types import BY_STABLEHLO

_MAGNITUDE = 0x7FFFFFFF
_INF_BITS = 0x7F800000
_INF, _NAN = float("inf"), float("nan")


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """One format; `kind` is "ieee", "fn" (no infinity), "fnuz" (nor -0), "sat" (nor NaN)."""

    numpy: np.dtype
    mantissa: int
    min_exponent: int  #: of the smallest normal number
    largest: float
    kind: str
    bits: int = 8
    held: str = "f32"

    @property
    def bias(self) -> int:
        return 1 - self.min_exponent

    @property
    def sign_bit(self) -> int:
        return 1 << (self.bits - 1)


def _row(name: str, kind: str) -> SmallFloat:
    dtype = BY_STABLEHLO[name].numpy
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return SmallFloat(
        dtype, int(info.nmant), int(info.minexp), float(info.max), kind, int(info.bits)
    )


#: By StableHLO's names.
SMALL_FLOATS: dict[str, SmallFloat] = {
    name: _row(name, kind)
    for name, kind in (
        ("f8E4M3FN", "fn"),
        ("f8E4M3", "ieee"),
        ("f8E3M4", "ieee"),
        ("f8E5M2", "ieee"),
        ("f8E4M3B11FNUZ", "fnuz"),
        ("f8E4M3FNUZ", "fnuz"),
        ("f8E5M2FNUZ", "fnuz"),
        ("f8E8M0FNU", "scale"),
        ("f4E2M1FN", "sat"),
    )
}


def rounded(f: SmallFloat, x: Term) -> Term:
    """The nearest number of the format, as float32."""
    if f.kind == "scale":
        return _rounded_scale(x)
    exponent = ((x.bitcast("i32") & _MAGNITUDE) >> 23).minimum(254)
    # Neighbours differ by 2^(quantum - 127); divided by it, they are whole numbers.
    quantum = exponent.maximum(f.min_exponent + 127) - f.mantissa
    down = ((254 - quantum) << 23).bitcast("f32")
    up = (quantum << 23).bitcast("f32")
    near = (x * down).unary("round_nearest_even") * up
    if f.kind == "sat":
        return where(near.is_nan(), near.like(-0.0), near.maximum(-f.largest).minimum(f.largest))
    if f.kind == "fnuz":
        near = near + 0.0  # no -0
    beyond = near * _INF if f.kind == "ieee" else near.like(_NAN)
    return where(abs(near) > f.largest, beyond, near)


def _rounded_scale(x: Term) -> Term:
    """The nearest power of two from 2^-127 on, ties up; the format has no zero and no sign.

    Computes with integers only: 2^-127 is not a normal float32.
    """
    bits = x.bitcast("i32")
    power = where(bits < 0x600000, bits.like(0), (bits + 0x400000) >> 23)
    good = (bits > 0) & (bits < 0x7F400000)
    return where(good, _power(power), float("nan"))


def _power(exponent: Term) -> Term:
    """2^(exponent - 127)."""
    bits = where(exponent.eq(0), exponent.like(0x00400000), exponent << 23)
    return bits.bitcast("f32")


def decoded(f: SmallFloat, byte: Term) -> Term:
    """ui8 bits -> the number, as float32; NaN bits become the highest bits of the mantissa."""
    bits = byte.convert("i32")
    if f.kind == "scale":
        power = _power(bits)
        return where(bits.eq(255), power.like(_NAN), power)
    magnitude = bits & (f.sign_bit - 1)
    normal = ((magnitude << (23 - f.mantissa)) + ((127 - f.bias) << 23)).bitcast("f32")
    below = magnitude.convert("f32") * 2.0 ** (f.min_exponent - f.mantissa)
    number = where(magnitude < (1 << f.mantissa), below, normal)
    if f.kind == "ieee":
        infinite = _infinity_bits(f)
        high = ((magnitude << (23 - f.mantissa)) | _INF_BITS).bitcast("f32")
        number = where(magnitude >= infinite, high, number)
    elif f.kind == "fn":
        number = where(magnitude.eq(0x7F), number.like(_NAN), number)
    number = where(bits >= f.sign_bit, -number, number)
    if f.kind == "fnuz":
        number = where(bits.eq(0x80), number.like(_NAN), number)
    return number


def encoded(f: SmallFloat, x: Term) -> Term:
    """A number of the format, as float32 -> its ui8 bits."""
    if f.kind == "fnuz":
        x = x + 0.0  # no -0: its bits are those of NaN
    bits = x.bitcast("i32")
    if f.kind == "scale":
        return where(x.is_nan(), bits.like(255), (bits >> 23) & 255).convert("ui8")
    size = abs(x)
    normal = ((bits & _MAGNITUDE) >> (23 - f.mantissa)) - ((127 - f.bias) << f.mantissa)
    below = (size * 2.0 ** (f.mantissa - f.min_exponent)).convert("i32")
    magnitude = where(size < 2.0**f.min_exponent, below, normal)
    if f.kind == "ieee":
        high = ((bits >> (23 - f.mantissa)) & ((1 << f.mantissa) - 1)) | _infinity_bits(f)
        magnitude = where(x.is_finite(), magnitude, high)
    elif f.kind == "fn":
        magnitude = where(x.is_nan(), magnitude.like(0x7F), magnitude)
    sign = bits.binary("shift_right_logical", 32 - f.bits) & f.sign_bit
    byte = magnitude | sign
    if f.kind == "fnuz":
        byte = where(x.is_nan(), byte.like(0x80), byte)
    return byte.convert("ui8")


def _infinity_bits(f: SmallFloat) -> int:
    return ((1 << (f.bits - 1 - f.mantissa)) - 1) << f.mantissa
