"""Every function of complex64 at huge, tiny, infinite and NaN parts, beside complex128.

Finite results lie within some units in the last place of their larger part. On the axes, where
branches are cut, and for infinity and NaN, what JAX's CPU backend gives is right too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

TINY, LARGEST = 2.0**-149, float(np.finfo(np.float32).max)
PARTS = [0.0, TINY, 1e-38, 3e-38, 1e-20, 1e-10, 0.5, 1.0, 1.5, np.pi / 2, 3.0, 50.0, 88.0, 89.0]
PARTS += [100.0, 1e4, 1e10, 2e19, 1e20, 3e38, np.inf]


def grid() -> np.ndarray:
    """Each part beside each other one, with both signs."""
    line = np.array([part * sign for part in PARTS for sign in (1, -1)] + [np.nan], np.float32)
    z = np.empty((len(line), len(line)), np.complex64)
    z.real, z.imag = line[:, None], line
    return z.ravel()


Z = grid()


def sign(z: np.ndarray) -> np.ndarray:
    return np.where(z == 0, 0, z / np.where(z == 0, 1, np.abs(z)))


def log1p(z: np.ndarray) -> np.ndarray:
    x, y = z.real.astype(np.longdouble), z.imag.astype(np.longdouble)
    near = (np.abs(x) < 2) & (np.abs(y) < 2)
    # (1 + x)^2 + y^2 - 1, of which the sum would lose the digits near -1.
    real = np.where(near & (abs(1 + x) > 1e-3), np.log1p(2 * x + x * x + y * y) / 2, 0)
    real = np.where(real == 0, np.log(np.hypot(1 + x, y)), real)
    real = np.where((abs(x) < 1e-9) & (abs(y) < 1e-9), x + (y * y - x * x) / 2, real)
    return (real + 1j * np.arctan2(y, 1 + x)).astype(np.complex128)


def logistic(z: np.ndarray) -> np.ndarray:
    w = np.where(z.real < 0, z, -z)
    size = np.exp(w.real)
    below = 2 * size * np.cos(w.imag / 2) ** 2 - np.expm1(w.real) + 1j * size * np.sin(w.imag)
    return np.where(z.real < 0, np.exp(w), 1) / below


def power(n: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def wanted(z: np.ndarray) -> np.ndarray:
        product = z.astype(np.clongdouble) ** 0
        for _ in range(abs(n)):
            product = product * z
        return (1 / product if n < 0 else product).astype(np.complex128)

    return lambda z: z**n, wanted


FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "abs": (lax.abs, np.abs),
    "acos": (lax.acos, np.arccos),
    "acosh": (lax.acosh, np.arccosh),
    "angle": (jnp.angle, np.angle),
    "asin": (lax.asin, np.arcsin),
    "asinh": (lax.asinh, np.arcsinh),
    "atan": (lax.atan, np.arctan),
    "atanh": (lax.atanh, np.arctanh),
    "conj": (lax.conj, np.conj),
    "cos": (lax.cos, np.cos),
    "cosh": (lax.cosh, np.cosh),
    "exp": (lax.exp, np.exp),
    "expm1": (lax.expm1, np.expm1),
    "log": (lax.log, np.log),
    "log1p": (lax.log1p, log1p),
    "logistic": (lax.logistic, logistic),
    "neg": (lax.neg, np.negative),
    "reciprocal": (lambda z: 1 / z, lambda z: 1 / z),
    "rsqrt": (lax.rsqrt, lambda z: 1 / np.sqrt(z)),
    "sign": (lax.sign, sign),
    "sin": (lax.sin, np.sin),
    "sinh": (lax.sinh, np.sinh),
    "sqrt": (lax.sqrt, np.sqrt),
    "square": (lax.square, lambda z: z * z),
    "tan": (lax.tan, np.tan),
    "tanh": (lax.tanh, np.tanh),
    **{f"power {n}": power(n) for n in (2, 3, 7, -1, -2, -3, -7)},
}
#: Where the result's smaller part is lost: the product of a part and TINY.
LOST = {
    "acos": (Z.real == 1) & (abs(Z.imag) == np.float32(TINY)),
    "acosh": (Z.real == 1) & (abs(Z.imag) == np.float32(TINY)),
}


def parts(values: Any) -> np.ndarray:
    z = np.asarray(values).astype(np.complex128)
    return np.stack([z.real, z.imag], -1)


def is_near(found: Any, wanted: Any, ulps: Any) -> np.ndarray:
    """Whether each is within `ulps` of the larger part; others may be infinite."""
    f, w = parts(found), parts(wanted)
    with np.errstate(all="ignore"):
        largest = np.max(np.where(np.isfinite(w), abs(w), 0), -1)
        unit = np.exp2(np.floor(np.log2(np.maximum(largest, 2.0**-126))) - 23)
        tolerance = (np.maximum(unit, TINY) * ulps)[:, None]
        close = abs(f - w) <= tolerance
    over = (abs(w) > LARGEST * 0.999) & (abs(f) > LARGEST * 0.999) & (np.sign(f) == np.sign(w))
    # Beside a part that overflows, a far smaller one has no digits.
    lost = (abs(w) <= tolerance) & (largest > LARGEST)[:, None]
    return (close | over | lost | (f == w) | (np.isnan(f) & np.isnan(w))).all(-1)


def on(platform: str, f: Callable[..., Any], *arguments: np.ndarray) -> np.ndarray:
    device = jax.devices(platform)[0]
    return np.asarray(jax.jit(f)(*(jax.device_put(a, device) for a in arguments)))


def check(found: np.ndarray, good: np.ndarray, wanted: np.ndarray, *z: Any) -> None:
    rows = [f"{[a[i] for a in z]}: {found[i]}, not {wanted[i]}" for i in np.flatnonzero(~good)]
    assert not rows, f"{len(rows)} of {len(good)}:\n" + "\n".join(rows[:20])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_number(name: str) -> None:
    f, oracle = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        wanted = oracle(Z.astype(np.complex128))
        without_minus_zero = oracle(Z.astype(np.complex128) + 0)
    found, cpu = on("ipu", f, Z), on("cpu", f, Z)
    good = is_near(found, wanted, 8)
    on_axis = (Z.real == 0) | (Z.imag == 0)
    good |= on_axis & (is_near(found, cpu, 8) | is_near(found, without_minus_zero, 8))
    if name == "square" or name.startswith("power"):  # infinities are infinite in any direction
        good |= ~np.isfinite(Z) & (~np.isfinite(found) | (found == 0))
    good |= ~np.isfinite(Z) & (is_near(found, cpu, 8) | (np.isnan(Z) & np.isnan(found)))
    check(found, good | LOST.get(name, False), wanted, Z)


@pytest.mark.parametrize("name", ["divide", "add"])
def test_functions_of_two_numbers(name: str) -> None:
    """Quotients by zero, and of infinities, are in test_complex_numbers.py."""
    f, oracle = {"divide": (lax.div, np.divide), "add": (lax.add, np.add)}[name]
    x, y = np.random.default_rng(0).choice(Z[np.isfinite(Z) & (Z != 0)], (2, 20000))
    with np.errstate(all="ignore"):
        wanted = oracle(x.astype(np.clongdouble), y.astype(np.clongdouble)).astype(np.complex128)
    found = on("ipu", f, x, y)
    check(found, is_near(found, wanted, 8), wanted, x, y)


def test_powers_of_two_numbers() -> None:
    """To the digits that the angle, a sum of products of float32 numbers, has."""
    x, y = np.random.default_rng(1).choice(Z[np.isfinite(Z) & (Z != 0)], (2, 20000))
    wide, exponent = x.astype(np.complex128), y.astype(np.complex128)
    turns = abs(exponent) * (abs(np.log(wide)) + 1)
    known = (turns < 1e4) & (abs((exponent * np.log(wide)).real) < 600)
    with np.errstate(all="ignore"):
        wanted = np.exp(exponent * np.log(wide))[known]
    found = on("ipu", lax.pow, x, y)[known]
    assert known.sum() > 9000
    good = is_near(found, wanted, 8 + 4 * turns[known])
    assert good.all(), [(x[known][i], y[known][i], found[i]) for i in np.flatnonzero(~good)[:9]]


@pytest.mark.parametrize("exponent", [0, 1, -1j, 2.5j, 1 + 1j, 0.5 - 2j])
def test_powers_of_zero(exponent: complex) -> None:
    """NumPy's: undefined where only the exponent's imaginary part is not zero."""
    zero, y = np.zeros((), np.complex64), np.complex64(exponent)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(on("ipu", lax.pow, zero, y), np.power(zero, y))


def test_results_in_range_of_parts_whose_squares_are_not() -> None:
    large = np.complex64(3e38 + 3e38j)
    np.testing.assert_allclose(on("ipu", lax.rsqrt, large), 4.4853554e-20 - 1.8578953e-20j, 1e-6)
    np.testing.assert_allclose(
        on("ipu", lambda z: z**-2, np.complex64(1e20 + 1e20j)), -5e-41j, atol=2e-45
    )


@pytest.mark.parametrize("function", [jnp.mean, jnp.var, jnp.std, jnp.linalg.norm, jnp.sum])
def test_reductions(function: Callable[..., Any]) -> None:
    """As on the CPU backend: squares of parts must be in range."""
    random = np.random.default_rng(2)
    z = (random.standard_normal(100) + 1j * random.standard_normal(100)).astype(np.complex64)
    for scale in (1, 1e-15, 1e15):
        name = getattr(function, "__name__", "")
        scaled = z * np.float32(scale)
        wanted = getattr(np.linalg if name == "norm" else np, name)(scaled.astype(np.complex128))
        np.testing.assert_allclose(on("ipu", function, scaled), wanted, rtol=1e-5)


def test_products_of_matrices() -> None:
    random = np.random.default_rng(3)
    a, b = (random.standard_normal((2, 9, 9)) + 1j * random.standard_normal((2, 9, 9))) * 1e18
    found = on("ipu", jnp.matmul, a.astype(np.complex64), b.astype(np.complex64))
    np.testing.assert_allclose(found, a @ b, rtol=1e-4)
