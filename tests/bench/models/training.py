"""What a training step is made of, and the multilayer perceptron."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

LEARNING_RATE = 1e-3
MOMENTUM = 0.9


def weights(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    """Normal, over the root of the inputs of an output: activations keep their size."""
    fan_in = int(np.prod(shape[:-1]))
    return (rng.standard_normal(shape, np.float32) * np.float32(fan_in**-0.5)).astype(dtype)


def zeros_like(params: Any) -> Any:
    return jax.tree.map(np.zeros_like, params)


def cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean over all but the last dimension, in float32."""
    log_probabilities = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.take_along_axis(log_probabilities, labels[..., None], -1).mean()


def momentum_step(forward: Callable[..., jax.Array]) -> Callable[..., Any]:
    """A step of gradient descent; the state is (parameters, momenta), in the parameters' dtype."""

    def step(state: Any, x: jax.Array, labels: jax.Array) -> Any:
        params, momenta = state
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(forward(p, x), labels))(params)
        momenta = jax.tree.map(lambda m, g: (MOMENTUM * m + g).astype(m.dtype), momenta, grads)
        params = jax.tree.map(lambda p, m: (p - LEARNING_RATE * m).astype(p.dtype), params, momenta)
        return (params, momenta), loss

    return step


def adam_step(forward: Callable[..., jax.Array]) -> Callable[..., Any]:
    """A step of Adam; the state is (parameters, first moments, second moments, steps)."""

    def step(state: Any, x: jax.Array, labels: jax.Array) -> Any:
        params, firsts, seconds, count = state
        loss, grads = jax.value_and_grad(lambda p: cross_entropy(forward(p, x), labels))(params)
        count = count + 1
        firsts = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, firsts, grads)
        seconds = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, seconds, grads)
        rate = LEARNING_RATE * jnp.sqrt(1 - 0.999**count) / (1 - 0.9**count)
        params = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), params, firsts, seconds
        )
        return (params, firsts, seconds, count), loss

    return step


def init_mlp(sizes: Sequence[int]) -> list[Any]:
    rng = np.random.default_rng(0)
    return [
        {"w": weights(rng, before, after), "b": np.zeros(after, np.float32)}
        for before, after in pairwise(sizes)
    ]


def mlp(params: Any, x: jax.Array) -> jax.Array:
    """x [batch, in] to logits."""
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]
