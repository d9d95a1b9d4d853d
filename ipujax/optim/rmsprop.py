"""RMSProp, plain or centred, as PyTorch or as TensorFlow computes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ipujax.api.arguments import check_dtype, flag
from ipujax.optim.hyperparameters import Declared, Hyperparameter, Hyperparameters, Values
from ipujax.optim.moments import (
    accumulating,
    averaged,
    in_dtype_of,
    kept,
    needs_params,
    times,
    unscaled,
    with_decay,
    zeros,
)

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.rmsprop"


class RmspropState(NamedTuple):
    """State of `rmsprop`. Absent moments are None."""

    count: jax.Array  # type: ignore[assignment]  # int32 []: updates so far
    nu: Any  # pytree like the parameters: averages of squared gradients
    mu: Any  # pytree like the parameters: averages of gradients, if centred
    velocity: Any  # pytree like the parameters, if there is momentum
    hyperparameters: Hyperparameters


def rmsprop(
    learning_rate: Hyperparameter = 1e-2,
    decay: Hyperparameter = 0.99,
    eps: Hyperparameter = 1e-8,
    weight_decay: Hyperparameter = 0.0,
    momentum: Hyperparameter = 0.0,
    *,
    centered: bool = False,
    tf_variant: bool = False,
    loss_scaling: Hyperparameter = 1.0,
    first_moment_dtype: Any = None,
    second_moment_dtype: Any = None,
    velocity_dtype: Any = None,
    accumulator_dtype: Any = None,
    num_micro_batches: int = 1,
) -> optax.GradientTransformationExtraArgs:
    """RMSProp, with the weight decay in the gradient (L2 regularization).

        g = gradient / loss_scaling + weight_decay * w
        v = decay * v + (1 - decay) * g ** 2;   m = decay * m + (1 - decay) * g if centered, else 0
        x = g / (sqrt(v - m ** 2) + eps)
        u = momentum * u + x;   update = -learning_rate * u

    Args:
        learning_rate, eps, weight_decay, loss_scaling: as for `ipu.optim.adam`.
        decay: PyTorch's alpha.
        momentum: decay of the velocity u.
        centered: whether the variance of the gradients is used instead of the mean square.
        tf_variant: as in TensorFlow: eps is inside the square root, v starts from 1, and the
            velocity holds updates with their learning rates.
        first_moment_dtype, second_moment_dtype, velocity_dtype: dtypes of m, v and u.
        accumulator_dtype, num_micro_batches: as for `ipu.optim.adam`.
    Returns:
        An optax transformation; updates have the dtypes of the parameters. A variance that rounds
        to below zero counts as zero.
    Raises:
        ConfigError: as `ipu.optim.adam`.

    Source: `poptorch.optim.RMSprop`; PopART's `AdaptiveMode`.

    Example:
        >>> tx = ipu.optim.rmsprop(0.1, decay=0.75)
        >>> print(tx.update(jnp.array([2.0, -4.0]), tx.init(jnp.ones(2)))[0])
        [-0.2  0.2]
    """
    centered = flag(WHERE, "centered", centered)
    tf_variant = flag(WHERE, "tf_variant", tf_variant)
    check_dtype(WHERE, "first_moment_dtype", first_moment_dtype)
    check_dtype(WHERE, "second_moment_dtype", second_moment_dtype)
    check_dtype(WHERE, "velocity_dtype", velocity_dtype)
    check_dtype(WHERE, "accumulator_dtype", accumulator_dtype)
    declared = Declared(
        WHERE, learning_rate=learning_rate, decay=decay, eps=eps, weight_decay=weight_decay,
        momentum=momentum, loss_scaling=loss_scaling,
    )  # fmt: skip
    has_velocity = not declared.is_constant("momentum", 0.0)

    def init(params: Any) -> RmspropState:
        nu = jax.tree.map(lambda v: v + int(tf_variant), zeros(params, second_moment_dtype))
        mu = zeros(params, first_moment_dtype) if centered else None
        velocity = zeros(params, velocity_dtype) if has_velocity else None
        return RmspropState(jnp.zeros((), jnp.int32), nu, mu, velocity, declared.initial())

    def update(
        grads: Any, state: RmspropState, params: Any = None, **_: Any
    ) -> tuple[Any, RmspropState]:
        h = declared.values(state.hyperparameters, state.count)
        if not declared.is_constant("weight_decay", 0.0):
            needs_params(WHERE, params, "weight decay")
        plain = with_decay(unscaled(grads, h), params, h["weight_decay"])
        nu = averaged(state.nu, jax.tree.map(jnp.square, plain), h["decay"])
        mu = averaged(state.mu, plain, h["decay"]) if centered else None
        steps = _terms(plain, nu, mu, h, tf_variant)
        velocity = None
        if has_velocity:
            velocity, steps = _with_momentum(state.velocity, steps, h["momentum"])
        updates = in_dtype_of(_updates(steps, h, tf_variant), grads, params)
        new = RmspropState(state.count + 1, nu, mu, velocity, state.hyperparameters)
        return kept(h.valid, updates, new, state)

    def make() -> optax.GradientTransformation:
        import optax

        return optax.GradientTransformationExtraArgs(init, update)

    return accumulating(WHERE, make, num_micro_batches, accumulator_dtype)


def _terms(grads: Any, nu: Any, mu: Any, h: Values, tf_variant: bool) -> Any:
    """g divided by its size; times the learning rate in TensorFlow's variant."""

    def one(g: jax.Array, v: jax.Array, m: jax.Array | None = None) -> jax.Array:
        v = v.astype(g.dtype)
        if m is not None:
            v = jnp.maximum(v - jnp.square(m.astype(g.dtype)), 0)
        if tf_variant:
            return h["learning_rate"] * g / jnp.sqrt(v + h["eps"])
        return g / (jnp.sqrt(v) + h["eps"])

    return jax.tree.map(one, grads, nu) if mu is None else jax.tree.map(one, grads, nu, mu)


def _updates(steps: Any, h: Values, tf_variant: bool) -> Any:
    rate = 1.0 if tf_variant else h["learning_rate"]
    return jax.tree.map(lambda x: -times(rate, x), steps)


def _with_momentum(velocity: Any, steps: Any, momentum: Any) -> tuple[Any, Any]:
    """The new velocity in its own dtype, and in that of the steps."""
    new = jax.tree.map(
        lambda u, x: (momentum * u.astype(x.dtype) + x).astype(u.dtype), velocity, steps
    )
    return new, jax.tree.map(lambda u, x: u.astype(x.dtype), new, steps)
