"""Layers of halves run step by step, in turns of several; layers of floats by a kernel."""

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


def operands(units: int, biases: int = 1) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    shapes = [(STEPS, 3, 4), (units, 4, 6), (units, 6, 6), (units, *[2] * (biases - 1), 6)]
    return tuple(np.float32(rng.standard_normal(shape) / 2) for shape in shapes)


def lstm(x: Any, *weights: Any, **options: Any) -> Any:
    return ipu.nn.lstm(x, LSTMWeights(*weights), **options)


def gru(x: Any, *weights: Any, **options: Any) -> Any:
    return ipu.nn.gru(x, GRUWeights(*weights), **options)


def dynamic_gru(x: Any, *weights: Any, **options: Any) -> Any:
    return ipu.nn.dynamic_gru(x, np.array([0, STEPS, 2]), GRUWeights(*weights), **options)


def augru(x: Any, *weights: Any, **options: Any) -> Any:
    attention = jnp.linspace(0, 1, 3 * STEPS, dtype=x.dtype).reshape(3, STEPS)
    return ipu.nn.augru(x, attention, GRUWeights(*weights), **options)


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize(
    ("layer", "values", "options"),
    [
        (lstm, operands(4), {}),
        (lstm, operands(4), {"lengths": np.array([0, STEPS, 2])}),
        (gru, operands(3), {}),
        (gru, operands(3, 2), {"reset_after": True}),
        (dynamic_gru, operands(3, 2), {"reset_after": True}),
        (augru, operands(3), {"cell_order": ("update", "reset", "candidate")}),
    ],
    ids=["lstm", "lstm-lengths", "gru", "gru-after", "dynamic_gru", "augru"],
)
def test_steps_in_halves_are_near_those_of_the_kernel(
    layer: Any, values: Any, options: Any, ahead: bool
) -> None:
    def both(*values: Any) -> Any:
        def loss(*values: Any) -> Any:
            made = jax.tree.leaves(layer(*values, precompute_inputs=ahead, **options))
            return sum((y.astype(jnp.float32) ** 2).sum() for y in made)

        made = layer(*values, precompute_inputs=ahead, **options)
        return made, jax.grad(loss, (0, 1, 2, 3))(*values)

    halves = [each.astype(np.float16) for each in values]
    found = jax.jit(both)(*halves)
    wanted = jax.jit(both)(*(each.astype(np.float32) for each in halves))
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == np.float16
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-2 * np.abs(b).max())


def test_halves_have_no_kernel() -> None:
    kernels = {
        dtype: {step.kernel for step in ipu.report(lstm, *shapes).steps}
        for dtype in (np.float16, np.float32)
        for shapes in [[jax.ShapeDtypeStruct(x.shape, dtype) for x in operands(4)]]
    }
    assert "popnn.lstm_forward" in kernels[np.float32]
    assert "popnn.lstm_forward" not in kernels[np.float16]
