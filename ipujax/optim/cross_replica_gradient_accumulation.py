"""Gradient accumulation on each replica, and one reduction over replicas for each update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipujax.api.replicas import AxisName
from ipujax.optim.cross_replica import cross_replica
from ipujax.optim.gradient_accumulation import AccumulatorDtype, gradient_accumulation

if TYPE_CHECKING:
    import optax


def cross_replica_gradient_accumulation(
    tx: optax.GradientTransformation,
    num_micro_batches: int,
    dtype: AccumulatorDtype = None,
    reduction: str = "mean",
    replica_group_size: int | None = None,
    *,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """`gradient_accumulation` around `cross_replica`: replicas talk once for each update.

    Args:
        tx: any optax transformation.
        num_micro_batches: calls of `update` on each replica for one update of `tx`.
        dtype: of the accumulators, see `gradient_accumulation`.
        reduction: "mean" or "sum", over micro-batches and replicas alike.
        replica_group_size: reduce within groups of so many consecutive replicas; None: all.
        axis_name: the mapped axis; where left out that of the replicas around.
    Raises:
        ConfigError, ReplicationError: as the two that it is made of.

    Example:
        tx = ipu.optim.cross_replica_gradient_accumulation(optax.adam(1e-3), 8)
    """
    reduced = cross_replica(tx, reduction, replica_group_size, axis_name=axis_name)
    return gradient_accumulation(reduced, num_micro_batches, dtype, reduction)
