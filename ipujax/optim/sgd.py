"""Stochastic gradient descent with momentum, with separate or combined accumulation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ipujax.api.arguments import check_dtype, flag
from ipujax.api.replicate.replicas import AxisName
from ipujax.errors import ConfigError
from ipujax.optim.gradient_accumulation import check_num_micro_batches
from ipujax.optim.hyperparameters import Declared, Hyperparameter, Hyperparameters, Values
from ipujax.optim.moments import (
    accumulating,
    in_dtype_of,
    is_number,
    kept,
    needs_params,
    times,
    unscaled,
    with_decay,
    zeros,
)
from ipujax.optim.sgd_combined import combined_sgd, gradient_share
from ipujax.optim.wrap import on_arrays

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.sgd"


class SgdState(NamedTuple):
    """State of `sgd` with separate accumulation."""

    count: jax.Array  # type: ignore[assignment]  # int32 []: updates so far
    velocity: Any  # pytree like the parameters, in `velocity_dtype`; None without momentum
    hyperparameters: Hyperparameters


def sgd(
    learning_rate: Hyperparameter,
    momentum: Hyperparameter = 0.0,
    dampening: Hyperparameter = 0.0,
    weight_decay: Hyperparameter = 0.0,
    nesterov: bool = False,
    *,
    loss_scaling: Hyperparameter = 1.0,
    velocity_scaling: Hyperparameter = 1.0,
    combined_accumulation: bool = False,
    velocity_dtype: Any = None,
    accumulator_dtype: Any = None,
    num_micro_batches: int = 1,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """Stochastic gradient descent, with the weight decay in the gradient.

        g = gradient / loss_scaling + weight_decay * w
        v = momentum * v + (1 - dampening) * velocity_scaling * g
        d = velocity_scaling * g + momentum * v if nesterov, else v
        update = -learning_rate / velocity_scaling * d

    As in PyTorch, the first velocity is the whole gradient whatever the dampening, and without
    momentum there is no velocity.

    Args:
        learning_rate, weight_decay, loss_scaling: as for `ipu.optim.adam`.
        momentum, dampening: of the velocity v.
        nesterov: whether the update looks one step ahead; needs momentum and no dampening.
        velocity_scaling: factor of the stored velocity, so that it neither underflows nor
            overflows `velocity_dtype`.
        combined_accumulation: whether the velocity is also the accumulator of the gradients, which
            saves an accumulator. Part of an update is then computed with the hyperparameters of the
            previous update. Reduce the gradients of every micro-batch over the replicas, or pass
            `axis_name`.
        velocity_dtype: dtype of v; None: float32, or the parameter's if it is wider.
        accumulator_dtype, num_micro_batches: as for `ipu.optim.adam`; with combined accumulation
            only Nesterov's update has accumulators.
        axis_name: for combined accumulation only: the axis of replicas, over which the velocities
            are averaged at each update, in one collective for all micro-batches; each replica has
            its own gradients, and its own state between updates.
    Returns:
        An optax transformation; updates have the dtypes of the parameters.
    Raises:
        ConfigError: as `ipu.optim.adam`; Nesterov's momentum without momentum or with dampening; an
            axis without combined accumulation.
        ReplicationError: at `update`: axis_name is not mapped.

    Source: `torch.optim.SGD`; PopART's `SGD` with `SGDAccumulatorAndMomentum`.

    Example:
        >>> tx = ipu.optim.sgd(0.5, momentum=0.5)
        >>> state = tx.init(jnp.zeros(2))
        >>> for _ in range(2):
        ...     updates, state = tx.update(jnp.array([1.0, 2.0]), state)
        >>> print(updates)
        [-0.75 -1.5 ]
    """
    num_micro_batches = check_num_micro_batches(WHERE, num_micro_batches)
    check_dtype(WHERE, "velocity_dtype", velocity_dtype)
    check_dtype(WHERE, "accumulator_dtype", accumulator_dtype)
    declared = Declared(
        WHERE,
        learning_rate=learning_rate,
        momentum=momentum,
        dampening=dampening,
        weight_decay=weight_decay,
        loss_scaling=loss_scaling,
        velocity_scaling=velocity_scaling,
    )
    nesterov = flag(WHERE, "nesterov", nesterov)
    if nesterov:
        _check_nesterov(declared)
    if flag(WHERE, "combined_accumulation", combined_accumulation):
        dtypes = (velocity_dtype, accumulator_dtype)
        tx = combined_sgd(WHERE, declared, nesterov, dtypes, num_micro_batches, axis_name)
        return on_arrays(WHERE, tx)
    if axis_name is not None:
        raise ConfigError(
            f"[{WHERE}] needs combined_accumulation=True for an axis_name; got axis_name="
            f"{axis_name!r} alone. Wrap the optimizer in ipu.optim.cross_replica, or in "
            "ipu.optim.cross_replica_gradient_accumulation."
        )

    def make() -> optax.GradientTransformation:
        return _separate_sgd(declared, nesterov, velocity_dtype)

    return accumulating(WHERE, make, num_micro_batches, accumulator_dtype)


def _check_nesterov(declared: Declared) -> None:
    if declared.is_constant("momentum", 0.0) or not declared.is_constant("dampening", 0.0):
        raise ConfigError(
            f"[{WHERE}] needs momentum above 0 and dampening = 0 for nesterov=True; got momentum = "
            f"{declared.given['momentum']} and dampening = {declared.given['dampening']}. "
            "Change these, or pass nesterov=False."
        )


def _separate_sgd(
    declared: Declared, nesterov: bool, velocity_dtype: Any
) -> optax.GradientTransformation:
    import optax

    has_velocity = not declared.is_constant("momentum", 0.0)

    def init(params: Any) -> SgdState:
        velocity = zeros(params, velocity_dtype) if has_velocity else None
        return SgdState(jnp.zeros((), jnp.int32), velocity, declared.initial())

    def update(grads: Any, state: SgdState, params: Any = None, **_: Any) -> tuple[Any, SgdState]:
        h = declared.values(state.hyperparameters, state.count)
        if not declared.is_constant("weight_decay", 0.0):
            needs_params(WHERE, params, "weight decay")
        plain = with_decay(unscaled(grads, h), params, h["weight_decay"])
        velocity, rate = None, h["learning_rate"]
        if has_velocity:
            velocity, plain = _directions(plain, state, h, nesterov)
            rate = rate if is_number(h["velocity_scaling"], 1.0) else rate / h["velocity_scaling"]
        updates = in_dtype_of(jax.tree.map(lambda d: -rate * d, plain), grads, params)
        new = SgdState(state.count + 1, velocity, state.hyperparameters)
        return kept(h.valid, updates, new, state)

    return optax.GradientTransformationExtraArgs(init, update)


def _directions(grads: Any, state: SgdState, h: Values, nesterov: bool) -> tuple[Any, Any]:
    """The new velocity, and what is subtracted, times the velocity scaling."""
    share = gradient_share(h, state.count) * h["velocity_scaling"]

    def one(v: jax.Array, g: jax.Array) -> jax.Array:
        return (h["momentum"] * v.astype(g.dtype) + times(share, g)).astype(v.dtype)

    def ahead(v: jax.Array, g: jax.Array) -> jax.Array:
        v = v.astype(g.dtype)
        return times(h["velocity_scaling"], g) + h["momentum"] * v if nesterov else v

    velocity = jax.tree.map(one, state.velocity, grads)
    return velocity, jax.tree.map(ahead, velocity, grads)
