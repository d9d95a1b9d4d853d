"""Complex functions as formulas of real and imaginary parts: a table, name -> formula.

Zero, infinity and NaN give the results of XLA's CPU backend. From JAX, `sqrt`, `log`, `sine` ...
mostly arrive as real arithmetic: the artifact is written after StableHLO's own complex-math
expansion. The formulas here serve the remaining ops, and programs of other front ends.
No step towards a finite result is invalid, overflows or divides by zero: users may have asked
for errors in these cases.
"""

from __future__ import annotations

from collections.abc import Callable

from ipujax.compiler.ir import Term, number_of, where

Pair = tuple[Term, Term]  #: real and imaginary part
Formula = Callable[..., Pair]

_INF = float("inf")


def modulus(z: Pair) -> Term:
    """|z| without intermediate overflow."""
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
    """The other factor where one is the constant 1, so that an infinity in it makes no NaN."""
    if _is_one(x):
        return y
    if _is_one(y):
        return x
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def _is_one(z: Pair) -> bool:
    return number_of(z[0].value) == 1 and number_of(z[1].value) == 0


def negate(z: Pair) -> Pair:
    return -z[0], -z[1]


def _scale_of(size: Term) -> Term:
    """A power of four that keeps products and quotients of scaled parts in range."""
    small, step = (2.0**-62, 2.0**48) if size.dtype == "f32" else (2.0**-500, 2.0**384)
    return where(size < small, size.like(step), where(size > 1 / small, size.like(1 / step), 1.0))


def _scaled(z: Pair) -> tuple[Pair, Term]:
    """z times a power of four, and that power."""
    scale = _scale_of(abs(z[0]).maximum(abs(z[1])))
    return (z[0] * scale, z[1] * scale), scale


def divide(x: Pair, y: Pair) -> Pair:
    """Smith's quotient (Algorithm 116, 1962), with C99's values at zero and infinity (annex G).

    Where |im y| is larger, both operands are first multiplied by -i, so that one formula serves.
    """
    (x_re, x_im), x_scale = _scaled(x)
    (y_re, y_im), y_scale = _scaled(y)
    y_size = abs(y_re).maximum(abs(y_im))
    by_zero = y_size.eq(0.0)
    endless = abs(x[0]).eq(_INF), abs(x[1]).eq(_INF)
    # An infinite x is replaced by its direction.
    up = (endless[0] | endless[1]) & (y_size < _INF) & (y_size > 0.0)
    direction = tuple(
        where(up, where(infinite, whole.unary("sign"), 0.0), where(by_zero, whole, part))
        for infinite, whole, part in zip(endless, x, (x_re, x_im), strict=True)
    )
    wide = abs(y_re) >= abs(y_im)
    a, b = where(wide, direction[0], direction[1]), where(wide, direction[1], -direction[0])
    c, d = where(wide, y_re, y_im), where(wide, y_im, -y_re)
    diagonal = c.unary("sign") * d.unary("sign")
    ratio = where(abs(d).eq(_INF), diagonal, d / _or_one(c))
    below = where(by_zero, c, c + d * ratio)  # a sum would lose the zero's sign
    length, back = where(up, a.like(_INF), 1.0), y_scale / x_scale
    a_side, b_side = where(by_zero, 0.0, a * ratio), where(by_zero, 0.0, b * ratio)
    return (a + b_side) * length / below * back, (b - a_side) * length / below * back


def sign(z: Pair) -> Pair:
    (re, im), _ = _scaled(z)
    length = _or_one(modulus((re, im)))
    return re / length, im / length


def exponential(z: Pair) -> Pair:
    """Multiplies by exp(re / 2) twice, so that nothing overflows before a small cosine."""
    re, im = z
    half = (re * 0.5).exp()
    flat = im.eq(0.0)
    return (
        where(flat, re.exp(), half * im.cos() * half),
        where(flat, im, half * im.sin() * half),
    )


def exponential_minus_one(z: Pair) -> Pair:
    """expm1(a) cos b - 2 sin(b/2)^2: no cancellation near zero; large a as in `exponential`."""
    re, im = z
    half, half_sine = (re * 0.5).exp(), (im * 0.5).sin()
    flat, far = im.eq(0.0), re > 20.0
    bounded = where(flat, re, re.minimum(20.0)).expm1()
    near = bounded * im.cos() - half_sine * half_sine * 2.0
    real = where(far, half * im.cos() * half - 1.0, near)
    return where(flat, bounded, real), where(flat, im, half * im.sin() * half)


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
    scaled, scale = _scaled(z)
    u, v = sqrt(scaled)
    length = modulus(scaled)
    nothing, endless, back = length.eq(0.0), length.eq(_INF), scale.sqrt()
    re = where(nothing, length.like(_INF), where(endless, 0.0, u / length * back))
    im = where(nothing, length.like(float("nan")), where(endless, 0.0, -(v / length * back)))
    return re, im


def cbrt(z: Pair) -> Pair:
    length, angle = modulus(z).unary("cbrt"), z[1].atan2(z[0]) / 3.0
    return length * angle.cos(), length * angle.sin()


def _times_hyperbolic(factor: Term, x: Term, odd: bool) -> Term:
    """factor * sinh(x) if odd, else factor * cosh(x).

    Large |x| take exp(|x| / 2) twice: a small factor may keep the product finite. 0 times
    infinity or NaN is 0 here, as in C99.
    """
    limit = 80.0 if x.dtype == "f32" else 700.0
    half = (abs(x) * 0.5).exp()
    beyond = where(factor.eq(0.0), factor, factor * half * (half * 0.5))
    bounded = x.maximum(-limit).minimum(limit)
    if odd:
        beyond = where(x < 0.0, -beyond, beyond)
    near = factor * (bounded.sinh() if odd else bounded.cosh())
    return where(abs(x) <= limit, near, beyond)


def sine(z: Pair) -> Pair:
    re, im = z
    imaginary = _times_hyperbolic(re.cos(), im, True)
    return _times_hyperbolic(re.sin(), im, False), where(
        im.eq(0.0) & ~re.is_finite(), im, imaginary
    )


def cosine(z: Pair) -> Pair:
    re, im = z
    imaginary = -_times_hyperbolic(re.sin(), im, True)
    return _times_hyperbolic(re.cos(), im, False), where(
        im.eq(0.0) & ~re.is_finite(), im, imaginary
    )


def sinh(z: Pair) -> Pair:
    """-i sin(i z)."""
    u, v = sine((z[1], z[0]))
    return v, u


def cosh(z: Pair) -> Pair:
    """cos(i z)."""
    return cosine((-z[1], z[0]))


def tanh(z: Pair) -> Pair:
    """Kahan's formula (Branch cuts for complex elementary functions, 1987); never overflows."""
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
    """1 / (1 + e^-z), or e^z / (1 + e^z), whichever exponent is not positive.

    With w that exponent, re(1 + e^w) is -expm1(re w) + 2 e^(re w) cos^2(im w / 2): no cancellation.
    """
    left = z[0] < 0.0
    re, im = where(left, z[0], -z[0]), where(left, z[1], -z[1])
    size, cosine_of_half = re.exp(), (im * 0.5).cos()
    turned = size * im.cos(), where(im.eq(0.0), im, size * im.sin())
    below = size * cosine_of_half * cosine_of_half * 2.0 - re.expm1()
    one, zero = re.like(1.0), re.like(0.0)
    return divide((where(left, turned[0], one), where(left, turned[1], zero)), (below, turned[1]))


def power(x: Pair, y: Pair) -> Pair:
    """|x|^c e^(-d t) at the angle c t + d log|x|, with t the angle of x.

    Where one factor leaves the range but the product may not, the modulus is e^(c log|x| - d t).
    """
    c, d = y
    zero = x[0].eq(0.0) & x[1].eq(0.0)
    angle = x[1].atan2(x[0])
    logarithm = log((where(zero, 1.0, x[0]), x[1]))[0]
    rise, turn = c * logarithm, -(d * angle)
    limit = 80.0 if c.dtype == "f32" else 700.0
    apart = (abs(rise) < limit) & (abs(turn) < limit)
    base, scale = _scaled((where(apart, x[0], 1.0), where(apart, x[1], 0.0)))
    length = modulus(base).pow(c) * scale.pow(-c)
    damped = where(rise + turn > 0.0, c.like(2.0**-24), 1.0)  # a cosine may bring it back in range
    half = (where(apart, turn, rise + turn) * 0.5).exp()
    coefficient = length * damped * half * half
    turned = c * angle + where(d.eq(0.0), d, d * logarithm)
    re, im = coefficient * turned.cos() / damped, coefficient * turned.sin() / damped
    nothing = coefficient.eq(0.0) & (~zero | (c > 0.0))
    re, im = where(nothing, 0.0, re), where(nothing, 0.0, im)
    to_zero = c.eq(0.0) & d.eq(0.0)
    re, im = where(to_zero, re.like(1.0), re), where(to_zero, 0.0, im)
    undefined = zero & c.eq(0.0) & ~d.eq(0.0)
    return where(undefined, re.like(float("nan")), re), where(undefined, im.like(float("nan")), im)


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
FORMULAS |= {"chlo.cosh": cosh, "chlo.sinh": sinh}
