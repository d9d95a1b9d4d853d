"""AdaMax: Adam with the largest of the decayed gradients as second moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import flag
from ipujax.optim.adam import AdamState, Family, correction
from ipujax.optim.hyperparameters import Hyperparameter, Values
from ipujax.optim.moments import averaged

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
    max_grad_norm: Hyperparameter | None = None,
    scaled_optimizer_state: bool = False,
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
        learning_rate, b1, b2, eps, weight_decay, loss_scaling, bias_correction, max_grad_norm,
            scaled_optimizer_state, first_moment_dtype, second_moment_dtype, accumulator_dtype,
            num_micro_batches: as for `ipu.optim.adam`; the second moment needs no bias
            correction, and scales with the gradients, not with their squares.
    Returns:
        An optax transformation; updates have the dtypes of the parameters. Where v is zero, which
        is only possible with eps = 0, the update is zero.
    Raises:
        ConfigError: as `ipu.optim.adam`.

    Source: Kingma and Ba, 2015 (arXiv 1412.6980), section 7.1; PopART's `AdamMode::AdaMax`.

    Example:
        >>> tx = ipu.optim.adamax(0.1)
        >>> updates, state = tx.update(jnp.array([2.0, -4.0]), tx.init(jnp.ones(2)))
        >>> print(updates, state.nu)
        [-0.1  0.1] [2. 4.]
    """
    bias_correction = flag(WHERE, "bias_correction", bias_correction)

    def rule(grads: Any, state: AdamState, params: Any, h: Values) -> tuple[Any, AdamState]:
        count = state.count + 1
        mu = averaged(state.mu, grads, h["b1"])

        def largest(v: jax.Array, g: jax.Array) -> jax.Array:
            return jnp.maximum(h["b2"] * v.astype(g.dtype), jnp.abs(g) + h["eps"]).astype(v.dtype)

        def one(m: jax.Array, v: jax.Array, g: jax.Array) -> jax.Array:
            m, v = m.astype(g.dtype), v.astype(g.dtype)
            if bias_correction:
                m = m / correction(h["b1"], count, g.dtype)
            return jnp.where(v == 0, 0, -h["learning_rate"] * m / jnp.where(v == 0, 1, v))

        nu = jax.tree.map(largest, state.nu, grads)
        updates = jax.tree.map(one, mu, nu, grads)
        return updates, state._replace(count=count, mu=mu, nu=nu)

    family = Family(
        *(learning_rate, b1, b2, eps, weight_decay, loss_scaling, max_grad_norm),
        scaled_optimizer_state,
        *(first_moment_dtype, second_moment_dtype, accumulator_dtype, num_micro_batches),
    )
    return family.optimizer(WHERE, rule, l2=True, second_power=1)
