"""Replicated tensor sharding: each replica keeps and updates a part of the optimizer state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ipujax.api.replicate.reduce_scatter import own_part, reduce_scatter
from ipujax.api.replicate.replicas import AxisName, Replicas, resolve
from ipujax.api.replicate.weight_shards import Partition
from ipujax.errors import ConfigError, check_choice
from ipujax.optim.shards import sharded
from ipujax.optim.wrap import check_not_summed, extended, on_arrays
from ipujax.types import Operator, Reduction

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.shard_state"


def shard_state(
    tx: optax.GradientTransformation,
    reduction: Reduction = "mean",
    *,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """Shards the state of an optimizer over the replicas (ZeRO, stage 1 and 2).

    Gradients are reduce-scattered; each of the R replicas updates one part of each parameter, which
    is flattened and padded to a multiple of R; the updates are gathered. This sends as much over
    the links as one all-reduce, and the state takes 1 / R of the memory on each replica.

    `tx` must be elementwise, as Adam and SGD are, or know of the parts, as `ipu.optim.lamb` and
    `ipu.optim.loss_scale` do. Others that use whole parameters or their norm (clipping by global
    norm, Adafactor, optax's LAMB) would see one part only.

    Args:
        tx: such an optax transformation.
        reduction: "mean" or "sum" of the replicas' gradients.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        A transformation whose `init` and `update` must both run on the replicas.
    Raises:
        ConfigError: `tx` is not an optax transformation, or the reduction is unknown.
        ReplicationError: at `init` or `update`: no axis is mapped.

    Example:
        >>> tx = ipu.optim.shard_state(optax.adam(1e-3))
        >>> params = {"w": jnp.ones((3, 2))}
        >>> state = ipu.pmap(tx.init, in_axes=None, devices=jax.devices()[:4])(params)
        >>> state[0].mu["w"].shape  # [R, ceil(n / R)]
        (4, 2)
    """
    check_choice(WHERE, "reduction", reduction, ("mean", "sum"), ConfigError)
    op: Operator = "mean" if reduction == "mean" else "add"
    inner = extended(WHERE, tx)

    def init(params: Any) -> Any:
        replicas = resolve(WHERE, axis_name)
        with sharded(replicas):
            return inner.init(jax.tree.map(lambda p: _part(p, replicas), params))

    def update(grads: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        replicas = resolve(WHERE, axis_name)
        check_not_summed(WHERE, grads, replicas.axis_name)
        parts = reduce_scatter(grads, op, axis_name=replicas.axis_name)
        own = None if params is None else jax.tree.map(lambda p: _part(p, replicas), params)
        with sharded(replicas):
            updates, state = inner.update(parts, state, own, **extra)
        to = "invarying" if replicas.checks_variance else "varying"

        def whole(update: jax.Array, like: jax.Array) -> jax.Array:
            return Partition(like.shape, replicas.axis_name).gathered(update, to)

        return jax.tree.map(whole, updates, grads), state

    return on_arrays(WHERE, inner._replace(init=init, update=update))


def _part(x: jax.Array, replicas: Replicas) -> jax.Array:
    """[...] of n elements -> [ceil(n / R)]."""
    return own_part(jnp.pad(jnp.ravel(x), (0, -jnp.size(x) % replicas.size)), replicas)
