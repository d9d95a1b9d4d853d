"""Training steps of random networks, dense, convolutional or with attention, for any batch."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Network = Callable[[Any, jax.Array], jax.Array]


def from_seed(seed: int) -> Callable[[int], jax.stages.Lowered]:
    """A step of descent with momentum for a batch of some size, as `jax.jit` lowers it."""
    rng = random.Random(seed)
    dtype = rng.choice([jnp.float32, jnp.float16])
    network, weights, sample = rng.choice([_dense, _convolutional, _attention])(rng)

    def shaped(shape: tuple[int, ...]) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, dtype)

    def loss(weights: Any, x: jax.Array) -> jax.Array:
        return jnp.mean(network(weights, x).astype(jnp.float32) ** 2)

    def step(weights: Any, velocities: Any, x: jax.Array) -> Any:
        value, gradients = jax.value_and_grad(loss)(weights, x)
        velocities = jax.tree.map(lambda v, g: dtype(0.9) * v + g, velocities, gradients)
        return jax.tree.map(lambda w, v: w - dtype(0.1) * v, weights, velocities), velocities, value

    weights = jax.tree.map(shaped, weights, is_leaf=lambda shape: isinstance(shape, tuple))
    jitted = jax.jit(step, donate_argnums=(0, 1))
    return lambda batch: jitted.lower(weights, weights, shaped((batch, *sample)))


def _dense(rng: random.Random) -> tuple[Network, Any, tuple[int, ...]]:
    sizes = [rng.choice([32, 100, 256, 384, 768, 1000, 2048]) for _ in range(rng.randint(2, 6))]

    def network(weights: Any, x: jax.Array) -> jax.Array:
        for w, b in weights:
            x = jnp.tanh(x @ w + b)
        return x

    weights = [[(a, b), (b,)] for a, b in itertools.pairwise(sizes)]
    return network, weights, (sizes[0],)


def _convolutional(rng: random.Random) -> tuple[Network, Any, tuple[int, ...]]:
    size, kernel = rng.choice([14, 28, 32]), rng.choice([1, 3])
    widths = [rng.choice([3, 16, 32, 64, 96]) for _ in range(rng.randint(2, 4))]

    def network(weights: Any, x: jax.Array) -> jax.Array:
        for w, scale, shift in weights:
            names = ("NHWC", "HWIO", "NHWC")
            x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=names)
            x = x - x.mean((0, 1, 2))
            x = jax.nn.relu(x * lax.rsqrt((x * x).mean((0, 1, 2)) + 1e-3) * scale + shift)
        return x

    weights = [[(kernel, kernel, a, b), (b,), (b,)] for a, b in itertools.pairwise(widths)]
    return network, weights, (size, size, widths[0])


def _attention(rng: random.Random) -> tuple[Network, Any, tuple[int, ...]]:
    length, width = rng.choice([32, 64, 128]), rng.choice([128, 256, 512])
    heads = rng.choice([2, 4, 8])

    def layer(weights: Any, x: jax.Array) -> jax.Array:
        batch = x.shape[0]

        def split(x: jax.Array) -> jax.Array:
            return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

        q, k, v = map(split, jnp.split(x @ weights["in"] + weights["shift"], 3, -1))
        scores = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) * (width / heads) ** -0.5)
        mixed = (scores @ v).transpose(0, 2, 1, 3).reshape(x.shape)
        x = x + mixed @ weights["out"]
        centred = x - x.mean(-1, keepdims=True)
        return centred * weights["scale"]

    def network(weights: Any, x: jax.Array) -> jax.Array:
        for w in weights:
            x = layer(w, x)
        return x

    shapes = {"in": (width, 3 * width), "shift": (3 * width,)}
    shapes |= {"out": (width, width), "scale": (width,)}
    return network, [shapes] * rng.randint(1, 3), (length, width)
