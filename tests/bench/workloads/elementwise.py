"""Calls that do next to nothing, and elementwise programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tests.bench.workload import Workload, normal, positive

MILLION = 1 << 20


def _many_in_and_out(*values: jax.Array) -> list[jax.Array]:
    return [value + 1 for value in values]


def _chain(x: jax.Array) -> jax.Array:
    return jnp.tanh(x * 1.5 + 0.5) * x + jnp.maximum(x, 0.1) - x * x * 0.25


def workloads() -> list[Workload]:
    unary = {"exp": jnp.exp, "tanh": jnp.tanh, "erf": jax.scipy.special.erf, "log": jnp.log}
    return [
        Workload("dispatch x + 1", lambda x: x + 1, lambda: [np.ones(4, np.float32)]),
        Workload("50 in, 50 out", _many_in_and_out, lambda: [normal(8, seed=i) for i in range(50)]),
        Workload("elementwise chain 10k", _chain, lambda: [normal(10_000)]),
        Workload("elementwise chain 1M", _chain, lambda: [normal(MILLION)]),
        Workload(
            "elementwise chain 1M bf16", _chain, lambda: [normal(MILLION, dtype=jnp.bfloat16)]
        ),
        Workload("elementwise chain 1M f16", _chain, lambda: [normal(MILLION, dtype=np.float16)]),
        *(
            Workload(f"{name} 1M", function, lambda: [positive(MILLION)])
            for name, function in unary.items()
        ),
    ]
