"""Programs that order, fetch and place, and random numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.bench.workload import Workload, indices, normal

MILLION = 1 << 20
NUM_WORDS, NUM_CHOSEN, WIDTH = 100_000, 20_000, 64


def _random_normal(key: jax.Array) -> jax.Array:
    return jax.random.normal(jax.random.wrap_key_data(key), (MILLION,))


def _embeddings(with_updates: bool) -> list[Any]:
    updates = [normal(NUM_CHOSEN, WIDTH, seed=1)] if with_updates else []
    return [normal(NUM_WORDS, WIDTH), indices(NUM_CHOSEN, NUM_WORDS), *updates]


def workloads() -> list[Workload]:
    return [
        Workload("sort 1M", jnp.sort, lambda: [normal(MILLION)]),
        Workload("argsort 1M", jnp.argsort, lambda: [normal(MILLION)]),
        Workload("top 16 of 1M", lambda x: lax.top_k(x, 16), lambda: [normal(MILLION)]),
        Workload("transpose 1024 x 1024", lambda x: x.T + 1, lambda: [normal(1024, 1024)]),
        Workload("gather embeddings", lambda t, i: t[i], lambda: _embeddings(False)),
        Workload(
            "scatter-add embeddings", lambda t, i, x: t.at[i].add(x), lambda: _embeddings(True)
        ),
        Workload("random.normal 1M", _random_normal, lambda: [np.array([0, 7], np.uint32)]),
    ]
