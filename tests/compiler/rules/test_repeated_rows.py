"""Elementwise operations of arrays and of vectors that all their rows share, as biases are."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

#: Of two arrays, two smaller ones, and the module whose functions are meant.
EXPRESSIONS = [
    lambda x, y, a, b, m: x + b,
    lambda x, y, a, b, m: a * x - b,
    lambda x, y, a, b, m: (x - a) * b + y,
    lambda x, y, a, b, m: m.where(x > a, y, x * b),
    lambda x, y, a, b, m: (m.maximum(x, b), y * a),
    lambda x, y, a, b, m: (x * a + b, x > y),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32"])
@pytest.mark.parametrize("seed", range(18))
def test_equals_numpy(seed: int, dtype: str):
    rng = np.random.default_rng(seed)
    columns = int(rng.choice([1, 2, 3, 7, 16, 32, 50, 64, 80, 96, 100, 128, 200, 256, 300]))
    rows = int(rng.choice([1, 2, 5, 31, 256, 1000]))
    leading = tuple(rng.integers(1, 4, rng.integers(0, 3)).tolist())
    # What all rows share, those of one leading index, and what is one element for each row or all.
    smaller = [(columns,), (columns,), (*leading, 1, columns), (*leading, rows, 1), ()]

    def whole(shape: tuple[int, ...]) -> np.ndarray:
        """Small whole numbers: all results are exact in each dtype."""
        return rng.integers(-8, 8, shape).astype(dtype)

    x, y = whole((*leading, rows, columns)), whole((*leading, rows, columns))
    a, b = (whole(smaller[rng.integers(len(smaller))]) for _ in range(2))
    expression = EXPRESSIONS[seed % len(EXPRESSIONS)]

    def run(*arguments: Any) -> Any:
        return expression(*arguments, jnp)

    # In place and apart.
    found = jax.jit(run, donate_argnums=(0,) if rng.integers(2) else ())(jnp.array(x), y, a, b)
    jax.tree.map(np.testing.assert_array_equal, found, expression(x, y, a, b, np))
