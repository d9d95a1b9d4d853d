"""More memory for temporaries of products: programs get faster or stay as fast, without cliffs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.stages.known_to_fit import Transformer

PROPORTIONS = (0.05, 0.1, 0.2, 0.25, 0.3, 0.45, 0.6, 0.9)
#: Plans are the fastest product by product; what a plan saves may cost a few cycles next to it.
BESIDE = 1.01


def _costs(f: Callable[..., Any], *args: Any) -> dict[float, float]:
    """Cycles of a program by the proportion of memory."""
    lowered = jax.jit(f).lower(*args)

    def cycles(proportion: float) -> float:
        options = {"ipu_available_memory_proportion": proportion}
        return float(lowered.compile(options).cost_analysis()["cycles"])

    return {proportion: cycles(proportion) for proportion in PROPORTIONS}


def _gradients(f: Callable[..., Any]) -> Callable[..., Any]:
    def run(weights: Any, x: jax.Array, of_result: jax.Array) -> Any:
        return jax.vjp(f, weights, x)[1](of_result)

    return run


def _check(costs: dict[float, float], most: float) -> None:
    for less, more in itertools.pairwise(PROPORTIONS):
        assert costs[more] <= BESIDE * costs[less], costs
    assert costs[0.25] <= most * costs[0.9], costs


def test_bert_layers_have_no_cliff() -> None:
    """Gradients of three layers of BERT-large, 8 sequences of 128 tokens in float16."""
    model = Transformer((3,), (0.6,), 1024, 16, 30_522, 128, 1, 8, False)

    def stage(layers: Any, x: jax.Array) -> jax.Array:
        for layer in layers:
            x = model.layer(layer, x)
        return x

    x = jax.ShapeDtypeStruct((8, 128, 1024), jnp.float16)
    _check(_costs(_gradients(stage), model.parameters()["layers"][0], x, x), 1.05)


def test_a_float32_product_has_no_cliff() -> None:
    x = jax.ShapeDtypeStruct((2048, 2048), jnp.float32)
    costs = _costs(jnp.matmul, x, x)
    _check(costs, 1.5)
    multiply_adds = 2048**3 / 1472 / 16  # of one tile, by its float32 rate of 16 a cycle
    assert costs[0.6] < 2 * multiply_adds


@pytest.mark.parametrize("seed", range(12))
def test_random_networks_have_no_cliff(seed: int) -> None:
    """Gradients of dense or convolutional layers of random sizes."""
    rng = np.random.default_rng(seed)
    dtype = rng.choice([np.float16, np.float32])
    widths = [int(2 ** rng.uniform(5, 11)) for _ in range(rng.integers(2, 5))]
    convolves = bool(rng.integers(2))
    widths = [max(1, width // 8) for width in widths] if convolves else widths
    samples, size, kernel = (int(rng.integers(1, high)) for high in (33, 29, 4))
    tail = (size, size) if convolves else ()

    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        if not convolves:
            return jnp.tanh(x @ w)
        names = ("NHWC", "HWIO", "NHWC")
        return jax.nn.relu(lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names))

    def network(weights: Any, x: jax.Array) -> jax.Array:
        for w in weights:
            x = layer(x, w)
        return x

    window = (kernel, kernel) if convolves else ()
    weights = [jax.ShapeDtypeStruct((*window, *pair), dtype) for pair in itertools.pairwise(widths)]
    x = jax.ShapeDtypeStruct((samples, *tail, widths[0]), dtype)
    result = jax.ShapeDtypeStruct((samples, *tail, widths[-1]), dtype)
    _check(_costs(_gradients(network), weights, x, result), 2.5)
