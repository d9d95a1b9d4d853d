"""Loops of tiny bodies."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.bench.workload import Workload, normal


def _sines(x: jax.Array) -> jax.Array:
    return lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=1000)[0]


def _tiny_steps(x: jax.Array) -> Any:
    return lax.while_loop(lambda s: s[0] < 10_000, lambda s: (s[0] + 1, s[1] * 0.999), (0, x))[1]


def workloads() -> list[Workload]:
    return [
        Workload("scan 1,000 sines", _sines, lambda: [normal(8)]),
        Workload("while 10,000 tiny steps", _tiny_steps, lambda: [np.ones((), np.float32)]),
    ]
