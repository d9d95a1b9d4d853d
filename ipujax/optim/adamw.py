"""AdamW: Adam with the weight decay outside of the moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from ipujax.api.arguments import flag
from ipujax.optim.adam import AdamState, Family, adam_terms
from ipujax.optim.hyperparameters import Hyperparameter, Values

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.adamw"


def adamw(
    learning_rate: Hyperparameter = 1e-3,
    b1: Hyperparameter = 0.9,
    b2: Hyperparameter = 0.999,
    eps: Hyperparameter = 1e-8,
    weight_decay: Hyperparameter = 0.01,
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
    """Adam with decoupled weight decay.

    With m and v of `ipu.optim.adam`, from gradients without weight decay:

        update = -learning_rate * (m / (sqrt(v) + eps) + weight_decay * w)

    Args:
        learning_rate, b1, b2, eps, weight_decay, loss_scaling, bias_correction, max_grad_norm,
            scaled_optimizer_state, first_moment_dtype, second_moment_dtype, accumulator_dtype,
            num_micro_batches: as for `ipu.optim.adam`.
    Returns:
        An optax transformation; updates have the dtypes of the parameters.
    Raises:
        ConfigError: as `ipu.optim.adam`.

    Source: Loshchilov and Hutter, 2019 (arXiv 1711.05101); `poptorch.optim.AdamW`.

    Example:
        >>> tx = ipu.optim.adamw(0.1, weight_decay=0.5)
        >>> params = jnp.array([2.0, 4.0])
        >>> print(tx.update(jnp.ones(2), tx.init(params), params)[0])
        [-0.2 -0.3]
    """
    bias_correction = flag(WHERE, "bias_correction", bias_correction)

    def rule(grads: Any, state: AdamState, params: Any, h: Values) -> tuple[Any, AdamState]:
        terms, new = adam_terms(grads, state, h, bias_correction)

        def one(x: jax.Array, param: jax.Array) -> jax.Array:
            return -h["learning_rate"] * (x + h["weight_decay"] * param.astype(x.dtype))

        return jax.tree.map(one, terms, params), new

    family = Family(
        *(learning_rate, b1, b2, eps, weight_decay, loss_scaling, max_grad_norm),
        scaled_optimizer_state,
        *(first_moment_dtype, second_moment_dtype, accumulator_dtype, num_micro_batches),
    )
    return family.optimizer(WHERE, rule, needs="weight decay")
