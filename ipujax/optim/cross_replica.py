"""Data-parallel optimizers: gradients are reduced over the replicas first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from ipujax.api.replicate.collectives import cross_replica_sum
from ipujax.api.replicate.replicas import AxisName, resolve
from ipujax.errors import ConfigError, check_choice
from ipujax.optim.wrap import check_not_summed, extended, on_arrays
from ipujax.types import Reduction

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.cross_replica"


def cross_replica(
    tx: optax.GradientTransformation,
    reduction: Reduction = "mean",
    replica_group_size: int | None = None,
    *,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """Makes an optimizer data-parallel: it reduces the gradients over the replicas first.

    Args:
        tx: any optax transformation.
        reduction: "mean" or "sum" of the replicas' gradients.
        replica_group_size: reduce within groups of this many consecutive replicas; None: all.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        A transformation whose `update` must run on the replicas; `init` may run anywhere.
    Raises:
        ConfigError: `tx` is not an optax transformation, or the reduction is unknown.
        ReplicationError: at `update`: no axis is mapped, or the group size does not divide the
            replicas.

    Example:
        >>> tx = ipu.optim.cross_replica(optax.sgd(1.0))
        >>> updates = ipu.pmap(lambda grad: tx.update(grad, tx.init(grad))[0])(jnp.arange(4.0))
        >>> print(updates)
        [-1.5 -1.5 -1.5 -1.5]
    """
    check_choice(WHERE, "reduction", reduction, ("mean", "sum"), ConfigError)
    inner = extended(WHERE, tx)

    def update(grads: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        replicas = resolve(WHERE, axis_name, replica_group_size)
        check_not_summed(WHERE, grads, replicas.axis_name)
        total = cross_replica_sum(grads, replica_group_size, axis_name=replicas.axis_name)
        if reduction == "mean":
            total = jax.tree.map(lambda leaf: leaf / replicas.size, total)
        return inner.update(total, state, params, **extra)

    return on_arrays(WHERE, inner._replace(update=update))
