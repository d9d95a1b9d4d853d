"""Functions of tests.stages.kept are JAX's, and keep no more than they say."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.stages import kept

Function = Callable[[jax.Array], jax.Array]
SHAPE = (3, 4, 5, 6)


def _whitened(x: jax.Array) -> jax.Array:
    return jax.nn.standardize(x, (0, 1, 2))


#: Ours, JAX's, and the arrays of the operand's size that ours keeps.
ROWS: tuple[tuple[Function, Function, int], ...] = (
    (kept.softmax, jax.nn.softmax, 1),
    (kept.swish, jax.nn.silu, 1),
    (kept.standardized, jax.nn.standardize, 1),
    (kept.whitened, _whitened, 1),
    (kept.dropped_at_rate_0, lambda x: x, 0),
)


@pytest.mark.parametrize(("own", "theirs", "num_kept"), ROWS)
def test_values_and_gradients_are_those_of_jax(own: Function, theirs: Function, num_kept: int):
    with jax.default_device(jax.devices("cpu")[0]):
        x, weights = jax.random.normal(jax.random.key(0), (2, *SHAPE))
        np.testing.assert_allclose(own(x), theirs(x), rtol=1e-4, atol=1e-5)
        ours, others = (jax.grad(lambda x, f=f: jnp.vdot(weights, f(x))) for f in (own, theirs))
        np.testing.assert_allclose(ours(x), others(x), rtol=1e-3, atol=2e-4)
        leaves = jax.tree.leaves(jax.vjp(own, x)[1])
        assert sum(leaf.shape == x.shape for leaf in leaves) == num_kept
