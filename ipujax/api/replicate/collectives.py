"""Collectives over arrays and pytrees, by Graphcore's names.

Each binds a JAX primitive, or one of `primitives` if `jax.lax` has none.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import array, check_arrays, dimension
from ipujax.api.replicate.primitives import broadcast_p
from ipujax.api.replicate.replicas import AxisName, Replicas, resolve
from ipujax.api.replicate.weight_shards import check_no_shards
from ipujax.errors import ReplicationError


def cross_replica_sum(
    x: Any, replica_group_size: int | None = None, *, axis_name: AxisName | None = None
) -> Any:
    """Sums x over the replicas; every replica gets the sum.

    Args:
        x: pytree of arrays; each keeps its shape and dtype (bools are summed as int32).
        replica_group_size: sum within groups of this many consecutive replicas; None: over all.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Raises:
        ReplicationError: no axis is mapped, or the group size does not divide the replicas.

    Example:
        >>> print(ipu.pmap(ipu.cross_replica_sum)(jnp.arange(4.0)))
        [6. 6. 6. 6.]
        >>> print(ipu.pmap(lambda x: ipu.cross_replica_sum(x, 2))(jnp.arange(4.0)))
        [1. 1. 5. 5.]
    """
    where = "ipu.cross_replica_sum"
    return _sum(where, x, resolve(where, axis_name, replica_group_size))


def cross_replica_mean(
    x: Any, replica_group_size: int | None = None, *, axis_name: AxisName | None = None
) -> Any:
    """Averages x over the replicas; every replica gets the mean.

    Args:
        x: pytree of arrays; integers become floats, as with `jnp.mean`.
        replica_group_size: average within groups of this many consecutive replicas; None: over
            all.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Raises:
        ReplicationError: no axis is mapped, or the group size does not divide the replicas.

    Example:
        >>> print(ipu.pmap(ipu.cross_replica_mean)(jnp.arange(4.0)))
        [1.5 1.5 1.5 1.5]
    """
    where = "ipu.cross_replica_mean"
    replicas = resolve(where, axis_name, replica_group_size)
    return jax.tree.map(lambda total: total / replicas.size, _sum(where, x, replicas))


def _sum(where: str, x: Any, replicas: Replicas) -> Any:
    check_no_shards(where, x)
    check_arrays(where, "x", x)
    if replicas.groups is None:
        return lax.psum(x, replicas.axis_name)
    if not replicas.checks_variance:
        return lax.psum(x, replicas.axis_name, axis_index_groups=replicas.groups)
    # The result of a grouped psum varies between groups, which shard_map cannot express.
    return jax.tree.map(lambda leaf: _scattered_sum(jnp.asarray(leaf), replicas), x)


def _scattered_sum(x: jax.Array, replicas: Replicas) -> jax.Array:
    """A sum as reduce-scatter and all-gather."""
    x = x.astype(jnp.int32) if x.dtype == bool else x
    axis, groups = replicas.axis_name, replicas.groups
    flat = jnp.pad(x.ravel(), (0, -x.size % replicas.size))
    part = lax.psum_scatter(flat, axis, axis_index_groups=groups, tiled=True)
    total = lax.all_gather(part, axis, axis_index_groups=groups, tiled=True)
    return total[: x.size].reshape(x.shape)


def all_gather(
    x: Any, replica_group_size: int | None = None, *, axis_name: AxisName | None = None
) -> Any:
    """Stacks the x of all replicas along a new first dimension, on every replica.

    Args:
        x: pytree of arrays [...].
        replica_group_size: gather within groups of this many consecutive replicas; None: from all.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        Arrays [replicas, ...].
    Raises:
        ReplicationError: no axis is mapped, or the group size does not divide the replicas.

    Example:
        >>> print(ipu.pmap(ipu.all_gather)(jnp.arange(2.0)))
        [[0. 1.]
         [0. 1.]]
    """
    replicas = resolve("ipu.all_gather", axis_name, replica_group_size)
    check_arrays("ipu.all_gather", "x", x)
    return lax.all_gather(x, replicas.axis_name, axis_index_groups=replicas.groups)


def all_to_all(
    x: Any,
    split_dimension: int,
    concat_dimension: int,
    replica_group_size: int | None = None,
    *,
    axis_name: AxisName | None = None,
) -> Any:
    """Splits x into one part for each replica, and concatenates the parts received.

    Args:
        x: pytree of arrays whose `split_dimension` the number of replicas divides.
        split_dimension: the dimension that is split; part i goes to replica i.
        concat_dimension: the dimension along which parts are concatenated, in replica order.
        replica_group_size: exchange within groups of this many consecutive replicas; None: all.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        Arrays whose `split_dimension` is divided, and whose `concat_dimension` is multiplied, by
        the number of replicas.
    Raises:
        ReplicationError: no axis is mapped, the group size does not divide the replicas, or a
            dimension is missing or cannot be split.

    Example:
        >>> print(ipu.pmap(lambda x: ipu.all_to_all(x, 0, 0))(jnp.arange(4.0).reshape(2, 2)))
        [[0. 2.]
         [1. 3.]]
    """
    where = "ipu.all_to_all"
    replicas = resolve(where, axis_name, replica_group_size)

    def exchange(leaf: Any) -> jax.Array:
        leaf = array(where, "x", leaf)
        split, concat = (
            _dimension(where, name, given, leaf.shape)
            for name, given in (("split", split_dimension), ("concat", concat_dimension))
        )
        if leaf.shape[split] % replicas.size:
            raise ReplicationError(
                f"[{where}] needs a split_dimension that the {replicas.size} replicas divide; got "
                f"{leaf.shape[split]} in shape {leaf.shape}. Pad it, or split another one."
            )
        return lax.all_to_all(
            leaf,
            replicas.axis_name,
            split,
            concat,
            axis_index_groups=replicas.groups,
            tiled=True,
        )

    return jax.tree.map(exchange, x)


def _dimension(where: str, name: str, given: Any, shape: tuple[int, ...]) -> int:
    found = dimension(given, len(shape))
    if found is None:
        raise ReplicationError(
            f"[{where}] needs {name}_dimension within the array's {len(shape)} dimensions; got "
            f"{given!r} for shape {shape}. Use an existing dimension."
        )
    return found


def assume_equal_across_replicas(x: Any, *, axis_name: AxisName | None = None) -> Any:
    """Gives every replica the x of replica 0, bit for bit.

    Use it for a condition around a collective, which must be the same on all replicas.

    Args:
        x: pytree of arrays and PRNG keys.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Raises:
        ReplicationError: no axis is mapped.

    Example:
        >>> def step(error, x):
        ...     done = ipu.assume_equal_across_replicas(error < 1e-3)
        ...     return jax.lax.cond(done, lambda x: x, ipu.cross_replica_sum, x)
        >>> print(ipu.pmap(step)(jnp.array([0.1, 0.0]), jnp.array([1.0, 2.0])))
        [3. 3.]
    """
    where = "ipu.assume_equal_across_replicas"
    replicas = resolve(where, axis_name)
    return jax.tree.map(lambda leaf: _from_first(array(where, "x", leaf), replicas), x)


def _from_first(x: jax.Array, replicas: Replicas) -> jax.Array:
    if jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        data = _from_first(jax.random.key_data(x), replicas)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
    return broadcast_p.bind(x, axis_name=replicas.axis_names)
