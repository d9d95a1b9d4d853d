"""`identity_loss`: values that already are a loss."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import floats
from ipujax.errors import ConfigError
from ipujax.types import LossReduction

_REDUCTIONS = {"sum": jnp.sum, "mean": jnp.mean, "none": lambda x: x}


def identity_loss(x: Any, reduction: LossReduction) -> jax.Array:
    """The sum, the mean or the array itself; its gradient is 1, 1 / size, or the incoming one.

    Args:
        x: an array of floats.
        reduction: "sum", "mean" or "none".
    Returns:
        a scalar; x for "none".
    Raises:
        ConfigError: an invalid reduction or dtype.

    Source: `poptorch.identity_loss`.

    Example:
        >>> error = jnp.array([1.0, -2.0])
        >>> float(ipu.ops.identity_loss(error**2, reduction="mean"))
        2.5
    """
    if not isinstance(reduction, str) or reduction not in _REDUCTIONS:
        raise ConfigError(
            f"[ipu.ops.identity_loss] needs a reduction of {', '.join(_REDUCTIONS)}; got "
            f"{reduction!r}. Use one of these names."
        )
    x = floats("ipu.ops.identity_loss", "x", x)
    return jnp.asarray(_REDUCTIONS[reduction](x))
