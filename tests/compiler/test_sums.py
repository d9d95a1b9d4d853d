"""Sums add what the program says: squares in float16 as they are rounded, and overflow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

FORMS: dict[str, Callable[[jax.Array], Any]] = {
    "sum": lambda x: jnp.sum((x * x).astype(jnp.float32)),
    "by rows": lambda x: jnp.sum(jnp.square(x).astype(jnp.float32), 1),
    "squares kept": lambda x: (jnp.sum((x * x).astype(jnp.float32)), x * x),
    "of a map": lambda x: jnp.sum(((x + 1) * (x + 1)).astype(jnp.float32)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_squares_in_half_are_rounded(form: Callable[[jax.Array], Any]) -> None:
    """The sum of the unrounded squares differs by 1e-5 to 1e-4."""
    x = np.random.default_rng(0).integers(-40, 40, (6, 20)) * 0.1337
    half = x.astype(np.float16)
    factor = half + np.float16(1) if form is FORMS["of a map"] else half
    wanted = (factor * factor).astype(np.float64).sum(1 if form is FORMS["by rows"] else None)
    found = jax.jit(form)(half)
    np.testing.assert_allclose(jax.tree.leaves(found)[0], wanted, rtol=1e-6)


def test_squares_in_half_overflow() -> None:
    assert jnp.isinf(jax.jit(FORMS["sum"])(jnp.full(3, 300, jnp.float16)))
    assert jax.jit(lambda x: jnp.sum(jnp.square(x.astype(jnp.float32))))(
        jnp.full(3, 300, jnp.float16)
    ) == pytest.approx(270000)
