"""`top_k`: the largest or smallest elements, as popops selects them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import array, flag, whole_number
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op
from ipujax.types import Order

_ORDERS = ("descending", "ascending", "none")


def _plain(x: jax.Array, *, k: int, largest: bool, order: str) -> tuple[jax.Array, jax.Array]:
    where = lax.broadcasted_iota(jnp.int32, x.shape, x.ndim - 1)
    if largest:
        values, found = lax.top_k(x, k)
        found = found.astype(jnp.int32)
    else:
        is_float = jnp.issubdtype(x.dtype, jnp.floating)
        is_plus_zero = (x == 0) & ~jnp.signbit(x) if is_float else jnp.zeros_like(x, bool)
        values, _, found = (
            each[..., :k] for each in lax.sort((x, is_plus_zero, where), num_keys=2)
        )
    if order != "none" and (order == "descending") != largest:
        values, found = values[..., ::-1], found[..., ::-1]
    return values, found


_TOP_K = Op("top_k", _plain, multiple=True, dimensions="...K -> ...J, ...J")


def top_k(
    x: Any, k: int, *, largest: bool = True, order: Order = "descending"
) -> tuple[jax.Array, jax.Array]:
    """The k largest (or smallest) elements of the last dimension, and their indices.

    NaN is the largest, and -0 is below 0. Of equal elements the one with the lower index is
    selected. The best come first; the opposite order reverses everything. Differentiable in x.

    Args:
        x: [..., n], floats or integers of 32 bits or less.
        k: 0 to n.
        largest: False for the smallest.
        order: "descending", "ascending", or "none" for any.
    Returns:
        values [..., k] of x's dtype, and indices [..., k], int32.
    Raises:
        ConfigError: k beyond n, no dimension, an unknown order, complex x.

    Source: `popops::topKWithPermutation`.

    Example:
        >>> values, where = ipu.ops.top_k(jnp.array([3.0, 1.0, 2.0]), 2, largest=False)
        >>> values.tolist(), where.tolist()
        ([2.0, 1.0], [2, 1])
    """
    x = array("ipu.ops.top_k", "x", x)
    if not isinstance(order, str) or order not in _ORDERS:
        raise ConfigError(
            f"[ipu.ops.top_k] needs an order of {', '.join(_ORDERS)}; got {order!r}. Use one of "
            "these names."
        )
    count = whole_number(k)
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise ConfigError(
            f"[ipu.ops.top_k] needs x that is not complex; got {x.dtype} {list(x.shape)}. Select "
            "from its real part or absolute values."
        )
    if x.ndim == 0 or count is None or not 0 <= count <= x.shape[-1]:
        raise ConfigError(
            f"[ipu.ops.top_k] needs k from 0 to the size of the last dimension; got {k!r} for "
            f"{x.dtype} {list(x.shape)}. Pass a smaller k."
        )
    if count == 0 or x.size == 0:
        shape = (*x.shape[:-1], count)
        return jnp.zeros(shape, x.dtype), jnp.zeros(shape, jnp.int32)
    return _TOP_K(x, k=count, largest=flag("ipu.ops.top_k", "largest", largest), order=order)
