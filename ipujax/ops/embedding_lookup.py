"""`embedding_lookup`: rows of a table, with updates that are sorted or combined."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import array, as_int32, known_outside, whole_number, wide_dtype
from ipujax.errors import ConfigError, check_choice
from ipujax.types import EmbeddingUpdate

WHERE = "ipu.ops.embedding_lookup"
UPDATES = ("add", "sorted", "combined")


def embedding_lookup(
    params: Any, ids: Any, serialization_factor: int = 1, *, update: EmbeddingUpdate = "add"
) -> Any:
    """Rows of a table: params[ids].

    Several arrays of ids make one lookup and one update of the table. Ids known only at run time
    are clipped to the table, also in the gradient.

    Args:
        params: [rows, ...], of a floating-point dtype.
        ids: [...] integers, or a pytree of them.
        serialization_factor: look up the table in this many parts, one after the other. This takes
            less temporary memory but more time; worth it if other operations use the table, too,
            and decide its layout.
        update: how the gradient's rows are added to a table of zeros. "add": as they come.
            "sorted": sorted by their ids, so that rows of one id are next to each other.
            "combined": rows of one id are added up in float32 first, and each row of the table is
            looked up and updated once; for float16 tables with ids that repeat often.
    Returns:
        [..., *params.shape[1:]] for each array of ids.
    Raises:
        ConfigError: ids that are not integers or known to be out of range, a table without rows, a
            factor that does not divide the number of rows, or an unknown update.

    Source: `embedding_ops.embedding_lookup` of Graphcore's TensorFlow; `popops::multiSlice` and
    `popops::multiUpdateAdd`, to which XLA's gather and scatter of rows are lowered.

    Example:
        >>> table = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> print(ipu.ops.embedding_lookup(table, jnp.array([2, 0])))
        [[5. 6.]
         [1. 2.]]
        >>> first, second = ipu.ops.embedding_lookup(table, ([0, 1], 2))
        >>> print(first, second)
        [[1. 2.]
         [3. 4.]] [5. 6.]
    """
    check_choice(WHERE, "update", update, UPDATES, ConfigError)
    table = array(WHERE, "params", params)
    factor = _checked_factor(table, serialization_factor)
    leaves, tree = jax.tree.flatten(ids, is_leaf=_is_list_of_numbers)
    numbers = [_checked_ids(leaf, table.shape[0]) for leaf in leaves]
    flat = jnp.concatenate([each.ravel() for each in numbers]) if numbers else jnp.zeros(0, int)
    rows = _lookup(table, jnp.clip(flat, 0, table.shape[0] - 1), factor, update)
    found, begin = [], 0
    for each in numbers:
        part = rows[begin : begin + each.size]
        found.append(part.reshape(*each.shape, *table.shape[1:]))
        begin += each.size
    return jax.tree.unflatten(tree, found)


def _lookup(table: jax.Array, ids: jax.Array, factor: int, update: str) -> jax.Array:
    """Rows [n, ...] of ids [n] in range. The gradient is the transpose of what is done here."""
    if update == "add" or not ids.size:
        return _rows(table, ids, factor, False)
    places = jnp.arange(ids.size, dtype=jnp.int32)
    in_order, order = lax.sort_key_val(ids, places)
    back = jnp.zeros_like(order).at[order].set(places)
    if update == "sorted":
        return _rows(table, in_order, factor, True)[back]
    begins = jnp.concatenate([jnp.zeros(1, bool), in_order[1:] != in_order[:-1]])
    segment = jnp.cumsum(begins, dtype=jnp.int32)  # 0, 0, 1, ... for equal ids
    different = jnp.zeros_like(ids).at[segment].set(in_order)
    wide = wide_dtype(table.dtype)
    rows = _rows(table, different, factor, False).astype(wide)
    return rows[segment[back]].astype(table.dtype)


def _rows(table: jax.Array, ids: jax.Array, factor: int, is_sorted: bool) -> jax.Array:
    options: dict[str, Any] = {"mode": "promise_in_bounds", "indices_are_sorted": is_sorted}
    if factor == 1:
        return table.at[ids].get(**options)
    size = table.shape[0] // factor
    parts = table.reshape(factor, size, *table.shape[1:])

    def one(rows: jax.Array, part: Any) -> tuple[jax.Array, None]:
        number, entries = part
        local = ids - number * size
        is_here = ((local >= 0) & (local < size)).reshape(-1, *[1] * (rows.ndim - 1))
        got = entries.at[jnp.clip(local, 0, size - 1)].get(**options)
        return jnp.where(is_here, got, rows), None

    zeros = jnp.zeros((ids.size, *table.shape[1:]), table.dtype)
    zeros = jax_compat.varying_like(zeros, table, ids)
    return lax.scan(one, zeros, (jnp.arange(factor, dtype=ids.dtype), parts))[0]


def _is_list_of_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(x, int | np.integer) for x in value)


def _checked_ids(ids: Any, num_rows: int) -> jax.Array:
    numbers = array(WHERE, "ids", ids)
    if not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise ConfigError(
            f"[{WHERE}] needs ids of an integer dtype; got {numbers.dtype}. Use astype(jnp.int32)."
        )
    wrong = known_outside(numbers, 0, num_rows - 1)
    if wrong is not None:
        raise ConfigError(
            f"[{WHERE}] needs ids from 0 to {num_rows - 1}; got {wrong}. Pass numbers of rows."
        )
    return as_int32(numbers)


def _checked_factor(table: jax.Array, factor: Any) -> int:
    is_floating = jnp.issubdtype(table.dtype, jnp.floating)
    if table.ndim < 1 or table.shape[0] == 0 or not is_floating:
        raise ConfigError(
            f"[{WHERE}] needs params [rows, ...] of a floating-point dtype, with at least one row; "
            f"got {table.dtype} {list(table.shape)}. Pass such a table."
        )
    number = whole_number(factor)
    if number is None or number < 1 or table.shape[0] % number:
        raise ConfigError(
            f"[{WHERE}] needs serialization_factor to divide the {table.shape[0]} rows; got "
            f"{factor!r}. Use a divisor."
        )
    return number
