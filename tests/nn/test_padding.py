"""What lies behind the end of a sequence counts for nothing, in results and derivatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

nn = ipu.nn
RNG = np.random.default_rng(0)
LENGTHS = np.array([5, 3, 0], np.int32)
X = RNG.normal(size=(5, 3, 4)).astype(np.float32)
ATTENTION = RNG.random((3, 5)).astype(np.float32)
INSIDE = np.arange(5)[:, None] < LENGTHS


def weights(units: int, kind: Any) -> Any:
    shapes = ((units, 4, 2), (units, 2, 2), (units, 2))
    return kind(*(RNG.normal(size=shape).astype(np.float32) for shape in shapes))


LAYERS: dict[str, tuple[Callable[..., Any], Any]] = {
    "lstm": (
        lambda x, attention, w: nn.lstm(x, w, lengths=LENGTHS),
        weights(4, nn.LSTMWeights),
    ),
    "dynamic_gru": (
        lambda x, attention, w: nn.dynamic_gru(x, LENGTHS, w),
        weights(3, nn.GRUWeights),
    ),
    "augru": (
        lambda x, attention, w: nn.augru(x, attention, w, lengths=LENGTHS),
        weights(3, nn.GRUWeights),
    ),
}


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("platform", ["ipu", "cpu"])
def test_padding_of_nan(platform: str, name: str, order: int):
    layer, w = LAYERS[name]

    def total(*operands: Any) -> Any:
        return sum(jnp.sum(jnp.sin(y)) for y in jax.tree.leaves(layer(*operands)))

    def squares(*operands: Any) -> Any:
        slopes = jax.tree.leaves(jax.grad(total, (0, 1, 2))(*operands))
        return sum(jnp.sum(slope**2) for slope in slopes)

    function = [layer, jax.grad(total, (0, 1, 2)), jax.grad(squares, (0, 1, 2))][order]
    spoilt = np.where(INSIDE[..., None], X, np.nan), np.where(INSIDE.T, ATTENTION, np.inf)
    clean = np.where(INSIDE[..., None], X, 0), np.where(INSIDE.T, ATTENTION, 0)
    with jax.default_device(jax.devices(platform)[0]):
        run = jax.jit(function)
        found, expected = run(*spoilt, w), run(*clean, w)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert np.isfinite(b).all()
        np.testing.assert_allclose(a, b, atol=2e-6)


@pytest.mark.parametrize("platform", ["ipu", "cpu"])
def test_layers_without_inputs(platform: str):
    with jax.default_device(jax.devices(platform)[0]):
        for units, kind, layer in ((4, nn.LSTMWeights, nn.lstm), (3, nn.GRUWeights, nn.gru)):
            w = weights(units, kind)
            empty = w._replace(input_weights=w.input_weights[:, :0])
            zero = w._replace(input_weights=np.zeros_like(w.input_weights))
            run = jax.jit(jax.value_and_grad(lambda w, x, f=layer: f(x, w)[0].sum()))
            (found, slopes), (expected, others) = run(empty, X[..., :0]), run(zero, X)
            np.testing.assert_allclose(found, expected, rtol=2e-6)
            assert slopes.input_weights.shape == (units, 0, 2)
            np.testing.assert_allclose(slopes.output_weights, others.output_weights, atol=2e-6)
