"""Complex functions as formulas of real and imaginary parts: a table, name -> formula.

Zero, infinity and NaN give the results of XLA's CPU backend. `sqrt`, `log`, `sine` ...
come from JAX mostly as real arithmetic already: the artifact is written after StableHLO's own
complex-math expansion; the formulas here serve what is left, and programs by other front ends.
No step on the way of a finite result is invalid, overflows or divides by zero: users may have asked
for an error there.
"""

from __future__ import annotations

from collections.abc import Callable

from ipujax.compiler.ir import Term, where

Pair = tuple[Term, Term]  #: real and imaginary part
Formula = Callable[..., Pair]

_INF = float("inf")


def modulus(z: Pair) -> Term:
    """|z| without overflow on the way."""
    re, im = abs(z[0]), abs(z[1])
    most, least = re.maximum(im), re.minimum(im)
    ratio = least / _or_one(most)
    length = most * (ratio * ratio + 1.0).sqrt()
    return where(length.is_nan(), least, length)  # inf / inf


def _or_one(x: Term) -> Term:
    """x, or 1 in place of 0."""
    return where(x.eq(0.0), x.like(1.0), x)


def add(x: Pair, y: Pair) -> Pair:
    return x[0] + y[0], x[1] + y[1]


def subtract(x: Pair, y: Pair) -> Pair:
    return x[0] - y[0], x[1] - y[1]


def multiply(x: Pair, y: Pair) -> Pair:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def negate(z: Pair) -> Pair:
    return -z[0], -z[1]


def divide(x: Pair, y: Pair) -> Pair:
    """Smith's quotient (Algorithm 116, 1962), with C99's values at zero and infinity (annex G).

    Where |im y| is larger both operands are turned by -i first, so that one formula serves.
    """
    x_size, y_size = abs(x[0]).maximum(abs(x[1])), abs(y[0]).maximum(abs(y[1]))
    scale = where(x_size.maximum(y_size) > 2.0**125, x_size.like(0.25), 1.0)
    endless = abs(x[0]).eq(_INF), abs(x[1]).eq(_INF)
    # An infinite x counts as its direction.
    up = (endless[0] | endless[1]) & (y_size < _INF) & (y_size > 0.0)
    direction = tuple(
        where(up, where(infinite, part.unary("sign"), 0.0), part * scale)
        for infinite, part in zip(endless, x, strict=True)
    )
    wide = abs(y[0]) >= abs(y[1])
    a, b = where(wide, direction[0], direction[1]), where(wide, direction[1], -direction[0])
    c, d = y[0] * scale, y[1] * scale
    c, d = where(wide, c, d), where(wide, d, -c)
    diagonal = c.unary("sign") * d.unary("sign")
    by_zero = y_size.eq(0.0)
    ratio = where(abs(d).eq(_INF), diagonal, d / _or_one(c))
    below = where(by_zero, c, c + d * ratio)  # a sum would lose the zero's sign
    length = where(up, a.like(_INF), 1.0)
    a_side, b_side = where(by_zero, 0.0, a * ratio), where(by_zero, 0.0, b * ratio)
    return (a + b_side) * length / below, (b - a_side) * length / below


def sign(z: Pair) -> Pair:
    length = _or_one(modulus(z))
    return z[0] / length, z[1] / length


def exponential(z: Pair) -> Pair:
    """exp of half the real part twice, so that a small cosine meets no early infinity."""
    re, im = z
    half = (re * 0.5).exp()
    flat = im.eq(0.0)
    return (
        where(flat, re.exp(), half * im.cos() * half),
        where(flat, im, half * im.sin() * half),
    )


def exponential_minus_one(z: Pair) -> Pair:
    """expm1(a) cos b - 2 sin(b/2)^2: no cancellation near zero."""
    re, im = z
    half_sine = (im * 0.5).sin()
    flat = im.eq(0.0)
    real = re.expm1() * im.cos() - half_sine * half_sine * 2.0
    return where(flat, re.expm1(), real), where(flat, im, re.exp() * im.sin())


def log(z: Pair) -> Pair:
    """The logarithm of the larger part plus half log1p of the squared ratio."""
    re, im = abs(z[0]), abs(z[1])
    most, least = re.maximum(im), re.minimum(im)
    ratio = least / _or_one(most)
    rest = where(most.eq(least), most.like(1.0), ratio * ratio)
    length = most.log() + rest.log1p() * 0.5
    near = (most - 1.0) * (most + 1.0) + least * least
    unit = (most < 2.0) & (most > 0.5)
    return where(unit, near.log1p() * 0.5, length), z[1].atan2(z[0])


def log_plus_one(z: Pair) -> Pair:
    re, im = z
    far = log((re + 1.0, im))[0]
    near = (re * (re + 2.0) + im * im).log1p() * 0.5
    use_near = (abs(re) < 0.5) & (abs(im) < 0.5)
    return where(use_near, near, far), im.atan2(re + 1.0)


def sqrt(z: Pair) -> Pair:
    re, im = z
    # Scaled by 2^-4 or 2^60, |z| + |re| neither overflows nor loses bits.
    large = abs(re).maximum(abs(im)) >= 1.0
    scale = where(large, re.like(2.0**-4), 2.0**60)
    x, y = abs(re) * scale, abs(im) * scale
    root = ((modulus((x, y)) + x) * 0.5).sqrt() * where(large, re.like(4.0), 2.0**-30)
    other = abs(im) / _or_one(root * 2.0)
    right = re >= 0.0
    u, v = where(right, root, other), where(right, other, root)
    wide = im.is_infinite()
    u = where(wide, u.like(_INF), u)
    v = where(wide, v.like(_INF), v)
    left = re.eq(-_INF) & im.is_finite()
    far = re.eq(_INF) & im.is_finite()
    u = where(left, 0.0, u)
    v = where(far, 0.0, v)
    return u, v.with_sign_of(im)


def rsqrt(z: Pair) -> Pair:
    """conj(sqrt z) / |z|."""
    u, v = sqrt(z)
    length = modulus(z)
    nothing, endless = length.eq(0.0), length.eq(_INF)
    re = where(nothing, length.like(_INF), where(endless, 0.0, u / length))
    im = where(nothing, length.like(float("nan")), where(endless, 0.0, -(v / length)))
    return re, im


def cbrt(z: Pair) -> Pair:
    length, angle = modulus(z).unary("cbrt"), z[1].atan2(z[0]) / 3.0
    return length * angle.cos(), length * angle.sin()


def sine(z: Pair) -> Pair:
    return z[0].sin() * z[1].cosh(), z[0].cos() * z[1].sinh()


def cosine(z: Pair) -> Pair:
    return z[0].cos() * z[1].cosh(), -(z[0].sin() * z[1].sinh())


def tanh(z: Pair) -> Pair:
    """Kahan's (Branch cuts for complex elementary functions, 1987): no overflow on the way."""
    re, im = z
    t, s = im.tan(), re.maximum(-11.0).minimum(11.0).sinh()
    beta = t * t + 1.0
    rho = (s * s + 1.0).sqrt()
    below = beta * s * s + 1.0
    near = beta * rho * s / below, t / below
    far_im = im.sin() * im.cos() * 4.0 * (abs(re) * -2.0).exp()
    far_im = where(im.is_finite(), far_im, re.like(0.0).with_sign_of(im))
    far = abs(re) > 11.0
    one = re.like(1.0).with_sign_of(re)
    unknown = ~im.is_finite() & re.is_finite()
    out_re = where(far, one, near[0])
    out_im = where(far, far_im, near[1])
    out_im = where(im.eq(0.0), im, out_im)
    return where(unknown, im - im, out_re), where(unknown, im - im, out_im)


def tan(z: Pair) -> Pair:
    u, v = tanh((-z[1], z[0]))
    return v, -u


def logistic(z: Pair) -> Pair:
    re, im = exponential(negate(z))
    one = re.like(1.0)
    return divide((one, re.like(0.0)), (re + 1.0, im))


def power(x: Pair, y: Pair) -> Pair:
    """|x|^c e^(-d t) at the angle c t + d log|x|, with t the angle of x."""
    c, d = y
    length, angle = modulus(x), x[1].atan2(x[0])
    coefficient = length.pow(c) * (-(d * angle)).exp()
    turned = c * angle + where(d.eq(0.0), d, d * _or_one(length).log())
    re, im = coefficient * turned.cos(), coefficient * turned.sin()
    base_zero = length.eq(0.0) & (c > 0.0)
    re, im = where(base_zero, 0.0, re), where(base_zero, 0.0, im)
    to_zero = c.eq(0.0) & d.eq(0.0)
    return where(to_zero, re.like(1.0), re), where(to_zero, 0.0, im)


def atan2(y: Pair, x: Pair) -> Pair:
    """-i log((x + i y) / sqrt(x^2 + y^2))."""
    top = x[0] - y[1], x[1] + y[0]
    below = sqrt(add(multiply(x, x), multiply(y, y)))
    re, im = log(divide(top, below))
    return im, -re


def _is_larger(x: Pair, y: Pair) -> Term:
    """In the order of real parts, and of imaginary parts where those are equal (StableHLO)."""
    return (x[0] > y[0]) | (x[0].eq(y[0]) & (x[1] > y[1]))


def maximum(x: Pair, y: Pair) -> Pair:
    first = _is_larger(x, y) | x[0].is_nan() | x[1].is_nan()
    return where(first, x[0], y[0]), where(first, x[1], y[1])


def minimum(x: Pair, y: Pair) -> Pair:
    first = _is_larger(y, x) | x[0].is_nan() | x[1].is_nan()
    return where(first, x[0], y[0]), where(first, x[1], y[1])


def clamp(low: Pair, x: Pair, high: Pair) -> Pair:
    return minimum(maximum(x, low), high)


#: Complex to complex, by the op's name.
_NAMES = """
    add atan2 cbrt clamp cosine divide exponential exponential_minus_one log log_plus_one
    logistic maximum minimum multiply negate power rsqrt sign sine sqrt subtract tan tanh
"""
FORMULAS: dict[str, Formula] = {name: globals()[name] for name in _NAMES.split()}
