"""nanoGPT's model for one character at a time: 10.67 million parameters without positions.

Sizes are those of its configuration for Shakespeare's works; biases everywhere, exact gelu, a tied
embedding, AdamW, no dropout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

#: Of one array, along its last axis.
Function = Callable[[jax.Array], jax.Array]


def standardized(x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


@dataclass(frozen=True)
class Sizes:
    vocabulary: int = 65
    layers: int = 6
    heads: int = 6
    width: int = 384
    context: int = 256
    softmax: Function = jax.nn.softmax
    standardized: Function = standardized


OPTIMIZER = optax.adamw(1e-3)


def parameters(sizes: Sizes, key: jax.Array) -> dict[str, Any]:
    wide = sizes.width
    keys = iter(jax.random.split(key, 2 + 4 * sizes.layers))

    def linear(inputs: int, outputs: int) -> tuple[jax.Array, jax.Array]:
        return 0.02 * jax.random.normal(next(keys), (inputs, outputs)), jnp.zeros(outputs)

    def norm() -> tuple[jax.Array, jax.Array]:
        return jnp.ones(wide), jnp.zeros(wide)

    layers = [
        {
            "norm1": norm(),
            "attention": linear(wide, 3 * wide),
            "projection": linear(wide, wide),
            "norm2": norm(),
            "up": linear(wide, 4 * wide),
            "down": linear(4 * wide, wide),
        }
        for _ in range(sizes.layers)
    ]
    tokens = linear(sizes.vocabulary, wide)[0]
    positions = linear(sizes.context, wide)[0]
    return {"tokens": tokens, "positions": positions, "layers": layers, "norm": norm()}


def linear(x: jax.Array, weights: tuple[jax.Array, jax.Array]) -> jax.Array:
    return x @ weights[0] + weights[1]


def layer(x: jax.Array, p: dict[str, Any], sizes: Sizes) -> jax.Array:
    def split(a: jax.Array) -> jax.Array:
        return a.reshape(*a.shape[:2], sizes.heads, -1).transpose(0, 2, 1, 3)

    def normalised(name: str) -> jax.Array:
        scale, shift = p[name]
        return sizes.standardized(x) * scale + shift

    q, k, v = map(split, jnp.split(linear(normalised("norm1"), p["attention"]), 3, -1))
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    mixed = sizes.softmax(jnp.where(seen, scores, -jnp.inf)) @ v
    x = x + linear(mixed.transpose(0, 2, 1, 3).reshape(x.shape), p["projection"])
    up = jax.nn.gelu(linear(normalised("norm2"), p["up"]), approximate=False)
    return x + linear(up, p["down"])


def loss_of(sizes: Sizes) -> Any:
    """The loss of tokens [batch, context + 1]."""

    def loss(p: dict[str, Any], tokens: jax.Array) -> jax.Array:
        x = p["tokens"][tokens[:, :-1]] + p["positions"]
        for weights in p["layers"]:
            x = layer(x, weights, sizes)
        logits = (sizes.standardized(x) * p["norm"][0] + p["norm"][1]) @ p["tokens"].T
        return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()

    return loss


def step_of(sizes: Sizes) -> Any:
    """A jitted training step on tokens [batch, context + 1]: the new state, and the loss."""

    def step(p: Any, state: Any, tokens: jax.Array) -> tuple[Any, Any, jax.Array]:
        value, gradients = jax.value_and_grad(loss_of(sizes))(p, tokens)
        updates, state = OPTIMIZER.update(gradients, state, p)
        return optax.apply_updates(p, updates), state, value

    return jax.jit(step, donate_argnums=(0, 1))


def accumulated_step_of(sizes: Sizes) -> Any:
    """A training step on tokens [micro-batches, batch, context + 1]."""

    def step(p: Any, state: Any, tokens: jax.Array) -> tuple[Any, Any, jax.Array]:
        def add(sums: Any, part: jax.Array) -> tuple[Any, None]:
            found = jax.value_and_grad(loss_of(sizes))(p, part)
            return jax.tree.map(jnp.add, sums, found), None

        zeros = jnp.float32(0), jax.tree.map(jnp.zeros_like, p)
        (value, gradients), _ = jax.lax.scan(add, zeros, tokens)
        updates, state = OPTIMIZER.update(gradients, state, p)
        return optax.apply_updates(p, updates), state, value

    return step


def shapes(sizes: Sizes, batch: int) -> tuple[Any, Any, Any]:
    """The step's arguments, as shapes."""
    p = jax.eval_shape(lambda: parameters(sizes, jax.random.key(0)))
    tokens = jax.ShapeDtypeStruct((batch, sizes.context + 1), jnp.int32)
    return p, jax.eval_shape(OPTIMIZER.init, p), tokens
