"""Factorisations and Fourier transforms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from tests.bench.workload import Array, Workload, normal


def _positive_definite() -> list[Array]:
    a = normal(256, 256)
    return [(a @ a.T / 256 + np.eye(256, dtype=np.float32))]


def workloads() -> list[Workload]:
    return [
        Workload("fft 2^18", jnp.fft.fft, lambda: [normal(1 << 18).astype(np.complex64)]),
        Workload("cholesky 256", jnp.linalg.cholesky, _positive_definite),
        Workload("eigh 256", jnp.linalg.eigh, _positive_definite),
    ]
