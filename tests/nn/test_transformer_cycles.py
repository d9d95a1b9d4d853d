"""Layers of BERT and GPT-2 built with ipu.nn cost no more cycles than with plain jnp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

RATE = 0.1


class Parts(NamedTuple):
    """What a layer is built of."""

    norm: Callable[..., Any]
    gelu: Callable[..., Any]
    softmax: Callable[..., Any]
    dropout: Callable[..., Any]


def _plain_norm(x: Any, gamma: Any, beta: Any) -> Any:
    wide = x.astype(jnp.float32)
    mean = wide.mean(-1, keepdims=True)
    variance = jnp.square(wide - mean).mean(-1, keepdims=True)
    whitened = (wide - mean) * jax.lax.rsqrt(variance + 1e-6)
    return whitened.astype(x.dtype) * gamma + beta


def _plain_dropout(x: Any, seed: Any) -> Any:
    kept = jax.random.bernoulli(jax.random.wrap_key_data(seed), 1 - RATE, x.shape)
    return jnp.where(kept, x / (1 - RATE), 0).astype(x.dtype)


PLAIN = Parts(_plain_norm, jax.nn.gelu, jax.nn.softmax, _plain_dropout)
OURS = Parts(
    ipu.nn.layer_norm,
    ipu.nn.gelu,
    ipu.nn.softmax,
    lambda x, seed: ipu.nn.dropout(x, seed, rate=RATE),
)


def layer(parts: Parts, first: bool, heads: int) -> Callable[..., Any]:
    """One with its norms after each block, as BERT's, or `first` in each, as GPT-2's."""

    def attention(weights: Any, x: Any, seed: Any) -> Any:
        batch, length, width = x.shape
        split = (x @ weights["qkv"]).reshape(batch, length, 3, heads, width // heads)
        q, k, v = jnp.moveaxis(split, 2, 0)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(width // heads).astype(x.dtype)
        if first:
            scores = jnp.where(np.tri(length, dtype=bool), scores, jnp.asarray(-1e4, x.dtype))
        shares = parts.dropout(parts.softmax(scores), seed)
        return jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape) @ weights["out"]

    def run(weights: Any, x: Any, seed: Any) -> Any:
        one, other = weights["norms"]

        def feed(x: Any) -> Any:
            return parts.gelu(x @ weights["up"] + weights["bias"]) @ weights["down"]

        if first:
            x = x + parts.dropout(attention(weights, parts.norm(x, *one), seed), seed + 1)
            return x + parts.dropout(feed(parts.norm(x, *other)), seed + 2)
        x = parts.norm(x + parts.dropout(attention(weights, x, seed), seed + 1), *one)
        return parts.norm(x + parts.dropout(feed(x), seed + 2), *other)

    return run


def cycles(parts: Parts, first: bool, sizes: tuple[int, int, int, int], gradient: bool) -> float:
    """Of a layer of [batch, length, width] float16, forwards or with gradients."""
    batch, length, width, heads = sizes
    half = np.float16

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, half)

    weights = {
        "qkv": array(width, 3 * width),
        "out": array(width, width),
        "up": array(width, 4 * width),
        "bias": array(4 * width),
        "down": array(4 * width, width),
        "norms": [(array(width), array(width))] * 2,
    }
    run = layer(parts, first, heads)
    x, seed = array(batch, length, width), jax.ShapeDtypeStruct((2,), np.uint32)
    function = run
    if gradient:

        def function(weights: Any, x: Any, seed: Any) -> Any:
            return jax.grad(lambda *a: run(*a, seed).astype(jnp.float32).sum(), (0, 1))(weights, x)

    found = jax.jit(function).trace(weights, x, seed).lower(lowering_platforms=("ipu",)).compile()
    return float(found.cost_analysis()["cycles"])


def _kept(x: Any, seed: Any) -> Any:
    return x


@pytest.mark.parametrize("gradient", [False, True], ids=["forward", "gradient"])
@pytest.mark.parametrize("first", [False, True], ids=["bert", "gpt2"])
@pytest.mark.parametrize("drops", [False, True], ids=["kept", "dropped"])
def test_layers_cost_no_more(drops: bool, first: bool, gradient: bool) -> None:
    sizes = (1, 128, 256, 4)
    both = [parts if drops else parts._replace(dropout=_kept) for parts in (OURS, PLAIN)]
    ours, plain = (cycles(parts, first, sizes, gradient) for parts in both)
    assert ours <= plain
