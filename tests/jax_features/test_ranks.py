"""Arrays of up to 64 dimensions, NumPy's limit; more are refused with the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

PROGRAMS: dict[str, Callable[[jax.Array], Any]] = {
    "elementwise": lambda x: jnp.where(x > 3, x * 2, 1),
    "transpose": lambda x: x.T,
    "reduce": lambda x: x.sum((0, -1)),
    "reverse": jnp.flip,
    "concatenate": lambda x: jnp.concatenate([x, x], -1),
    "pad": lambda x: lax.pad(x, 0.0, [(1, 0, 0)] * 3 + [(0, 0, 0)] * (x.ndim - 3)),
    "roll": lambda x: jnp.roll(x, 1, (0, -1)),
    "dynamic_slice": lambda x: lax.dynamic_slice(x, [0] * x.ndim, [1] * x.ndim),
    "broadcast": lambda x: jnp.broadcast_to(x[:1], x.shape),
    "sort": lambda x: jnp.sort(-x, 0),
    "cumsum": lambda x: jnp.cumsum(x, -1),
    "gather": lambda x: x[jnp.array([1, 0, 1])],
    "scatter": lambda x: x.at[jnp.array([1])].add(1.0),
    "reduce_window": lambda x: lax.reduce_window(
        x, -jnp.inf, lax.max, (2,) + (1,) * (x.ndim - 1), (1,) * x.ndim, "SAME"
    ),
    "dot": lambda x: jnp.matmul(x, jnp.swapaxes(x, -1, -2)),
    "loop": lambda x: lax.fori_loop(0, 3, lambda _, c: c + x, x),
    "gradient": jax.grad(lambda x: (jnp.sin(x) ** 2).sum()),
}


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("rank", [33, 64])
def test_arrays_of_many_dimensions(rank: int, program: str):
    shape = [1] * rank
    shape[0], shape[rank // 2], shape[-1] = 2, 3, 2
    x = np.arange(12, dtype=np.float32).reshape(shape)
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = np.asarray(jax.jit(PROGRAMS[program])(x))
    found = np.asarray(jax.jit(PROGRAMS[program])(x))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_more_dimensions_are_refused_with_the_line():
    text = r"needs arrays of at most 64 dimensions; got 65 in stablehlo.reshape \(at test_ranks.py:"
    with pytest.raises(jax.errors.JaxRuntimeError, match=text):
        jax.jit(lambda x: x.reshape((1,) * 64 + (2,)) + 1)(jnp.ones(2))
