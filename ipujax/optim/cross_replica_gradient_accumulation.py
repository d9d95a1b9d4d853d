"""Gradient accumulation with one reduction over the replicas for each update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipujax.api.replicate.replicas import AxisName
from ipujax.optim.cross_replica import cross_replica
from ipujax.optim.gradient_accumulation import AccumulatorDtype, gradient_accumulation
from ipujax.types import Reduction

if TYPE_CHECKING:
    import optax


def cross_replica_gradient_accumulation(
    tx: optax.GradientTransformation,
    num_micro_batches: int,
    dtype: AccumulatorDtype = None,
    reduction: Reduction = "mean",
    replica_group_size: int | None = None,
    *,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """`gradient_accumulation` of `cross_replica`: replicas communicate once for each update.

    Args:
        tx: any optax transformation.
        num_micro_batches: calls of `update` on each replica for one update of `tx`.
        dtype: dtype of the accumulators, see `gradient_accumulation`.
        reduction: "mean" or "sum", over both micro-batches and replicas.
        replica_group_size: reduce within groups of this many consecutive replicas; None: all.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Raises:
        ConfigError, ReplicationError: as `cross_replica` and `gradient_accumulation`.

    Example:
        >>> tx = ipu.optim.cross_replica_gradient_accumulation(optax.sgd(1.0), 2)
        >>> def two_steps(grads):
        ...     first, state = tx.update(grads[0], tx.init(grads[0]))
        ...     return first, tx.update(grads[1], state)[0]
        >>> first, second = ipu.pmap(two_steps)(jnp.arange(4.0).reshape(2, 2))
        >>> print(first, second)
        [0. 0.] [-1.5 -1.5]
    """
    reduced = cross_replica(tx, reduction, replica_group_size, axis_name=axis_name)
    return gradient_accumulation(reduced, num_micro_batches, dtype, reduction)
