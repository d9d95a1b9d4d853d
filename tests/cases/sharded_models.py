"""Small models whose training steps are sharded over devices: an MLP and a two-layer GPT."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

MLP_TENSOR_SPECS = {"w1": P(None, "b"), "b1": P("b"), "w2": P("b", None), "b2": P()}
MLP_FSDP_SPECS = {"w1": P("a"), "b1": P("a"), "w2": P("a"), "b2": P("a")}

LAYERS, WIDTH, HEADS, VOCABULARY, LENGTH, BATCH = 2, 16, 4, 32, 8, 8


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return (rng.standard_normal(shape) * 0.3).astype(np.float32)


def mlp_params() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {
        "w1": _normal(rng, 8, 32),
        "b1": _normal(rng, 32),
        "w2": _normal(rng, 32, 4),
        "b2": _normal(rng, 4),
    }


def mlp_step(params: dict[str, Any], x: Any, y: Any) -> tuple[dict[str, Any], Any]:
    """One step of gradient descent: new parameters and the loss."""

    def loss(p: dict[str, Any]) -> Any:
        hidden = jax.nn.relu(x @ p["w1"] + p["b1"])
        return jnp.mean((hidden @ p["w2"] + p["b2"] - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def _block_params(rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "qkv": _normal(rng, WIDTH, 3, HEADS, WIDTH // HEADS),
        "out": _normal(rng, HEADS, WIDTH // HEADS, WIDTH),
        "up": _normal(rng, WIDTH, 4 * WIDTH),
        "down": _normal(rng, 4 * WIDTH, WIDTH),
        "norm1": np.ones(WIDTH, np.float32),
        "norm2": np.ones(WIDTH, np.float32),
    }


def gpt_args(scanned: bool) -> tuple[Any, ...]:
    """Parameters, first and second moments, step, tokens."""
    rng = np.random.default_rng(5)
    blocks: Any = [_block_params(rng) for _ in range(LAYERS)]
    if scanned:
        blocks = jax.tree.map(lambda *x: np.stack(x), *blocks)
    params = {
        "embed": _normal(rng, VOCABULARY, WIDTH),
        "position": _normal(rng, LENGTH, WIDTH),
        "blocks": blocks,
    }
    zeros = jax.tree.map(np.zeros_like, params)
    tokens = rng.integers(0, VOCABULARY, (BATCH, LENGTH + 1)).astype(np.int32)
    return params, zeros, zeros, np.int32(1), tokens


def _norm(x: Any, scale: Any) -> Any:
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def _block(x: Any, p: dict[str, Any]) -> Any:
    h = _norm(x, p["norm1"])
    q, k, v = jnp.moveaxis(jnp.einsum("btd,dche->bcthe", h, p["qkv"]), 1, 0)
    scores = jnp.einsum("bthe,bshe->bhts", q, k) / np.sqrt(WIDTH // HEADS)
    mask = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), -1)
    x = x + jnp.einsum("bhts,bshe,hed->btd", weights, v, p["out"])
    return x + jax.nn.gelu(_norm(x, p["norm2"]) @ p["up"]) @ p["down"]


def _loss(params: dict[str, Any], tokens: Any, scanned: bool) -> Any:
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    x = params["embed"][inputs] + params["position"]
    block = jax.checkpoint(_block)
    if scanned:
        x, _ = lax.scan(lambda c, p: (block(c, p), None), x, params["blocks"])
    else:
        for p in params["blocks"]:
            x = block(x, p)
    logits = jax.nn.log_softmax(x @ params["embed"].T)
    return -jnp.mean(jnp.take_along_axis(logits, targets[..., None], -1))


def _step(scanned: bool, params: Any, m: Any, v: Any, step: Any, tokens: Any) -> Any:
    loss, grads = jax.value_and_grad(partial(_loss, scanned=scanned))(params, tokens)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
    scale = jnp.sqrt(1 - 0.99 ** step.astype(jnp.float32)) / (1 - 0.9 ** step.astype(jnp.float32))
    params = jax.tree.map(lambda p, m, v: p - 1e-2 * scale * m / (jnp.sqrt(v) + 1e-3), params, m, v)
    return params, m, v, step + 1, loss


def gpt_step(scanned: bool) -> Callable[..., Any]:
    """One step of Adam on a two-layer GPT, with recomputation in the backward pass."""
    return partial(_step, scanned)


def _param_specs(scanned: bool, how: str) -> Any:
    if how == "dp":
        return P()
    if how == "fsdp":
        block = {name: P("a") for name in ("qkv", "out", "up", "down", "norm1", "norm2")}
        embed = position = P("a")
    else:
        block = {
            "qkv": P(None, None, "b"),
            "out": P("b"),
            "up": P(None, "b"),
            "down": P("b"),
            "norm1": P(),
            "norm2": P(),
        }
        embed, position = P("b"), P()
    if scanned:
        block = {name: P(None, *spec) for name, spec in block.items()}
    blocks = block if scanned else [block] * LAYERS
    return {"embed": embed, "position": position, "blocks": blocks}


def gpt_specs(scanned: bool, how: str) -> tuple[Any, ...]:
    params = _param_specs(scanned, how)
    return params, params, params, P(), P("a")


def gpt_out_specs(scanned: bool, how: str) -> tuple[Any, ...]:
    params = _param_specs(scanned, how)
    return params, params, params, P(), P()
