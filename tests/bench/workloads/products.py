"""Matrix products and convolutions; the convolutions have shapes of ResNet-50's layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.bench.models.convolutional import conv
from tests.bench.workload import Array, Workload, normal, whole

SIZES = (256, 1024, 2048)
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": jnp.bfloat16}


def _pair(*shape: int, dtype: Any = np.float32) -> list[Array]:
    return [normal(*shape, dtype=dtype, seed=seed) for seed in (0, 1)]


def _images(*kernel: int) -> list[Array]:
    """Eight images of 28 x 28, and a kernel [height, width, in, out]."""
    return [normal(8, 28, 28, kernel[2]), normal(*kernel)]


def _gradients(function: Callable[..., jax.Array]) -> Callable[..., Any]:
    """Both gradients of the sum of squares."""
    return jax.grad(lambda x, w: (function(x, w) ** 2).sum(), (0, 1))


def _depthwise(x: jax.Array, w: jax.Array) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    groups = x.shape[-1]
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=groups
    )


def _depthwise_images() -> list[Array]:
    return [normal(8, 28, 28, 128), normal(3, 3, 1, 128)]


def _whole_matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.matmul(x, w, preferred_element_type=np.int32)


def _whole_pair(rows: int, inner: int, columns: int, dtype: Any) -> list[Array]:
    return [whole(rows, inner, dtype=dtype), whole(inner, columns, dtype=dtype, seed=1)]


def _whole_conv(x: jax.Array, w: jax.Array) -> jax.Array:
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=layout, preferred_element_type=np.int32
    )


def _whole_images() -> list[Array]:
    return [whole(8, 28, 28, 128, dtype=np.int8), whole(3, 3, 128, 128, dtype=np.int8, seed=1)]


def _attention(x: jax.Array, w: jax.Array, out: jax.Array) -> jax.Array:
    """x [batch, time, width], eight heads."""
    batch, time, width = x.shape
    q, k, v = jnp.split((x @ w).reshape(batch, time, 8, 3 * width // 8), 3, -1)
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / (width / 8) ** 0.5, -1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, time, width) @ out


def _attention_arguments() -> list[Array]:
    return [normal(4, 128, 256), normal(256, 768) / 16, normal(256, 256) / 16]


def workloads() -> list[Workload]:
    wide, point = partial(_images, 3, 3, 128, 128), partial(_images, 1, 1, 256, 64)
    return [
        *(
            Workload(f"matmul {n} {name}", jnp.matmul, partial(_pair, n, n, dtype=dtype))
            for n in SIZES
            for name, dtype in DTYPES.items()
        ),
        Workload("matmul 64 x (128 x 128)", jnp.matmul, partial(_pair, 64, 128, 128)),
        Workload(
            "matmul 512 x 1024 x 512 i8",
            _whole_matmul,
            partial(_whole_pair, 512, 1024, 512, np.int8),
        ),
        Workload("matmul 512 i32", _whole_matmul, partial(_whole_pair, 512, 512, 512, np.int32)),
        Workload("conv 3x3", conv, wide),
        Workload("conv 3x3 gradients", _gradients(conv), wide),
        Workload("conv 3x3 i8", _whole_conv, _whole_images),
        Workload("conv 1x1", conv, point),
        Workload("conv 1x1 gradients", _gradients(conv), point),
        Workload("depthwise conv", _depthwise, _depthwise_images),
        Workload("attention 4 x 128 x 256", _attention, _attention_arguments),
    ]
