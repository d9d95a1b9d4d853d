"""Layers whose steps are those of the IPU, with exceptions on, against the kernel of the model."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.nn import GRUWeights, LSTMWeights

#: Two turns of the loop, and steps that remain.
STEPS = 37
UNFUSED = {"ipu_floating_point_exceptions": "inv"}


def operands(units: int, biases: int = 1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = [(STEPS, 3, 4), (units, 4, 6), (units, 6, 6), (units, *[2] * (biases - 1), 6)]
    return tuple(np.float32(rng.standard_normal(shape) / 2) for shape in shapes)


def lstm(x: Any, *weights: Any, **options: Any) -> Any:
    return ipu.nn.lstm(x, LSTMWeights(*weights), **options)


def gru(x: Any, *weights: Any, **options: Any) -> Any:
    return ipu.nn.gru(x, GRUWeights(*weights), **options)


def dynamic_gru(x: Any, *weights: Any, **options: Any) -> Any:
    return ipu.nn.dynamic_gru(x, np.array([0, STEPS, 9]), GRUWeights(*weights), **options)


def augru(x: Any, *weights: Any, **options: Any) -> Any:
    attention = jnp.linspace(0, 1, 3 * STEPS, dtype=jnp.float32).reshape(3, STEPS)
    return ipu.nn.augru(x, attention, GRUWeights(*weights), **options)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize(
    ("layer", "values", "options"),
    [
        (lstm, operands(4), {}),
        (lstm, operands(4), {"lengths": np.array([0, STEPS, 9])}),
        (gru, operands(3), {}),
        (gru, operands(3, 2), {"reset_after": True}),
        (dynamic_gru, operands(3, 2), {"reset_after": True}),
        (augru, operands(3), {"cell_order": ("update", "reset", "candidate")}),
    ],
    ids=["lstm", "lstm-lengths", "gru", "gru-after", "dynamic_gru", "augru"],
)
def test_steps_are_those_of_the_kernel(layer: Any, values: Any, options: Any, ahead: bool) -> None:
    def both(*values: Any) -> Any:
        def loss(*values: Any) -> Any:
            made = jax.tree.leaves(layer(*values, precompute_inputs=ahead, **options))
            return sum((y**2).sum() for y in made)

        return layer(*values, precompute_inputs=ahead, **options), jax.grad(loss, (0, 1, 2, 3))(
            *values
        )

    lowered = jax.jit(both).lower(*values)
    found = lowered.compile(compiler_options=UNFUSED)(*values)
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.jit(both)(*values)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        b = np.asarray(b)
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * np.abs(b).max())
