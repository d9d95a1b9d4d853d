"""Complex functions as formulas of real and imaginary parts: a table, name -> formula.

The cases at zero, infinity and NaN are those that XLA's CPU backend has. `sqrt`, `log`, `sine` ...
come from JAX mostly as real arithmetic already: the artifact is written after StableHLO's own
complex-math expansion; the formulas here serve what is left, and programs by other front ends.
No step on the way of a finite result is invalid, overflows or divides by zero: users may have asked
for an error there.
"""

from __future__ import annotations

from collections.abc import Callable

from ipujax.compiler.passes.terms import Term, Writer

Pair = tuple[Term, Term]  #: real and imaginary part
Formula = Callable[..., Pair]

_INF = float("inf")


def modulus(w: Writer, z: Pair) -> Term:
    """|z| without overflow on the way."""
    re, im = abs(z[0]), abs(z[1])
    most, least = re.maximum(im), re.minimum(im)
    ratio = least / _or_one(w, most)
    length = most * (ratio * ratio + 1.0).sqrt()
    return w.where(length.is_nan(), least, length)  # inf / inf


def _or_one(w: Writer, x: Term) -> Term:
    """x, or 1 in place of 0."""
    return w.where(x.eq(0.0), x.like(1.0), x)


def add(w: Writer, x: Pair, y: Pair) -> Pair:
    return x[0] + y[0], x[1] + y[1]


def subtract(w: Writer, x: Pair, y: Pair) -> Pair:
    return x[0] - y[0], x[1] - y[1]


def multiply(w: Writer, x: Pair, y: Pair) -> Pair:
    return x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]


def negate(w: Writer, z: Pair) -> Pair:
    return -z[0], -z[1]


def divide(w: Writer, x: Pair, y: Pair) -> Pair:
    """Smith's quotient (Algorithm 116, 1962), with C99's values at zero and infinity (annex G).

    Where |im y| is larger both operands are turned by -i first, so that one formula serves.
    """
    x_size, y_size = abs(x[0]).maximum(abs(x[1])), abs(y[0]).maximum(abs(y[1]))
    scale = w.where(x_size.maximum(y_size) > 2.0**125, x_size.like(0.25), 1.0)
    endless = abs(x[0]).eq(_INF), abs(x[1]).eq(_INF)
    # An infinite x counts as its direction.
    up = (endless[0] | endless[1]) & (y_size < _INF) & (y_size > 0.0)
    direction = tuple(
        w.where(up, w.where(infinite, part.unary("sign"), 0.0), part * scale)
        for infinite, part in zip(endless, x, strict=True)
    )
    wide = abs(y[0]) >= abs(y[1])
    a, b = w.where(wide, direction[0], direction[1]), w.where(wide, direction[1], -direction[0])
    c, d = y[0] * scale, y[1] * scale
    c, d = w.where(wide, c, d), w.where(wide, d, -c)
    diagonal = c.unary("sign") * d.unary("sign")
    by_zero = y_size.eq(0.0)
    ratio = w.where(abs(d).eq(_INF), diagonal, d / _or_one(w, c))
    below = w.where(by_zero, c, c + d * ratio)  # of the sum the zero's sign would be lost
    length = w.where(up, a.like(_INF), 1.0)
    a_side, b_side = w.where(by_zero, 0.0, a * ratio), w.where(by_zero, 0.0, b * ratio)
    return (a + b_side) * length / below, (b - a_side) * length / below


def sign(w: Writer, z: Pair) -> Pair:
    length = _or_one(w, modulus(w, z))
    return z[0] / length, z[1] / length


def exponential(w: Writer, z: Pair) -> Pair:
    """exp of half the real part twice, so that a small cosine meets no early infinity."""
    re, im = z
    half = (re * 0.5).exp()
    flat = im.eq(0.0)
    return (
        w.where(flat, re.exp(), half * im.cos() * half),
        w.where(flat, im, half * im.sin() * half),
    )


def exponential_minus_one(w: Writer, z: Pair) -> Pair:
    """expm1(a) cos b - 2 sin(b/2)^2: no cancellation near zero."""
    re, im = z
    half_sine = (im * 0.5).sin()
    flat = im.eq(0.0)
    real = re.expm1() * im.cos() - half_sine * half_sine * 2.0
    return w.where(flat, re.expm1(), real), w.where(flat, im, re.exp() * im.sin())


def log(w: Writer, z: Pair) -> Pair:
    """The logarithm of the larger part plus half log1p of the squared ratio."""
    re, im = abs(z[0]), abs(z[1])
    most, least = re.maximum(im), re.minimum(im)
    ratio = least / _or_one(w, most)
    rest = w.where(most.eq(least), most.like(1.0), ratio * ratio)
    length = most.log() + rest.log1p() * 0.5
    near = (most - 1.0) * (most + 1.0) + least * least
    unit = (most < 2.0) & (most > 0.5)
    return w.where(unit, near.log1p() * 0.5, length), z[1].atan2(z[0])


def log_plus_one(w: Writer, z: Pair) -> Pair:
    re, im = z
    far = log(w, (re + 1.0, im))[0]
    near = (re * (re + 2.0) + im * im).log1p() * 0.5
    use_near = (abs(re) < 0.5) & (abs(im) < 0.5)
    return w.where(use_near, near, far), im.atan2(re + 1.0)


def sqrt(w: Writer, z: Pair) -> Pair:
    re, im = z
    # Scaled by 2^-4 or 2^60, |z| + |re| neither overflows nor loses bits.
    large = abs(re).maximum(abs(im)) >= 1.0
    scale = w.where(large, re.like(2.0**-4), 2.0**60)
    x, y = abs(re) * scale, abs(im) * scale
    root = ((modulus(w, (x, y)) + x) * 0.5).sqrt() * w.where(large, re.like(4.0), 2.0**-30)
    other = abs(im) / _or_one(w, root * 2.0)
    right = re >= 0.0
    u, v = w.where(right, root, other), w.where(right, other, root)
    wide = im.is_infinite()
    u = w.where(wide, u.like(_INF), u)
    v = w.where(wide, v.like(_INF), v)
    left = re.eq(-_INF) & im.is_finite()
    far = re.eq(_INF) & im.is_finite()
    u = w.where(left, 0.0, u)
    v = w.where(far, 0.0, v)
    return u, v.with_sign_of(im)


def rsqrt(w: Writer, z: Pair) -> Pair:
    """conj(sqrt z) / |z|."""
    u, v = sqrt(w, z)
    length = modulus(w, z)
    nothing, endless = length.eq(0.0), length.eq(_INF)
    re = w.where(nothing, length.like(_INF), w.where(endless, 0.0, u / length))
    im = w.where(nothing, length.like(float("nan")), w.where(endless, 0.0, -(v / length)))
    return re, im


def cbrt(w: Writer, z: Pair) -> Pair:
    length, angle = modulus(w, z).unary("cbrt"), z[1].atan2(z[0]) / 3.0
    return length * angle.cos(), length * angle.sin()


def sine(w: Writer, z: Pair) -> Pair:
    return z[0].sin() * z[1].cosh(), z[0].cos() * z[1].sinh()


def cosine(w: Writer, z: Pair) -> Pair:
    return z[0].cos() * z[1].cosh(), -(z[0].sin() * z[1].sinh())


def tanh(w: Writer, z: Pair) -> Pair:
    """Kahan's (Branch cuts for complex elementary functions, 1987): no overflow on the way."""
    re, im = z
    t, s = im.tan(), re.maximum(-11.0).minimum(11.0).sinh()
    beta = t * t + 1.0
    rho = (s * s + 1.0).sqrt()
    below = beta * s * s + 1.0
    near = beta * rho * s / below, t / below
    far_im = im.sin() * im.cos() * 4.0 * (abs(re) * -2.0).exp()
    far_im = w.where(im.is_finite(), far_im, re.like(0.0).with_sign_of(im))
    far = abs(re) > 11.0
    one = re.like(1.0).with_sign_of(re)
    unknown = ~im.is_finite() & re.is_finite()
    out_re = w.where(far, one, near[0])
    out_im = w.where(far, far_im, near[1])
    out_im = w.where(im.eq(0.0), im, out_im)
    return w.where(unknown, im - im, out_re), w.where(unknown, im - im, out_im)


def tan(w: Writer, z: Pair) -> Pair:
    u, v = tanh(w, (-z[1], z[0]))
    return v, -u


def logistic(w: Writer, z: Pair) -> Pair:
    re, im = exponential(w, negate(w, z))
    one = re.like(1.0)
    return divide(w, (one, re.like(0.0)), (re + 1.0, im))


def power(w: Writer, x: Pair, y: Pair) -> Pair:
    """|x|^c e^(-d t) at the angle c t + d log|x|, with t the angle of x."""
    c, d = y
    length, angle = modulus(w, x), x[1].atan2(x[0])
    coefficient = length.pow(c) * (-(d * angle)).exp()
    turned = c * angle + w.where(d.eq(0.0), d, d * _or_one(w, length).log())
    re, im = coefficient * turned.cos(), coefficient * turned.sin()
    base_zero = length.eq(0.0) & (c > 0.0)
    re, im = w.where(base_zero, 0.0, re), w.where(base_zero, 0.0, im)
    to_zero = c.eq(0.0) & d.eq(0.0)
    return w.where(to_zero, re.like(1.0), re), w.where(to_zero, 0.0, im)


def atan2(w: Writer, y: Pair, x: Pair) -> Pair:
    """-i log((x + i y) / sqrt(x^2 + y^2))."""
    top = x[0] - y[1], x[1] + y[0]
    below = sqrt(w, add(w, multiply(w, x, x), multiply(w, y, y)))
    re, im = log(w, divide(w, top, below))
    return im, -re


def _is_larger(x: Pair, y: Pair) -> Term:
    """In the order of real parts, and of imaginary parts where those are equal (StableHLO)."""
    return (x[0] > y[0]) | (x[0].eq(y[0]) & (x[1] > y[1]))


def maximum(w: Writer, x: Pair, y: Pair) -> Pair:
    first = _is_larger(x, y) | x[0].is_nan() | x[1].is_nan()
    return w.where(first, x[0], y[0]), w.where(first, x[1], y[1])


def minimum(w: Writer, x: Pair, y: Pair) -> Pair:
    first = _is_larger(y, x) | x[0].is_nan() | x[1].is_nan()
    return w.where(first, x[0], y[0]), w.where(first, x[1], y[1])


def clamp(w: Writer, low: Pair, x: Pair, high: Pair) -> Pair:
    return minimum(w, maximum(w, x, low), high)


#: Complex to complex.
FORMULAS: dict[str, Formula] = {
    "add": add,
    "atan2": atan2,
    "cbrt": cbrt,
    "clamp": clamp,
    "cosine": cosine,
    "divide": divide,
    "exponential": exponential,
    "exponential_minus_one": exponential_minus_one,
    "log": log,
    "log_plus_one": log_plus_one,
    "logistic": logistic,
    "maximum": maximum,
    "minimum": minimum,
    "multiply": multiply,
    "negate": negate,
    "power": power,
    "rsqrt": rsqrt,
    "sign": sign,
    "sine": sine,
    "sqrt": sqrt,
    "subtract": subtract,
    "tan": tan,
    "tanh": tanh,
}
