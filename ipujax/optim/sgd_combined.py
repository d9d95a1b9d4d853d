"""SGD whose velocity is also the accumulator of the gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ipujax import jax_compat
from ipujax.api.replicate.collectives import cross_replica_mean
from ipujax.api.replicate.replicas import AxisName, resolve_axis
from ipujax.optim.hyperparameters import Declared, Hyperparameters, Values
from ipujax.optim.moments import (
    compute_dtype,
    in_dtype_of,
    is_number,
    kept,
    needs_params,
    unscaled,
    zeros,
)

if TYPE_CHECKING:
    import optax


class CombinedSgdState(NamedTuple):
    """State of `sgd` with combined accumulation."""

    count: jax.Array  # type: ignore[assignment]  # int32 []: updates so far
    micro_step: jax.Array  # int32 []: micro-batches seen since the last update
    velocity: Any  # pytree like the parameters: the next velocity as far as it is known
    accumulated: Any  # pytree like the parameters: sums of gradients, for Nesterov's update only
    hyperparameters: Hyperparameters


def combined_sgd(
    where: str,
    declared: Declared,
    nesterov: bool,
    dtypes: tuple[Any, Any],
    num_micro_batches: int,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """`ipu.optim.sgd` with combined accumulation.

    Each micro-batch adds its gradient to the velocity. After the update, the velocity becomes
    momentum * v + (1 - dampening) * weight_decay * w, to which the next gradients are added.

    Args:
        dtypes: of the velocity, and of the accumulators of Nesterov's update.
        axis_name: of the replicas whose velocities are averaged before each update: the part that
            they share stays as it is, the gradients that were added become their mean.
    """
    import optax

    has_decay = not declared.is_constant("weight_decay", 0.0)

    def init(params: Any) -> CombinedSgdState:
        first = declared.initial()
        h = declared.values(first, jnp.int32(0))
        begin = zeros(params, dtypes[0])
        if has_decay:
            begin = jax.tree.map(lambda v, p: _decayed(v, p, h, 1.0), begin, params)
        sums = zeros(params, dtypes[1]) if nesterov else None
        return CombinedSgdState(jnp.int32(0), jnp.int32(0), begin, sums, first)

    def update(
        grads: Any, state: CombinedSgdState, params: Any = None, **_: Any
    ) -> tuple[Any, CombinedSgdState]:
        h = declared.values(state.hyperparameters, state.count)
        if has_decay:
            needs_params(where, params, "weight decay")
        added = _accumulate(grads, state, h, num_micro_batches)

        def act() -> tuple[Any, CombinedSgdState]:
            whole = added if axis_name is None else _over_replicas(where, added, axis_name)
            return _act(whole, grads, params, h, has_decay)

        def wait() -> tuple[Any, CombinedSgdState]:
            updates = jax.tree.map(jax_compat.zeros_of, jax.eval_shape(act)[0])
            return updates, added._replace(micro_step=added.micro_step + 1)

        if num_micro_batches == 1:
            updates, new = act()
        else:
            updates, new = lax.cond(state.micro_step + 1 >= num_micro_batches, act, wait)
        return kept(h.valid, updates, new, state)

    return optax.GradientTransformationExtraArgs(init, update)


def gradient_share(h: Values, count: jax.Array) -> Any:
    """1 - dampening; 1 for the first update."""
    if is_number(h["dampening"], 0.0):
        return 1.0
    return jnp.where(count == 0, 1.0, 1 - h["dampening"]).astype(jnp.float32)


def _accumulate(
    grads: Any, state: CombinedSgdState, h: Values, num_micro_batches: int
) -> CombinedSgdState:
    """The state with the gradients of one more micro-batch."""
    plain = jax.tree.map(lambda g: g / num_micro_batches, unscaled(grads, h))
    share = gradient_share(h, state.count) * h["velocity_scaling"]

    def add(total: jax.Array, g: jax.Array, factor: Any) -> jax.Array:
        return (total.astype(g.dtype) + factor * g).astype(total.dtype)

    velocity = jax.tree.map(lambda v, g: add(v, g, share), state.velocity, plain)
    sums = state.accumulated
    if sums is not None:
        sums = jax.tree.map(lambda a, g: add(a, g, 1.0), sums, plain)
    return state._replace(velocity=velocity, accumulated=sums)


def _over_replicas(where: str, state: CombinedSgdState, axis_name: AxisName) -> CombinedSgdState:
    """The state with the replicas' means of what was accumulated."""
    parts = (state.velocity, state.accumulated)
    means = cross_replica_mean(parts, axis_name=resolve_axis(where, axis_name))
    velocity, sums = jax.tree.map(
        lambda mean, part: jax_compat.varying_over(mean, jax_compat.varying_axes(part)),
        means,
        parts,
    )
    return state._replace(velocity=velocity, accumulated=sums)


def _act(
    state: CombinedSgdState, grads: Any, params: Any, h: Values, has_decay: bool
) -> tuple[Any, CombinedSgdState]:
    """Updates from the accumulated velocity, and the state that the next one starts from."""
    import optax

    scaling = h["velocity_scaling"]

    def wide(v: jax.Array) -> jax.Array:
        return v.astype(compute_dtype(v))

    def ahead(a: jax.Array, v: jax.Array, p: Any = None) -> jax.Array:
        g = wide(a) + (h["weight_decay"] * p.astype(compute_dtype(p)) if has_decay else 0)
        return scaling * g + h["momentum"] * wide(v)

    directions = jax.tree.map(wide, state.velocity)
    sums = None
    if state.accumulated is not None:
        operands = (state.accumulated, state.velocity) + ((params,) if has_decay else ())
        directions = jax.tree.map(ahead, *operands)
        sums = jax.tree.map(jax_compat.zeros_of, state.accumulated)
    rate = h["learning_rate"] / scaling
    updates = in_dtype_of(jax.tree.map(lambda d: -rate * d, directions), grads, params)
    velocity = jax.tree.map(lambda v: (h["momentum"] * wide(v)).astype(v.dtype), state.velocity)
    if has_decay:
        share = gradient_share(h, state.count + 1)
        weights = optax.apply_updates(params, updates)
        velocity = jax.tree.map(lambda v, p: _decayed(v, p, h, share), velocity, weights)
    step = jax_compat.zeros_of(state.micro_step)
    return updates, CombinedSgdState(state.count + 1, step, velocity, sums, state.hyperparameters)


def _decayed(v: jax.Array, param: jax.Array, h: Values, share: Any) -> jax.Array:
    """A velocity with the weight decay of the next update."""
    dtype = compute_dtype(param)
    decay = share * h["weight_decay"] * h["velocity_scaling"] * param.astype(dtype)
    return (v.astype(dtype) + decay).astype(v.dtype)
