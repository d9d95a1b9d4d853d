"""`nop`: the array itself, computed before anything that uses it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def nop(x: Any) -> jax.Array:
    """The array itself; no operation before it is fused or joined with one after it.

    For debugging. Differentiable.

    Args:
        x: any array.
    Returns:
        x.

    Source: `poptorch.nop`.

    Example:
        >>> ipu.ops.nop(jnp.ones(2)).tolist()
        [1.0, 1.0]
    """
    return lax.optimization_barrier(jnp.asarray(x))
