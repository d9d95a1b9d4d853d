"""What is only copied into a piece of a larger array is made there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.compiler.test_compile import inspected

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def copies(function: Callable[..., Any], *operands: np.ndarray) -> int:
    return sum(step["kernel"] == "engine.copy" for step in inspected(function, *operands)["steps"])


X, Y = normal(24, 40), normal(24, 40)

#: name -> function, operands, copies that are left
PROGRAMS: dict[str, tuple[Callable[..., Any], list[np.ndarray], int]] = {
    "rows": (lambda x, y: jnp.concatenate([jnp.sin(x), x @ y.T @ y]), [X, Y], 0),
    "columns": (lambda x, y: jnp.concatenate([jnp.sin(x), x + y], 1), [X, Y], 0),
    "columns of a product": (lambda x, y: jnp.concatenate([x @ y.T, x + 1], 1), [X, Y], 1),
    "between each other": (lambda x, y: jnp.stack([x + y, x - y], -1), [X, Y], 0),
    "halves": (
        lambda x, y: jnp.concatenate([x[:, :20] * y[0, 0] - x[:, 20:], x[:, 20:] + x[:, :20]], 1),
        [X, Y],
        0,
    ),
    "an update": (lambda x, y: (jnp.sin(x) * 2).at[3:7].set(jnp.exp(y[:4])), [X, Y], 0),
    "read again": (lambda x, y: (jnp.concatenate([z := jnp.sin(x), y * 2]), z.sum(0)), [X, Y], 1),
    "one in the other": (
        lambda x, y: jnp.concatenate([jnp.concatenate([jnp.sin(x), y + 1]), jnp.cos(y)]),
        [X, Y],
        1,
    ),
    "in a loop": (
        lambda x, y: jax.lax.fori_loop(
            0, 5, lambda _, c: jnp.concatenate([jnp.sin(c[12:]), c[:12] + y[:12]]), x
        ),
        [X, Y],
        0,
    ),
    "complex numbers": (lambda x, y: (x + 1j * y) * (y - 2j * x), [X, Y], 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_pieces_are_made_in_place(name: str) -> None:
    function, operands, left = PROGRAMS[name]
    assert copies(function, *operands) == left
    # The oracle: JAX's CPU backend has neither the pass nor the engine that are tested.
    with jax.default_device(jax.devices("cpu")[0]):
        want = function(*operands)
    got = jax.jit(function)(*operands)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
