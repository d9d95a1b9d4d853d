"""Random models of at most 12 layers: functions of (weights, one micro-batch) that give a loss."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Model:
    """A loss, its weights, and a batch with a leading axis of micro-batches."""

    kind: str
    loss: Callable[..., Any]
    weights: Any
    batch: Any

    @property
    def micro_batches(self) -> int:
        return int(jax.tree.leaves(self.batch)[0].shape[0])


class _Random:
    def __init__(self, seed: int):
        self.random = np.random.default_rng(seed)

    def between(self, least: int, most: int) -> int:
        return int(self.random.integers(least, most + 1))

    def one_of(self, *choices: int) -> int:
        return int(self.random.choice(choices))

    def array(self, *shape: int) -> jax.Array:
        return jnp.asarray(self.random.normal(size=shape) / shape[-1] ** 0.5, jnp.float32)

    def tokens(self, count: int, *shape: int) -> jax.Array:
        return jnp.asarray(self.random.integers(0, count, shape), jnp.int32)


def mlp(random: _Random) -> Model:
    widths = [random.one_of(32, 64, 128, 256, 512) for _ in range(random.between(6, 10))]
    weights = [random.array(a, b) for a, b in itertools.pairwise(widths)]

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        for w in weights:
            x = jnp.tanh(x @ w)
        return jnp.mean(x**2)

    return Model("mlp", loss, weights, random.array(8, 16, widths[0]))


def convolutions(random: _Random) -> Model:
    channels = [4, *(random.one_of(4, 8, 16, 32) for _ in range(random.between(4, 6)))]
    weights = [random.array(3, 3, a, b) / 3 for a, b in itertools.pairwise(channels)]
    halved = random.between(1, len(weights) - 1)

    @jax.jit
    def convolution(w: jax.Array, x: jax.Array) -> jax.Array:
        dims = ("NHWC", "HWIO", "NHWC")
        return jax.nn.relu(jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", None, None, dims))

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        for i, w in enumerate(weights):
            x = convolution(w, x)
            if i == halved:
                x = x[:, ::2, ::2]
        return jnp.mean(x.mean((1, 2)) ** 2)

    return Model("convolutions", loss, weights, random.array(8, 2, 12, 12, 4))


def transformer(random: _Random) -> Model:
    width, vocabulary, length = random.one_of(32, 64), random.one_of(64, 256), 16
    blocks = [
        {
            "mixing": random.array(width, 3 * width),
            "up": random.array(width, factor * width),
            "down": random.array(factor * width, width),
        }
        for factor in (random.one_of(1, 2, 8) for _ in range(random.between(3, 5)))
    ]
    weights = {"embedding": random.array(vocabulary, width), "blocks": blocks}

    @jax.jit
    def block(own: Any, x: jax.Array) -> jax.Array:
        q, k, v = jnp.split(_normal(x) @ own["mixing"], 3, -1)
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), q @ k.T, -1e9)
        x = x + jax.nn.softmax(scores) @ v
        return x + jax.nn.relu(_normal(x) @ own["up"]) @ own["down"]

    def loss(weights: Any, tokens: jax.Array) -> jax.Array:
        x = weights["embedding"][tokens]
        for own in weights["blocks"]:
            x = block(own, x)
        scores = jax.nn.log_softmax(_normal(x) @ weights["embedding"].T)
        return -jnp.mean(jnp.take_along_axis(scores[:-1], tokens[1:, None], 1))

    return Model("transformer", loss, weights, random.tokens(vocabulary, 8, length))


def scanned(random: _Random) -> Model:
    width, layers = random.one_of(32, 64, 128), random.between(4, 8)
    weights = {
        "first": random.array(24, width),
        "layers": random.array(layers, width, width),
        "last": random.array(width, random.one_of(8, 512)),
    }

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        x = jnp.tanh(x @ weights["first"])
        x, _ = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w) + x, None), x, weights["layers"])
        return jnp.mean((x @ weights["last"]) ** 2)

    return Model("scanned", loss, weights, random.array(8, 16, 24))


KINDS = (mlp, convolutions, transformer, scanned)


def random_model(seed: int) -> Model:
    return KINDS[seed % len(KINDS)](_Random(seed))


def _normal(x: jax.Array) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
