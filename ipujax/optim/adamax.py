"""AdaMax: Adam with the largest of the decayed gradients as second moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ipujax.optim.adam import AdamState, adam_init, correction
from ipujax.optim.hyperparameters import Declared, Hyperparameter
from ipujax.optim.moments import (
    accumulating,
    averaged,
    check_dtype,
    in_dtype_of,
    kept,
    needs_params,
    unscaled,
)

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.adamax"


def adamax(
    learning_rate: Hyperparameter = 2e-3,
    b1: Hyperparameter = 0.9,
    b2: Hyperparameter = 0.999,
    eps: Hyperparameter = 1e-8,
    weight_decay: Hyperparameter = 0.0,
    *,
    loss_scaling: Hyperparameter = 1.0,
    bias_correction: bool = True,
    first_moment_dtype: Any = None,
    second_moment_dtype: Any = None,
    accumulator_dtype: Any = None,
    num_micro_batches: int = 1,
) -> optax.GradientTransformationExtraArgs:
    """AdaMax, with the weight decay in the gradient (L2 regularization).

        g = gradient / loss_scaling + weight_decay * w
        m = b1 * m + (1 - b1) * g;   v = max(b2 * v, abs(g) + eps)
        update = -learning_rate * (m / (1 - b1 ** t)) / v

    Args:
        learning_rate, b1, b2, eps, weight_decay, loss_scaling, bias_correction,
            first_moment_dtype, second_moment_dtype, accumulator_dtype, num_micro_batches: as of
            `ipu.optim.adam`; the second moment needs no bias correction.
    Returns:
        An optax transformation; updates have the dtypes of the parameters. Where v is zero, which
        needs eps = 0, the update is zero.
    Raises:
        ConfigError: as `ipu.optim.adam`.

    Source: Kingma and Ba, 2015 (arXiv 1412.6980), section 7.1; PopART's `AdamMode::AdaMax`.

    Example:
        >>> tx = ipu.optim.adamax(0.1)
        >>> updates, state = tx.update(jnp.array([2.0, -4.0]), tx.init(jnp.ones(2)))
        >>> print(updates, state.nu)
        [-0.1  0.1] [2. 4.]
    """
    check_dtype(WHERE, "first_moment_dtype", first_moment_dtype)
    check_dtype(WHERE, "second_moment_dtype", second_moment_dtype)
    check_dtype(WHERE, "accumulator_dtype", accumulator_dtype)
    declared = Declared(
        WHERE,
        learning_rate=learning_rate,
        b1=b1,
        b2=b2,
        eps=eps,
        weight_decay=weight_decay,
        loss_scaling=loss_scaling,
    )

    def update(grads: Any, state: AdamState, params: Any = None, **_: Any) -> tuple[Any, AdamState]:
        h = declared.values(state.hyperparameters, state.count)
        if not declared.is_constant("weight_decay", 0.0):
            needs_params(WHERE, params, "weight decay")
        plain = unscaled(grads, params, h, h["weight_decay"])
        count = state.count + 1
        mu = averaged(state.mu, plain, h["b1"])

        def largest(v: jax.Array, g: jax.Array) -> jax.Array:
            return jnp.maximum(h["b2"] * v.astype(g.dtype), jnp.abs(g) + h["eps"]).astype(v.dtype)

        def one(m: jax.Array, v: jax.Array, g: jax.Array) -> jax.Array:
            m, v = m.astype(g.dtype), v.astype(g.dtype)
            if bias_correction:
                m = m / correction(h["b1"], count, g.dtype)
            return jnp.where(v == 0, 0, -h["learning_rate"] * m / jnp.where(v == 0, 1, v))

        nu = jax.tree.map(largest, state.nu, plain)
        updates = in_dtype_of(jax.tree.map(one, mu, nu, plain), grads, params)
        return kept(h.valid, updates, AdamState(count, mu, nu, state.hyperparameters), state)

    def make() -> optax.GradientTransformation:
        import optax

        init = adam_init(declared, first_moment_dtype, second_moment_dtype)
        return optax.GradientTransformationExtraArgs(init, update)

    return accumulating(make, num_micro_batches, accumulator_dtype)
