"""complex64 on the IPU: every kind of op against JAX on the CPU, and its special values."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.compiler.rules.test_cases import on


def _random(shape: tuple[int, ...], seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    z = rng.standard_normal(shape) + 1j * rng.standard_normal(shape)
    return z.astype(np.complex64)


Z, Y = _random((3, 4), 0), _random((3, 4), 1)
ROWS = np.array([1, 2, 1])

UNARY = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "conj",
    "cos",
    "cosh",
    "exp",
    "exp2",
    "expm1",
    "imag",
    "log",
    "log1p",
    "logistic",
    "neg",
    "real",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "tan",
    "tanh",
]

PROGRAMS = {
    "nothing": lambda z, y: z,
    "constant": lambda z, y: z * np.arange(12).reshape(3, 4).astype(np.complex64) + 1j,
    "large constant": lambda z, y: z.sum() * np.arange(300).astype(np.complex64),
    "product": lambda z, y: z @ y.T,
    "einsum": lambda z, y: jnp.einsum("ij,kj->jik", z, y),
    "with real": lambda z, y: z @ y.real.T,
    "convolution": lambda z, y: jnp.convolve(z[0], y[1]),
    "sums": lambda z, y: (z.sum(0), z.mean(1), z.prod(), jnp.cumsum(z, 0), jnp.cumprod(z, 1)),
    "sum of windows": lambda z, y: lax.reduce_window(z, 0j, lax.add, (2, 2), (1, 1), "SAME"),
    "sort": lambda z, y: (jnp.sort(z, 0), jnp.argsort(z, 1)),
    "sort by key": lambda z, y: lax.sort((z.real, z, y), num_keys=1),
    "scan": lambda z, y: lax.scan(lambda c, x: (c * x + 1j, c), z[0], y),
    "while": lambda z, y: lax.while_loop(lambda c: jnp.abs(c).sum() < 99, lambda c: c * 2j, z),
    "cond": lambda z, y: lax.cond(z.real.sum() > 0, lambda z: z * 1j, lambda z: -z, z),
    "switch": lambda z, y: lax.switch(1, [jnp.sin, jnp.conj, jnp.exp], z),
    "gather": lambda z, y: (z[ROWS], z[jnp.array([5, -1])], z[:, 1::2]),
    "scatter": lambda z, y: (z.at[ROWS].add(y), z.at[1].set(y[2]), z.at[ROWS].mul(1j)),
    "slices": lambda z, y: lax.dynamic_update_slice(
        z, lax.dynamic_slice(y, (1, 1), (2, 2)), (0, 1)
    ),
    "moves": lambda z, y: (z.T, z[::-1], jnp.pad(z, 1, constant_values=2j), jnp.stack([z, y])),
    "choice": lambda z, y: jnp.where(z.real > 0, z, y),
    "compare": lambda z, y: (z == y, z != z, z > y, jnp.maximum(z, y)),
    "clamp": lambda z, y: (lax.clamp(z - 1, y, z + 1), jnp.minimum(z, y)),
    "convert": lambda z, y: (z.real.astype(np.complex64), z.astype(bool), jnp.complex64(3) + z),
    "bits": lambda z, y: (z.view(np.float32), z.real.view(np.complex64)),
    "gradient": lambda z, y: jax.grad(lambda z: jnp.abs(jnp.sin(z) * y).sum())(z),
    "map": lambda z, y: jax.vmap(jnp.vdot)(z, y),
    "empty": lambda z, y: jnp.exp(z[:0]) @ y.T,
    "callback": lambda z, y: jax.pure_callback(lambda a: np.asarray(a) * np.complex64(1j), z, z),
}


def _close(actual: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def _both(f, *args):
    f = jax.jit(f)
    return on(jax.devices("ipu")[0], f, args), on(jax.devices("cpu")[0], f, args)


@pytest.mark.parametrize("name", UNARY)
def test_function(name: str) -> None:
    _close(*_both(getattr(lax, name), Z))


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "atan2"])
def test_function_of_two(name: str) -> None:
    _close(*_both(getattr(lax, name), Z, Y))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    _close(*_both(PROGRAMS[name], Z, Y))


def _grid(values: list[float]) -> np.ndarray:
    """Every pair of the values as real and imaginary part."""
    line = np.array(values, np.float32)
    z = np.empty((line.size, line.size), np.complex64)
    z.real, z.imag = line[:, None], line[None, :]
    return z.reshape(-1)


SPECIAL = _grid([0.0, -0.0, 1, -1, 0.5, 100, -100, np.inf, -np.inf, np.nan])


#: Where the CPU backend has NaN for 0 times infinity, or no limit: test_complex_extremes.py.
OWN_LIMITS = ("cos", "cosh", "rsqrt", "sin", "sinh", "tan")


@pytest.mark.parametrize("name", [n for n in UNARY if n not in OWN_LIMITS])
def test_special_values(name: str) -> None:
    """Infinities, NaN and zeros are where the CPU backend has them."""
    (ours,), (theirs,) = _both(getattr(lax, name), SPECIAL)
    for part in (np.real, np.imag):
        a, b = part(ours), part(theirs)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-30)


def test_quotients_neither_overflow_nor_vanish() -> None:
    x = np.array([1e38 + 1e38j, 1e-30 + 1e-30j, 3e38, 1, 1j], np.complex64)
    y = np.array([1e38 - 1e38j, 1e-30 + 2e-30j, 3e38 + 3e38j, 0, 0], np.complex64)
    ours = np.asarray(jax.jit(lax.div)(x, y))
    exact = x[:3].astype(np.complex128) / y[:3].astype(np.complex128)
    np.testing.assert_allclose(ours[:3], exact, rtol=1e-6)
    assert np.isinf([ours[3].real, ours[4].imag]).all()


def test_a_factor_of_1_makes_no_nan_of_an_infinity() -> None:
    z = np.array([complex(np.inf, 2), complex(3, -np.inf)], np.complex64)
    for product in (lambda z: z * 1, lambda z: np.complex64(1) * z):
        np.testing.assert_array_equal(jax.jit(product)(z), z)


def test_modulus_neither_overflows_nor_vanishes() -> None:
    z = np.array([3e38 + 1e38j, 3e-30 + 4e-30j, 0, np.inf + 1j], np.complex64)
    exact = np.abs(z.astype(np.complex128))
    np.testing.assert_allclose(jax.jit(jnp.abs)(z), exact, rtol=1e-6)


def test_finite_results_raise_no_exception_on_the_way() -> None:
    options = {"ipu_floating_point_exceptions": "inv,div0,oflo"}
    zeros, large = np.zeros(3, np.complex64), np.full(3, 100 + 1j, np.complex64)
    for f, z in (
        (jnp.abs, zeros),
        (lax.sign, zeros),
        (lambda z: z / (z + 2j), zeros),
        (lambda z: z / (z + 2), zeros),
        (lambda z: z ** np.complex64(2), zeros),
        (jnp.tanh, large),
    ):
        assert np.isfinite(jax.jit(f, compiler_options=options)(z)).all()
    with pytest.raises(jax.errors.JaxRuntimeError, match="div0"):
        jax.jit(lambda z: (z + 1) / z, compiler_options=options)(zeros).block_until_ready()


def test_donated_and_carried_buffers_keep_their_dtype() -> None:
    f = jax.jit(lambda z: z * 2, donate_argnums=0)
    z = jnp.asarray(Z)
    doubled = f(z)
    assert (z.is_deleted(), doubled.dtype) == (True, np.complex64)
    np.testing.assert_array_equal(doubled, Z * 2)
    assert f.lower(doubled).compile().cost_analysis()["cycles"] > 0


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_product_whose_result_is_real_is_its_real_part(dtype):
    def product(x, y):
        dims = (((1,), (0,)), ((), ()))
        return lax.dot_general(x, y, dims, preferred_element_type=dtype)

    z = np.round(4 * Z)
    np.testing.assert_array_equal(jax.jit(product)(z, z.T), (z @ z.T).real.astype(dtype))
