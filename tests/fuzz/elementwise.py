"""Elementwise steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.fuzz.generator import Generator, step
from tests.fuzz.values import (
    EPSILON,
    FLOATS,
    INTEGERS,
    SIGNED,
    Node,
    clamped,
    computed,
    dtype_of,
    finite,
    on_grid,
    union,
    whole,
)


@step(3)
def add_sub_mul(g: Generator) -> Sequence[Node]:
    a = g.pick_float()
    b = g.partner(a)
    kind = g.choice(("add", "sub", "mul"))
    f = {"add": lax.add, "sub": lax.sub, "mul": lax.mul}[kind]
    value = f(a.value, b.value)
    special = a.special or b.special
    if kind == "mul":
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
        error = a.error * (b.bound + b.error) + b.error * a.bound
        return [computed(value, min(ends), max(ends), a.step * b.step, error, special)]
    low, high = (b.low, b.high) if kind == "add" else (-b.high, -b.low)
    grid = min(a.step, b.step)
    return [computed(value, a.low + low, a.high + high, grid, a.error + b.error, special)]


@step(2)
def exact_unary(g: Generator) -> Sequence[Node]:
    a = g.pick_float()
    kind = g.choice(("neg", "abs", "max0", "halve", "double", "copy_sign"))
    if kind == "neg":
        return [replace(a, value=-a.value, low=-a.high, high=-a.low)]
    if kind == "abs":
        return [replace(a, value=lax.abs(a.value), low=0.0, high=a.bound)]
    if kind == "max0":
        value = lax.max(a.value, jnp.zeros_like(a.value))
        return [replace(a.with_zero(value), low=0.0, high=max(a.high, 0.0))]
    factor = 0.5 if kind == "halve" else 2.0
    value = a.value * jnp.asarray(factor, a.value.dtype)
    return [
        computed(
            value, a.low * factor, a.high * factor, a.step * factor, a.error * factor, a.special
        )
    ]


@step(1.5)
def rounding(g: Generator) -> Sequence[Node]:
    a = g.pick_float(exact=True)
    f = g.choice(
        (
            lax.floor,
            lax.ceil,
            lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
            lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
            lax.sign,
        )
    )
    return [
        replace(a, value=f(a.value), low=math.floor(a.low), high=math.ceil(a.high), step=1.0)
        if f is not lax.sign
        else replace(a, value=f(a.value), low=-1.0, high=1.0, step=1.0)
    ]


@step(1)
def reduce_precision(g: Generator) -> Sequence[Node]:
    a = g.pick_float(exact=True)
    value = lax.reduce_precision(a.value, exponent_bits=8, mantissa_bits=g.integer(3, 10))
    return [replace(a, value=value, low=1.25 * min(a.low, 0), high=1.25 * max(a.high, 0))]


@step(2)
def min_max(g: Generator) -> Sequence[Node]:
    a = g.pick_float()
    b = g.partner(a)
    return [union(g.choice((lax.max, lax.min))(a.value, b.value), a, b)]


@step(1)
def clamp(g: Generator) -> Sequence[Node]:
    a = g.pick_float()
    return [clamped(a, float(-g.integer(0, 3)), float(g.integer(0, 3)))]


#: f, the interval its argument is held in, its steepest slope there, its largest value.
_SMOOTH: dict[str, tuple[Callable, float, float, float, float]] = {
    "sin": (lax.sin, -8, 8, 1, 1),
    "cos": (lax.cos, -8, 8, 1, 1),
    "tan": (lax.tan, -1, 1, 3.5, 1.6),
    "tanh": (lax.tanh, -8, 8, 1, 1),
    "logistic": (lax.logistic, -8, 8, 0.25, 1),
    "erf": (lax.erf, -4, 4, 1.2, 1),
    "erfc": (lax.erfc, -4, 4, 1.2, 2),
    "exp": (lax.exp, -4, 2, 7.5, 7.5),
    "exp2": (lax.exp2, -4, 2, 2.8, 4),
    "expm1": (lax.expm1, -4, 2, 7.5, 7.5),
    "log": (lax.log, 0.5, 8, 2, 2.1),
    "log1p": (lax.log1p, -0.5, 8, 2, 2.2),
    "sqrt": (lax.sqrt, 0.25, 8, 1, 3),
    "rsqrt": (lax.rsqrt, 0.5, 8, 1.5, 1.5),
    "cbrt": (lax.cbrt, 0.5, 8, 0.6, 2),
    "asin": (lax.asin, -0.5, 0.5, 1.2, 0.6),
    "acos": (lax.acos, -0.5, 0.5, 1.2, 2.1),
    "atan": (lax.atan, -8, 8, 1, 1.5),
    "asinh": (lax.asinh, -8, 8, 1, 2.8),
    "acosh": (lax.acosh, 1.5, 8, 1, 2.8),
    "atanh": (lax.atanh, -0.5, 0.5, 1.4, 0.6),
    "sinh": (lax.sinh, -2, 2, 3.8, 3.7),
    "cosh": (lax.cosh, -2, 2, 3.7, 3.8),
    "lgamma": (lax.lgamma, 3, 8, 2.1, 8.6),
    "digamma": (lax.digamma, 2, 8, 0.7, 2.1),
    "erf_inv": (lax.erf_inv, -0.5, 0.5, 1.2, 0.5),
    "square": (lax.square, -4, 4, 8, 16),
    "cube": (lambda x: lax.integer_pow(x, 3), -2, 2, 12, 8),
    "reciprocal": (lambda x: lax.integer_pow(x, -1), 0.5, 8, 4, 2),
}


@step(3)
def smooth(g: Generator) -> Sequence[Node]:
    """A function whose slope is known where it is used."""
    a = finite(g.pick_float())
    f, low, high, slope, bound = _SMOOTH[g.choice(list(_SMOOTH))]
    a = clamped(a, low, high)
    error = slope * a.error + 12 * EPSILON[a.dtype] * max(bound, 1.0)
    return [Node(f(a.value), -bound, bound, 0.0, error)]


@step(1.5)
def smooth_binary(g: Generator) -> Sequence[Node]:
    a = finite(g.pick_float())
    b = clamped(finite(g.partner(a)), 0.5, 4.0)
    kind = g.choice(("div", "pow", "atan2"))
    if kind == "div":
        a = clamped(a, -4, 4)
        bound, slope, f = 8.0, 2 * a.error + 16 * b.error, lax.div
    elif kind == "pow":
        a = clamped(a, -2, 2)
        a, b = b, a
        bound, slope, f = 16.0, 32 * a.error + 24 * b.error, lax.pow
    else:
        bound, slope, f = 1.6, 2 * (a.error + b.error), lax.atan2
    error = slope + 12 * EPSILON[a.dtype] * bound
    return [Node(f(a.value, b.value), -bound, bound, 0.0, error)]


@step(0.7)
def float_remainder(g: Generator) -> Sequence[Node]:
    a = g.pick_float(exact=True, special=False)
    b = on_grid(g.partner(a, exact=True))
    divisor = lax.max(lax.abs(b.value), jnp.ones_like(b.value))
    return [replace(a.with_zero(lax.rem(a.value, divisor)), step=min(a.step, 1.0))]


@step(2.5)
def integer_binary(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.is_integer)
    b = g.partner(a)
    f = g.choice(
        (
            lax.add,
            lax.sub,
            lax.mul,
            lax.max,
            lax.min,
            lax.div,
            lax.rem,
            lax.bitwise_and,
            lax.bitwise_or,
            lax.bitwise_xor,
            lax.shift_left,
            lax.shift_right_logical,
            lax.shift_right_arithmetic,
        )
    )
    return [whole(f(a.value, b.value))]


@step(1.5)
def integer_unary(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.is_integer)
    fs = [lax.bitwise_not, lax.population_count, lax.clz, lax.sign, lax.neg]
    fs += [
        lambda x: lax.integer_pow(x, 3),
        lambda x: lax.clamp(x.dtype.type(1), x, x.dtype.type(9)),
    ]
    if a.dtype in SIGNED:
        fs += [lax.abs]
    return [whole(g.choice(fs)(a.value))]


@step(1)
def logical(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.is_bool)
    if g.chance(0.3):
        return [whole(lax.bitwise_not(a.value))]
    f = g.choice((lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.max, lax.min))
    return [whole(f(a.value, g.partner(a).value))]


@step(2)
def compare(g: Generator) -> Sequence[Node]:
    a = g.pick(lambda n: n.exact)
    b = g.partner(a, exact=True)
    f = g.choice((lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge))
    return [whole(f(a.value, b.value))]


@step(0.5)
def is_finite(g: Generator) -> Sequence[Node]:
    return [whole(lax.is_finite(g.pick_float().value))]


@step(2)
def select(g: Generator) -> Sequence[Node]:
    a = g.pick()
    b = g.partner(a)
    masks = [n for n in g.nodes if n.is_bool and n.shape == a.shape]
    mask = g.choice(masks) if masks else g.constant(g.choice((a.shape, ())), "bool")
    value = lax.select(mask.value, a.value, b.value)
    return [union(value, a, b) if a.is_float else whole(value)]


@step(2.5)
def convert(g: Generator) -> Sequence[Node]:
    """Between any two dtypes, where the result is defined and exact."""
    a = g.pick()
    to = g.choice((*FLOATS, *INTEGERS, "bool"))
    if a.is_float and to in FLOATS:
        a = clamped(a, -16, 16)
        value = lax.convert_element_type(a.value, dtype_of(to))
        return [computed(value, a.low, a.high, a.step, a.error, a.special)]
    if a.is_float and not a.exact:
        return []
    if a.is_float:
        a = finite(a) if to != "bool" else a
        a = clamped(a, 0 if to.startswith("u") else -100, 100)
        return [whole(lax.convert_element_type(a.value, dtype_of(to)))]
    if to in FLOATS and a.is_integer:
        kind = a.value.dtype.type
        low = -4 if a.dtype in SIGNED else 0
        value = lax.clamp(kind(low), a.value, kind(4))
        return [Node(lax.convert_element_type(value, dtype_of(to)), float(low), 4.0)]
    value = lax.convert_element_type(a.value, dtype_of(to))
    return [Node(value, 0.0, 1.0) if to in FLOATS else whole(value)]


@step(0.8)
def bitcast(g: Generator) -> Sequence[Node]:
    """The bits of an integer as other integers, or as floats from 1 to 2."""
    a = g.pick(lambda n: n.is_integer)
    if a.dtype in ("int32", "uint32") and g.chance(0.3):
        kind = a.value.dtype.type
        bits = (a.value & kind(0x007FF000)) | kind(0x3F800000)
        return [Node(lax.bitcast_convert_type(bits, np.float32), 1.0, 2.0, 2.0**-11)]
    to = g.choice(INTEGERS)
    ratio = np.dtype(to).itemsize // np.dtype(a.dtype).itemsize
    if ratio > 1 and (not a.shape or a.shape[-1] != ratio):
        return []
    try:
        return [whole(lax.bitcast_convert_type(a.value, np.dtype(to)))]
    except ValueError:
        # Under vmap, JAX's rule takes a batch dimension that stands last for one of the op's own.
        return []


@step(0.5)
def barrier(g: Generator) -> Sequence[Node]:
    a, b = g.pick(), g.pick()
    one, two = lax.optimization_barrier((a.value, b.value))
    return [a.like(one), b.like(two)]
