"""The transformer of these examples, with one scan over its layers."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import PartitionSpec as P


class Sizes(NamedTuple):
    num_layers: int
    num_heads: int
    width: int
    length: int
    vocabulary: int


def init_params(key, sizes, dtype=jnp.float32):
    """Weights of all layers are stacked along the first axis; heads have a separate axis."""
    n, h, w = sizes.num_layers, sizes.num_heads, sizes.width
    keys = iter(jax.random.split(key, 6))

    def normal(*shape, fan_in):
        return (jax.random.normal(next(keys), shape) * fan_in**-0.5).astype(dtype)

    layers = {
        "qkv": normal(n, w, 3, h, w // h, fan_in=w),
        "out": normal(n, h, w // h, w, fan_in=w * n),
        "up": normal(n, w, 4 * w, fan_in=w),
        "down": normal(n, 4 * w, w, fan_in=4 * w * n),
        "norm1": jnp.ones((n, w), dtype),
        "norm2": jnp.ones((n, w), dtype),
    }
    words = normal(sizes.vocabulary, w, fan_in=w)
    places = normal(sizes.length, w, fan_in=w)
    return {"words": words, "places": places, "layers": layers}


def tensor_parallel_specs(axis):
    """Heads and feed-forward hidden units are sharded over `axis`; the rest is replicated."""
    layers = {
        "qkv": P(None, None, None, axis),
        "out": P(None, axis),
        "up": P(None, None, axis),
        "down": P(None, axis),
        "norm1": P(),
        "norm2": P(),
    }
    return {"words": P(), "places": P(), "layers": layers}


def normalise(x, scale):
    """Root-mean-square norm over the last axis."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def block(x, layer):
    """x [b, t, w] -> the same; in the form that scan wants."""
    t = x.shape[1]
    query, key, value = jnp.einsum("btw,wchd->cbhtd", normalise(x, layer["norm1"]), layer["qkv"])
    scores = jnp.einsum("bhqd,bhkd->bhqk", query, key) * query.shape[-1] ** -0.5
    causal = jnp.tril(jnp.ones((t, t), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e4))
    mixed = jnp.einsum("bhqk,bhkd->bhqd", weights, value)
    x = x + jnp.einsum("bhqd,hdw->bqw", mixed, layer["out"])
    hidden = jax.nn.gelu(normalise(x, layer["norm2"]) @ layer["up"])
    return x + hidden @ layer["down"], None


def loss_of(params, tokens):
    """Mean cross entropy of each next token, tokens [b, length + 1]."""
    x = params["words"][tokens[:, :-1]] + params["places"]
    x, _ = jax.lax.scan(block, x, params["layers"])
    logits = (x @ params["words"].T).astype(jnp.float32)
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()
