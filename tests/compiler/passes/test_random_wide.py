"""Random programs on complex64, and on 64-bit types emulated and demoted, against JAX's CPU."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

STEPS = 8
NUM_SEEDS = 8


def _is_whole(x) -> bool:
    return jnp.issubdtype(x.dtype, jnp.integer)


#: Each makes an array of two of the same shape and dtype; scalars stay scalars.
ANY = [
    lambda x, y: x + y,
    lambda x, y: x * y,
    lambda x, y: x - y,
    lambda x, y: x // 3 if _is_whole(x) else jnp.sin(x),
    lambda x, y: abs(x) if _is_whole(x) else jnp.exp(-abs(x)).astype(x.dtype),
    lambda x, y: x.T,
    lambda x, y: x.reshape(-1),
    lambda x, y: jnp.where(x.real > 0.1, x, y),
    lambda x, y: x.real.astype(x.dtype) + jnp.conj(x),
    lambda x, y: lax.fori_loop(0, 3, lambda i, d: d + y, x),
    lambda x, y: lax.cond(x.real.sum() > 0, lambda t: t + 1, lambda t: -t, x),
]
RANKED = [
    lambda x, y: x[::-1],
    lambda x, y: x.sum(0),
    lambda x, y: jnp.cumsum(x, -1),
    lambda x, y: jnp.sort(x, -1),
    lambda x, y: jnp.concatenate([x, y]),
    lambda x, y: x[..., :2],
    lambda x, y: jnp.pad(x, 1),
    lambda x, y: x.at[..., 0].set(x.dtype.type(3)),
    lambda x, y: x[np.array([1, 0, 1]) % x.shape[0]],
    lambda x, y: lax.scan(lambda c, t: (c + t, c - t), x[0], x)[1],
    lambda x, y: x @ x.T if x.ndim == 2 else x,
]


def _program(seed: int):
    def f(*arrays):
        choice, values = random.Random(seed), list(arrays)
        for _ in range(STEPS):
            x = choice.choice(values)
            y = choice.choice([v for v in values if (v.shape, v.dtype) == (x.shape, x.dtype)])
            made = choice.choice(ANY + RANKED if x.ndim else ANY)(x, y)
            if made.size < 5000:
                values.append(made)
        return values[-4:]

    return f


def _arguments(seed: int, dtypes: list[str]) -> list[np.ndarray]:
    choice, rng = random.Random(seed), np.random.default_rng(seed)
    arrays = []
    for _ in range(3):
        shape, dtype = choice.choice([(3, 4), (4, 3), (5,), (2, 2, 3), ()]), choice.choice(dtypes)
        array = rng.integers(-5, 6, shape) + (0 if dtype == "int64" else rng.random(shape))
        if dtype.startswith("complex"):
            array = array + 1j * rng.standard_normal(shape)
        arrays.append(np.asarray(array, dtype))
    return arrays


def _compare(seed: int, dtypes: list[str], options: dict[str, str] | None, rtol: float) -> None:
    f, args = _program(seed), _arguments(seed, dtypes)
    ours = jax.jit(f, compiler_options=options)(*args)
    with jax.default_device(jax.devices("cpu")[0]):
        theirs = jax.jit(f)(*args)
    for a, b in zip(map(np.asarray, ours), map(np.asarray, theirs), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        size = max(1.0, float(np.abs(b).max(initial=0)))
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_complex64(seed):
    _compare(seed, ["complex64"], None, 1e-4)


@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_emulated(seed):
    with jax.enable_x64(True):
        _compare(seed, ["float64", "int64", "complex128"], {"ipu_x64": "emulate"}, 1e-12)


@pytest.mark.parametrize("seed", range(NUM_SEEDS))
def test_demoted(seed):
    with jax.enable_x64(True):
        _compare(seed, ["float64", "complex128"], {"ipu_x64": "demote"}, 1e-4)
