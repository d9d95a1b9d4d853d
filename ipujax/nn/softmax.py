"""Softmax and its logarithm, as in popnn: rows are fused into one step."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import dimension, floats, wide_dtype
from ipujax.errors import ConfigError, check_choice
from ipujax.types import SoftmaxKind

KINDS = ("plain", "stable", "scaled")
#: Factor by which "scaled" multiplies probabilities: `SOFTMAX_SCALING` of popnn for half.
SCALE = 16384.0


def softmax(x: Any, *, axis: int = -1, kind: SoftmaxKind = "stable") -> jax.Array:
    """exp(x) / sum(exp(x)).

    Args:
        x: of a float dtype, with one or more dimensions.
        axis: the dimension that is normalised; sums are in float32.
        kind: "stable" subtracts the maximum from x first; "plain" does not, which saves a reduction
            but overflows for large x; "scaled" is stable and multiplies the results by `SCALE`
            (16384), so that small probabilities do not underflow in float16. Divide whatever is
            computed from them.
    Raises:
        ConfigError: an argument is invalid.

    Source: `popnn/NonLinearity.hpp` of PopLibs: SOFTMAX, SOFTMAX_STABLE, SOFTMAX_SCALED.

    Example:
        >>> ipu.nn.softmax(jnp.zeros((1, 4))).tolist()
        [[0.25, 0.25, 0.25, 0.25]]
    """
    x, axis = _checked("softmax", x, axis)
    check_choice("nn.softmax", "kind", kind, KINDS, ConfigError)
    if x.shape[axis] == 0:
        return x
    # The subtracted maximum cancels out of the derivative.
    shifted = x if kind == "plain" else x - jax.lax.stop_gradient(jnp.max(x, axis, keepdims=True))
    wide = wide_dtype(x.dtype)
    powers = jnp.exp(shifted.astype(wide) if kind == "scaled" else shifted)
    total = jnp.sum(powers, axis, dtype=wide, keepdims=True)
    if kind == "scaled":
        return (powers * (SCALE / total)).astype(x.dtype)
    return powers / total.astype(x.dtype)


def log_softmax(x: Any, *, axis: int = -1) -> jax.Array:
    """x - max(x) - log(sum(exp(x - max(x)))), with the sum in float32.

    Args:
        x: of a float dtype, with one or more dimensions.
        axis: the dimension that is normalised.
    Raises:
        ConfigError: x or the axis is invalid.

    Source: `popnn/LogSoftmax.hpp` of PopLibs.

    Example:
        >>> print(ipu.nn.log_softmax(jnp.zeros((1, 2))).round(3))
        [[-0.693 -0.693]]
    """
    x, axis = _checked("log_softmax", x, axis)
    if x.shape[axis] == 0:
        return x
    shifted = x - jax.lax.stop_gradient(jnp.max(x, axis, keepdims=True))
    wide = wide_dtype(x.dtype)
    total = jnp.sum(jnp.exp(shifted), axis, dtype=wide, keepdims=True)
    return shifted - jnp.log(total).astype(x.dtype)


def _checked(name: str, x: Any, axis: Any) -> tuple[jax.Array, int]:
    x = floats(f"nn.{name}", "x", x)
    number = dimension(axis, x.ndim)
    if number is None:
        raise ConfigError(
            f"[nn.{name}] needs an axis of x, which has {x.ndim} dimensions; got axis={axis}. "
            "Use one of its dimensions."
        )
    return x, number
