"""`sort` and `sort_key_value`: elements in ascending order, as popops sorts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import array, dimension
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op

_SORT = Op("sort", lambda x: lax.sort(x, is_stable=True), dimensions="...K -> ...K")
_SORT_KEY_VALUE = Op(
    "sort_key_value",
    lambda keys, values: lax.sort((keys, values), num_keys=1, is_stable=True)[1],
    dimensions="...K, ...K -> ...K",
)


def sort(x: Any, axis: int = -1) -> jax.Array:
    """The elements in ascending order along one dimension, NaN last. Differentiable.

    Args:
        x: an array of rank 1 or more, not complex.
        axis: along which to sort.
    Returns:
        an array like x.
    Raises:
        ConfigError: x has no such axis, or is complex.

    Source: `popops::sort`.

    Example:
        >>> ipu.ops.sort(jnp.array([3.0, 1.0, 2.0])).tolist()
        [1.0, 2.0, 3.0]
    """
    x, axis = _checked("sort", array("ipu.ops.sort", "x", x), axis)
    return jnp.moveaxis(_SORT(jnp.moveaxis(x, axis, -1)), -1, axis) if x.size else x


def sort_key_value(keys: Any, values: Any, axis: int = -1) -> jax.Array:
    """The values in the order that sorts the keys; equal keys keep their order.

    Args:
        keys: an array of rank 1 or more; NaN are last.
        values: of the keys' shape, of any dtype. Differentiable.
        axis: along which to sort.
    Returns:
        an array like values.
    Raises:
        ConfigError: different shapes, complex keys or values, or no such axis.

    Source: `popops::sortKeyValue`.

    Example:
        >>> ipu.ops.sort_key_value(jnp.array([3, 1, 2]), jnp.array([30, 10, 20])).tolist()
        [10, 20, 30]
    """
    where = "ipu.ops.sort_key_value"
    keys, values = array(where, "keys", keys), array(where, "values", values)
    if keys.shape != values.shape:
        raise ConfigError(
            f"[ipu.ops.sort_key_value] needs keys and values of one shape; got {list(keys.shape)} "
            f"and {list(values.shape)}. Broadcast them."
        )
    for each in (keys, values):
        _, number = _checked("sort_key_value", each, axis)
    if not keys.size:
        return values
    made = _SORT_KEY_VALUE(jnp.moveaxis(keys, number, -1), jnp.moveaxis(values, number, -1))
    return jnp.moveaxis(made, -1, number)


def _checked(where: str, x: jax.Array, axis: Any) -> tuple[jax.Array, int]:
    """The array, and the number of the dimension."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise ConfigError(
            f"[ipu.ops.{where}] needs arrays that are not complex; got {x.dtype} {list(x.shape)}. "
            "Sort their real parts or absolute values."
        )
    number = dimension(axis, x.ndim)
    if number is None:
        bounds = f"Pass one from {-x.ndim} to {x.ndim - 1}"
        advice = bounds if x.ndim else "Pass an array of rank 1 or more"
        raise ConfigError(
            f"[ipu.ops.{where}] needs an axis of the array; got {axis} for {x.dtype} "
            f"{list(x.shape)}. {advice}."
        )
    return x, number
