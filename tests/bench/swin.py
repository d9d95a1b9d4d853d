"""Inference of Swin-Large for images of 384 x 384, as ByteMLPerf runs it.

Windows of 12 x 12, moved by half a window in every other layer (Liu et al., arXiv 2103.14030).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from tests.stages.known_to_fit import HALF, affine, linear, normalised, shape

SIZE, PATCH, WINDOW, WIDTH, HEAD = 384, 4, 12, 192, 32
DEPTHS = (2, 2, 18, 2)


def parameters() -> Any:
    stages = []
    for number, depth in enumerate(DEPTHS):
        w = WIDTH * 2**number
        layer = {"qkv": linear(w, 3 * w), "out": linear(w, w), "norms": shape(2, 2, w)}
        layer |= {"up": linear(w, 4 * w), "down": linear(4 * w, w)}
        layer["bias"] = shape(w // HEAD, WINDOW**2, WINDOW**2)
        stage: dict[str, Any] = {"layers": [layer] * depth}
        if number:
            stage["merge"] = {"weights": shape(2 * w, w)}
            stage["merge_norm"] = shape(2, 2 * w)
        stages.append(stage)
    patches = linear(PATCH * PATCH * 3, WIDTH)
    ends = {"norm": shape(2, w), "head": linear(w, 1000), "first_norm": shape(2, WIDTH)}
    return ends | {"patches": patches, "stages": stages}


def images(batch: int) -> jax.ShapeDtypeStruct:
    return shape(batch, SIZE, SIZE, 3)


def infer(p: Any, inputs: jax.Array) -> jax.Array:
    x = _cut(inputs, PATCH).reshape(*_grid(inputs, PATCH), -1)
    x = normalised(p["first_norm"], affine(p["patches"], x))
    for stage in p["stages"]:
        if "merge" in stage:
            x = _cut(x, 2).reshape(*_grid(x, 2), -1)
            x = normalised(stage["merge_norm"], x) @ stage["merge"]["weights"]
        for number, layer in enumerate(stage["layers"]):
            moves = number % 2 == 1 and x.shape[1] > WINDOW
            x = _layer(layer, x, WINDOW // 2 if moves else 0)
    return affine(p["head"], jnp.mean(normalised(p["norm"], x), (1, 2)))


def _grid(x: jax.Array, size: int) -> tuple[int, int, int]:
    return x.shape[0], x.shape[1] // size, x.shape[2] // size


def _cut(x: jax.Array, size: int) -> jax.Array:
    """[batch, rows, columns, size, size, channels]."""
    batch, height, width = _grid(x, size)
    return x.reshape(batch, height, size, width, size, -1).transpose(0, 1, 3, 2, 4, 5)


def _layer(p: Any, x: jax.Array, moved: int) -> jax.Array:
    y = jnp.roll(normalised(p["norms"][0], x), (-moved, -moved), (1, 2))
    y = _attention(p, _cut(y, WINDOW), moved > 0)
    y = y.transpose(0, 1, 3, 2, 4, 5).reshape(x.shape)
    x = x + jnp.roll(y, (moved, moved), (1, 2))
    y = affine(p["up"], normalised(p["norms"][1], x))
    return x + affine(p["down"], jax.nn.gelu(y, approximate=False))


def _attention(p: Any, x: jax.Array, is_masked: bool) -> jax.Array:
    """Attention within windows x [batch, rows, columns, 12, 12, channels]."""
    tokens = x.reshape(-1, WINDOW**2, x.shape[-1])
    split = (*tokens.shape[:2], -1, HEAD)
    q, k, v = (part.reshape(split) for part in jnp.split(affine(p["qkv"], tokens), 3, -1))
    scores = jnp.einsum("bqhc,bkhc->bhqk", q * HALF(HEAD**-0.5), k) + p["bias"]
    if is_masked:
        scores = scores + _mask(x.shape[1:3], x.shape[0])[:, None]
    mixed = jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(scores), v)
    return affine(p["out"], mixed.reshape(tokens.shape)).reshape(x.shape)


def _mask(windows: tuple[int, ...], batch: int) -> jax.Array:
    """0 between tokens that were neighbours before the windows moved, else -100."""
    rows, columns = (
        jnp.digitize(
            jnp.arange(n * WINDOW), jnp.array([(n - 1) * WINDOW, n * WINDOW - WINDOW // 2])
        )
        for n in windows
    )
    region = (3 * rows[:, None] + columns)[None, :, :, None]
    region = _cut(region, WINDOW).reshape(-1, WINDOW**2)
    apart = region[:, :, None] != region[:, None, :]
    return jnp.tile(jnp.where(apart, HALF(-100), HALF(0)), (batch, 1, 1))
