"""A transformer of four layers of width 256: forward, and one token with a cache."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.bench.models.training import weights

NUM_LAYERS = 4
WIDTH = 256
NUM_HEADS = 8
DEPTH = WIDTH // NUM_HEADS
NUM_TOKENS = 1024
#: Places that a text may have.
LENGTH = 512


def _init_layer(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "norm1": np.ones(WIDTH, np.float32),
        "qkv": weights(rng, WIDTH, 3 * WIDTH),
        "out": weights(rng, WIDTH, WIDTH),
        "norm2": np.ones(WIDTH, np.float32),
        "up": weights(rng, WIDTH, 4 * WIDTH),
        "down": weights(rng, 4 * WIDTH, WIDTH),
    }


def init() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "tokens": rng.standard_normal((NUM_TOKENS, WIDTH), np.float32) * np.float32(0.02),
        "places": rng.standard_normal((LENGTH, WIDTH), np.float32) * np.float32(0.02),
        "layers": [_init_layer(rng) for _ in range(NUM_LAYERS)],
        "norm": np.ones(WIDTH, np.float32),
    }


def init_cache(batch: int) -> np.ndarray[Any, Any]:
    """Keys and values of each layer: [layers, 2, batch, heads, LENGTH, depth]."""
    shape = (NUM_LAYERS, 2, batch, NUM_HEADS, LENGTH, DEPTH)
    return np.random.default_rng(1).standard_normal(shape, np.float32)


def _norm(x: jax.Array, scale: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale


def _heads(x: jax.Array, layer: Any) -> tuple[jax.Array, ...]:
    """Queries, keys and values [batch, heads, time, depth] of x [batch, time, width]."""
    batch, time, _ = x.shape
    qkv = (x @ layer["qkv"]).reshape(batch, time, 3, NUM_HEADS, DEPTH)
    return tuple(qkv[:, :, i].transpose(0, 2, 1, 3) for i in range(3))


def _attend(
    queries: jax.Array, keys: jax.Array, values: jax.Array, allowed: jax.Array
) -> jax.Array:
    scores = jnp.einsum("bhqd,bhkd->bhqk", queries, keys) * DEPTH**-0.5
    found = jax.nn.softmax(jnp.where(allowed, scores, -1e9)) @ values
    return found.transpose(0, 2, 1, 3).reshape(found.shape[0], found.shape[2], WIDTH)


def _feed_forward(x: jax.Array, layer: Any) -> jax.Array:
    return x + jax.nn.gelu(_norm(x, layer["norm2"]) @ layer["up"]) @ layer["down"]


def forward(params: Any, tokens: jax.Array) -> jax.Array:
    """tokens [batch, time] to logits [batch, time, NUM_TOKENS]; causal."""
    time = tokens.shape[1]
    x = params["tokens"][tokens] + params["places"][:time]
    causal = jnp.tril(jnp.ones((time, time), bool))
    for layer in params["layers"]:
        queries, keys, values = _heads(_norm(x, layer["norm1"]), layer)
        x = x + _attend(queries, keys, values, causal) @ layer["out"]
        x = _feed_forward(x, layer)
    return _norm(x, params["norm"]) @ params["tokens"].T


def decode(cache: jax.Array, params: Any, tokens: jax.Array, place: jax.Array) -> Any:
    """The cache with the tokens [batch] at `place` in it, and the likeliest next ones."""
    x = (params["tokens"][tokens] + params["places"][place])[:, None]
    allowed = jnp.arange(LENGTH) <= place
    for number, layer in enumerate(params["layers"]):
        queries, keys, values = _heads(_norm(x, layer["norm1"]), layer)
        new = jnp.stack([keys, values])[None]
        cache = lax.dynamic_update_slice(cache, new, (number, 0, 0, 0, place, 0))
        x = x + _attend(queries, cache[number, 0], cache[number, 1], allowed) @ layer["out"]
        x = _feed_forward(x, layer)
    return cache, jnp.argmax(_norm(x[:, 0], params["norm"]) @ params["tokens"].T, -1)
