"""Weights partitioned over the replicas: each replica holds a part of each weight."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.replicate.reduce_scatter import reduce_scatter
from ipujax.api.replicate.replicas import AxisName, resolve
from ipujax.errors import ReplicationError, check_choice
from ipujax.types import WeightOperator


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class WeightShard:
    """One replica's part of a weight, a pytree with one leaf; `ipu.shard_weights` makes them.

    Attributes:
        part: [ceil(n / R)] of the weight's n elements on R replicas, padded with zeros. Outside the
            replicas it has one more axis, over which it is mapped.
        shape: shape of the whole weight.
        axis_name: the axis of the replicas; None for the enclosing mapped axis.
    """

    part: jax.Array
    shape: tuple[int, ...] = field(metadata={"static": True})
    axis_name: AxisName | None = field(default=None, metadata={"static": True})


def is_shard(value: Any) -> bool:
    """Whether it is a `WeightShard`, for trees in which shards are leaves."""
    return isinstance(value, WeightShard)


def check_no_shards(where: str, values: Any) -> None:
    """Refuses to reduce shards over the replicas: they are parts of different elements."""
    if any(map(is_shard, jax.tree.leaves(values, is_leaf=is_shard))):
        raise ReplicationError(
            f"[{where}] needs whole arrays to reduce over the replicas; got an ipu.WeightShard. "
            "Gradients of shards are sums over the replicas already: divide by "
            "ipu.replication_factor() for the mean."
        )


@dataclass(frozen=True)
class Partition:
    """How one weight is partitioned; hashable."""

    shape: tuple[int, ...]
    axis_name: AxisName

    def gathered(self, part: Any, to: str = "varying") -> Any:
        """[..., ceil(n / R)] -> [..., *shape], on every replica."""
        axes = part.shape[:-1]
        flat = lax.all_gather(part, self.axis_name, axis=len(axes), tiled=True, to=to)
        size = math.prod(self.shape)
        return lax.slice_in_dim(flat, 0, size, axis=len(axes)).reshape(*axes, *self.shape)


def partition_of(where: str, shard: WeightShard) -> Partition:
    """The partition that the shard belongs to.

    Raises:
        ReplicationError: no axis is mapped, or the part is not that of one replica.
    """
    replicas = resolve(where, shard.axis_name)
    wanted = (-(-math.prod(shard.shape) // replicas.size),)
    if jnp.shape(shard.part) != wanted:
        raise ReplicationError(
            f"[{where}] needs a replica's own part {list(wanted)} of a weight {list(shard.shape)}; "
            f"got {list(jnp.shape(shard.part))}. Map the shards over their first axis, on as many "
            "replicas as shard_weights ran on."
        )
    return Partition(tuple(shard.shape), replicas.axis_name)


def shard_weights(
    weights: Any, op: WeightOperator = "local", *, axis_name: AxisName | None = None
) -> Any:
    """Partitions weights over the replicas: each replica keeps one part of each weight.

    `ipu.pipeline` takes parameters in this form and gathers them where they are used. Their
    gradients have this form, too, and are summed over the replicas: an elementwise optimizer, such
    as Adam or SGD, then updates parameters and state in parts.

    Args:
        weights: pytree of arrays; those that are not floating-point stay whole.
        op: "local" for weights that are equal on all replicas; "add" or "mean" for gradients of
            whole weights, which are also reduced over the replicas.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        The pytree with `ipu.WeightShard` in place of arrays.
    Raises:
        ReplicationError: no axis is mapped, or the operator is unknown.

    Example:
        >>> shards = ipu.pmap(ipu.shard_weights, in_axes=None, devices=jax.devices()[:4])(
        ...     {"w": jnp.ones((3, 2))}
        ... )
        >>> shards["w"].part.shape  # [R, ceil(n / R)]
        (4, 2)
    """

    where = "ipu.shard_weights"
    check_choice(where, "op", op, ("local", "add", "mean"), ReplicationError)
    resolve(where, axis_name)

    def shard(leaf: Any) -> Any:
        leaf = jnp.asarray(leaf)
        if not jnp.issubdtype(leaf.dtype, jnp.inexact):
            return leaf
        return WeightShard(reduce_scatter(leaf, op, axis_name=axis_name), leaf.shape, axis_name)

    return jax.tree.map(shard, weights)


def gather_weights(shards: Any) -> Any:
    """The whole weights on every replica, from what `ipu.shard_weights` returned.

    Args:
        shards: pytree with `ipu.WeightShard`; other leaves stay as they are.
    Raises:
        ReplicationError: no axis is mapped, or a part is not that of one replica.

    Example:
        >>> there_and_back = lambda w: ipu.gather_weights(ipu.shard_weights(w))
        >>> print(ipu.pmap(there_and_back, in_axes=None, out_axes=None)(jnp.arange(3.0)))
        [0. 1. 2.]
    """

    def gather(leaf: Any) -> Any:
        if not is_shard(leaf):
            return leaf
        partition = partition_of("ipu.gather_weights", leaf)
        checked = resolve("ipu.gather_weights", partition.axis_name).checks_variance
        return partition.gathered(leaf.part, "invarying" if checked else "varying")

    return jax.tree.map(gather, shards, is_leaf=is_shard)
