"""LeNet-5 on 28 x 28 grey images, and ResNet-18 as it is used on 32 x 32 colour images."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.bench.models.training import weights

#: (channels, stride of the first block) of ResNet-18's four stages of two blocks.
RESNET_STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))
NUM_CLASSES = 10


def conv(x: jax.Array, w: jax.Array, stride: int = 1, padding: str = "SAME") -> jax.Array:
    """x [batch, height, width, in], w [height, width, in, out]."""
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (stride, stride), padding, dimension_numbers=layout)


def _max_pool(x: jax.Array) -> jax.Array:
    window = (1, 2, 2, 1)
    return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID")


def init_lenet(dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    shapes = {
        "conv1": (5, 5, 1, 6),
        "conv2": (5, 5, 6, 16),
        "dense1": (400, 120),
        "dense2": (120, 84),
        "dense3": (84, NUM_CLASSES),
    }
    return {
        name: {"w": weights(rng, *shape, dtype=dtype), "b": np.zeros(shape[-1], dtype)}
        for name, shape in shapes.items()
    }


def lenet(params: Any, x: jax.Array) -> jax.Array:
    """x [batch, 28, 28, 1] to logits."""
    for name, padding in (("conv1", "SAME"), ("conv2", "VALID")):
        layer = params[name]
        x = _max_pool(jax.nn.relu(conv(x, layer["w"], padding=padding) + layer["b"]))
    x = x.reshape(x.shape[0], -1)
    for name in ("dense1", "dense2"):
        x = jax.nn.relu(x @ params[name]["w"] + params[name]["b"])
    return x @ params["dense3"]["w"] + params["dense3"]["b"]


def _init_norm(channels: int, dtype: Any) -> dict[str, Any]:
    return {"scale": np.ones(channels, dtype), "shift": np.zeros(channels, dtype)}


def init_resnet18(dtype: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    blocks, before = [], RESNET_STAGES[0][0]
    for channels, first_stride in RESNET_STAGES:
        for stride in (first_stride, 1):
            block = {
                "conv1": weights(rng, 3, 3, before, channels, dtype=dtype),
                "norm1": _init_norm(channels, dtype),
                "conv2": weights(rng, 3, 3, channels, channels, dtype=dtype),
                "norm2": _init_norm(channels, dtype),
            }
            if stride != 1:
                block["shortcut"] = weights(rng, 1, 1, before, channels, dtype=dtype)
                block["norm3"] = _init_norm(channels, dtype)
            blocks.append(block)
            before = channels
    return {
        "stem": weights(rng, 3, 3, 3, RESNET_STAGES[0][0], dtype=dtype),
        "norm": _init_norm(RESNET_STAGES[0][0], dtype),
        "blocks": blocks,
        "dense": weights(rng, before, NUM_CLASSES, dtype=dtype),
    }


def _batch_norm(x: jax.Array, norm: Any) -> jax.Array:
    """By the statistics of the batch, in float32."""
    wide = x.astype(jnp.float32)
    mean = wide.mean((0, 1, 2))
    variance = (wide * wide).mean((0, 1, 2)) - mean * mean
    normal = (wide - mean) * lax.rsqrt(jnp.maximum(variance, 0) + 1e-5)
    return normal.astype(x.dtype) * norm["scale"] + norm["shift"]


def _block(x: jax.Array, block: Any) -> jax.Array:
    stride = 2 if "shortcut" in block else 1
    y = jax.nn.relu(_batch_norm(conv(x, block["conv1"], stride), block["norm1"]))
    y = _batch_norm(conv(y, block["conv2"]), block["norm2"])
    if "shortcut" in block:
        x = _batch_norm(conv(x, block["shortcut"], stride), block["norm3"])
    return jax.nn.relu(x + y)


def resnet18(params: Any, x: jax.Array) -> jax.Array:
    """x [batch, 32, 32, 3] to logits."""
    x = jax.nn.relu(_batch_norm(conv(x, params["stem"]), params["norm"]))
    for block in params["blocks"]:
        x = _block(x, block)
    return x.mean((1, 2)) @ params["dense"]
