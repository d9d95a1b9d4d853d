"""Rows of a table in streaming memory, as a remote buffer, and their updates in place."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import array, as_int32, floats, known_outside, rate_of
from ipujax.api.replicate.replicas import resolve_axis
from ipujax.errors import ConfigError, check_choice
from ipujax.types import PartitionStrategy

STRATEGIES = ("token", "encoding")


def remote_embedding_lookup(
    table: Any, ids: Any, *, axis_name: Any = None, partition_strategy: PartitionStrategy = "token"
) -> jax.Array:
    """Looks up rows of a table in streaming memory; each row is copied to the tiles by itself.

    Put the table there with `jax.device_put` and a sharding of memory kind "pinned_host". For a
    table in other memory this is table[ids].

    Args:
        table: [rows, columns] of a float dtype; with `axis_name`, this replica's part of it.
        ids: [...] integers of rows of the (whole) table; ids known only at run time are clipped to
            it.
        axis_name: the mapped axis of replicas (of `jax.shard_map`) over which the table is
            partitioned; each replica has ids of its own.
        partition_strategy: "token": parts are blocks of rows; "encoding": blocks of columns.
    Returns:
        [..., columns], on the device. Not differentiable with respect to the table: take the
        gradient with respect to these rows, for `remote_embedding_update`.
    Raises:
        ConfigError: a wrong rank or dtype, ids known to be out of range, an unknown strategy, or
            differentiation with respect to the table.

    Source: `HostEmbedding` with `enable_remote_buffer_embedding` of Graphcore's TensorFlow;
    `poplar::Graph::addRemoteBuffer`.

    Example:
        >>> device = jax.devices()[0]
        >>> host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
        >>> table = jax.device_put(np.arange(8, dtype=np.float32).reshape(4, 2), host)
        >>> print(jax.jit(ipu.ops.remote_embedding_lookup)(table, jnp.array([3, 0])))
        [[6. 7.]
         [0. 1.]]
    """
    where = "ipu.ops.remote_embedding_lookup"
    axis_name = None if axis_name is None else resolve_axis(where, axis_name)
    table, flat, shape = _checked(where, table, ids, axis_name, partition_strategy)
    rows = _lookup(table, flat, axis_name, partition_strategy)
    return rows.reshape(*shape, rows.shape[-1])


def remote_embedding_update(
    table: Any,
    ids: Any,
    gradients: Any,
    learning_rate: Any,
    *,
    axis_name: Any = None,
    partition_strategy: PartitionStrategy = "token",
) -> jax.Array:
    """The table after gradient descent on some of its rows: row - learning_rate * gradient.

    A row that occurs several times is updated as many times, one after the other. If the table is a
    donated argument, and the result stays in its memory, the table is updated in place.

    Args:
        table, ids, axis_name, partition_strategy: as for `remote_embedding_lookup`.
        gradients: gradients of the rows, [..., columns]. Those of all replicas are used.
        learning_rate: [] float.
    Returns:
        the new table (or part), in the same memory.
    Raises:
        ConfigError: as `remote_embedding_lookup`; gradients of a wrong shape.

    Source: as `remote_embedding_lookup`.

    Example:
        >>> host = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
        >>> table = jax.device_put(np.zeros((4, 2), np.float32), host)
        >>> update = jax.jit(
        ...     ipu.ops.remote_embedding_update, donate_argnums=0, out_shardings=host
        ... )
        >>> table = update(table, jnp.array([1, 1]), jnp.ones((2, 2)), 0.5)
        >>> print(np.asarray(table)[:2], table.sharding.memory_kind)
        [[ 0.  0.]
         [-1. -1.]] pinned_host
    """
    where = "ipu.ops.remote_embedding_update"
    axis_name = None if axis_name is None else resolve_axis(where, axis_name)
    table, flat, shape = _checked(where, table, ids, axis_name, partition_strategy)
    count = 1 if axis_name is None else int(lax.axis_size(axis_name))
    is_split = partition_strategy == "encoding"
    columns = table.shape[1] * (count if is_split else 1)
    values = floats(where, "gradients", gradients)
    if values.shape != (*shape, columns):
        raise ConfigError(
            f"[{where}] needs gradients {[*shape, columns]}; got {list(values.shape)}. Pass the "
            "gradient of the rows of these ids."
        )
    values = values.reshape(-1, columns)
    if axis_name is not None:
        flat = lax.all_gather(flat, axis_name, tiled=True)
        if is_split:
            values = values.reshape(-1, count, table.shape[1])
            values = lax.all_to_all(values, axis_name, 1, 0)
        else:
            values = lax.all_gather(values, axis_name)
        values = values.reshape(-1, table.shape[1])
    local, is_here = _local(table, flat, axis_name, partition_strategy)
    rate = rate_of(where, learning_rate)
    changes = jnp.where(is_here[:, None], rate * values.astype(jnp.float32), 0)

    def change(table: jax.Array, one: Any) -> tuple[jax.Array, None]:
        index, by = one
        row = _row(table, index)
        new = (row.astype(jnp.float32) - by).astype(row.dtype)[None]
        if _is_remote(table):
            new = jax.device_put(new, jax.memory.Space.Host)
        return lax.dynamic_update_slice(table, new, (index, jnp.zeros_like(index))), None

    return lax.scan(change, table, (local, changes))[0]


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _lookup(table: jax.Array, ids: jax.Array, axis_name: Any, strategy: str) -> jax.Array:
    """Rows [n, columns] of ids [n]."""
    if axis_name is None:
        return _rows(table, jnp.clip(ids, 0, table.shape[0] - 1))
    everyone = lax.all_gather(ids, axis_name)  # [replicas, n]
    local, is_here = _local(table, everyone.ravel(), axis_name, strategy)
    rows = jnp.where(is_here[:, None], _rows(table, local), 0)
    rows = rows.reshape(*everyone.shape, table.shape[1])
    if strategy == "token":
        return lax.psum_scatter(rows, axis_name, scatter_dimension=0)
    return lax.all_to_all(rows, axis_name, 0, 1).reshape(len(ids), -1)


def _no_derivative(*_: Any) -> Any:
    raise ConfigError(
        "[ipu.ops.remote_embedding_lookup] needs a table that is not differentiated; got a "
        "derivative. Differentiate by the rows, and pass the gradient to remote_embedding_update."
    )


_lookup.defjvp(_no_derivative)


def _local(
    table: jax.Array, ids: jax.Array, axis_name: Any, strategy: str
) -> tuple[jax.Array, jax.Array]:
    """Positions of the ids' rows in this replica's part, and whether they are in it."""
    count = _num_parts(axis_name, strategy)
    size = table.shape[0]
    ids = jnp.clip(ids, 0, size * count - 1)
    first = lax.axis_index(axis_name).astype(ids.dtype) * size if count > 1 else 0
    local = ids - first
    return jnp.clip(local, 0, size - 1), (local >= 0) & (local < size)


def _num_parts(axis_name: Any, strategy: str) -> int:
    """Number of blocks of rows into which the table is partitioned."""
    return 1 if axis_name is None or strategy == "encoding" else int(lax.axis_size(axis_name))


def _rows(table: jax.Array, ids: jax.Array) -> jax.Array:
    if not _is_remote(table):
        return jnp.take(table, ids, axis=0)
    return lax.map(lambda index: _row(table, index), ids)


def _row(table: jax.Array, index: jax.Array) -> jax.Array:
    row = lax.dynamic_slice(table, (index, jnp.zeros_like(index)), (1, table.shape[1]))
    return (jax.device_put(row, jax.memory.Space.Device) if _is_remote(table) else row)[0]


def _is_remote(table: jax.Array) -> bool:
    return jax.typeof(table).memory_space == jax.memory.Space.Host


def _checked(
    where: str, table: Any, ids: Any, axis_name: Any, strategy: str
) -> tuple[jax.Array, jax.Array, tuple[int, ...]]:
    check_choice(where, "partition_strategy", strategy, STRATEGIES, ConfigError)
    table, indices = array(where, "table", table), array(where, "ids", ids)
    is_floating = jnp.issubdtype(table.dtype, jnp.floating)
    if table.ndim != 2 or not table.size or not is_floating:
        raise ConfigError(
            f"[{where}] needs a table [rows, columns] of a float dtype; got {table.dtype} "
            f"{list(table.shape)}. Pass such a table."
        )
    if not jnp.issubdtype(indices.dtype, jnp.integer):
        raise ConfigError(
            f"[{where}] needs ids of an integer dtype; got {indices.dtype}. Use astype(jnp.int32)."
        )
    num_rows = table.shape[0] * _num_parts(axis_name, strategy)
    wrong = known_outside(indices, 0, num_rows - 1)
    if wrong is not None:
        raise ConfigError(
            f"[{where}] needs ids from 0 to {num_rows - 1}; got {wrong}. Pass numbers of rows."
        )
    return table, as_int32(indices.ravel()), indices.shape
