"""Reductions, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.bench.workload import Workload, normal

MILLION = 1 << 20


def _layer_norm(x: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)


def _of_columns(x: jax.Array) -> jax.Array:
    return x.sum(0)


def workloads() -> list[Workload]:
    whole: dict[str, Callable[..., Any]] = {
        "sum": jnp.sum,
        "max": jnp.max,
        "argmax": jnp.argmax,
        "cumsum": jnp.cumsum,
    }
    rows: dict[str, Callable[..., Any]] = {
        "softmax": jax.nn.softmax,
        "layer norm": _layer_norm,
        "sum of columns": _of_columns,
    }
    return [
        *(
            Workload(f"{name} 1M", function, lambda: [normal(MILLION)])
            for name, function in whole.items()
        ),
        Workload("sum 1M bf16", jnp.sum, lambda: [normal(MILLION, dtype=jnp.bfloat16)]),
        *(
            Workload(f"{name} 1024 x 1024", function, lambda: [normal(1024, 1024)])
            for name, function in rows.items()
        ),
    ]
