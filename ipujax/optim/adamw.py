"""AdamW: Adam with the weight decay outside of the moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from ipujax.optim.adam import AdamState, adam_init, adam_terms
from ipujax.optim.hyperparameters import Declared, Hyperparameter
from ipujax.optim.moments import (
    accumulating,
    check_dtype,
    in_dtype_of,
    kept,
    needs_params,
    unscaled,
)

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
    first_moment_dtype: Any = None,
    second_moment_dtype: Any = None,
    accumulator_dtype: Any = None,
    num_micro_batches: int = 1,
) -> optax.GradientTransformationExtraArgs:
    """Adam with decoupled weight decay.

    With m and v of `ipu.optim.adam`, from gradients without weight decay:

        update = -learning_rate * (m / (sqrt(v) + eps) + weight_decay * w)

    Args:
        learning_rate, b1, b2, eps, weight_decay, loss_scaling, bias_correction,
            first_moment_dtype, second_moment_dtype, accumulator_dtype, num_micro_batches: as of
            `ipu.optim.adam`.
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
        needs_params(WHERE, params, "weight decay")
        h = declared.values(state.hyperparameters, state.count)
        terms, new = adam_terms(unscaled(grads, params, h), state, h, bias_correction)

        def one(x: jax.Array, param: jax.Array) -> jax.Array:
            return -h["learning_rate"] * (x + h["weight_decay"] * param.astype(x.dtype))

        updates = jax.tree.map(one, terms, params)
        return kept(h.valid, in_dtype_of(updates, grads, params), new, state)

    def make() -> optax.GradientTransformation:
        import optax

        init = adam_init(declared, first_moment_dtype, second_moment_dtype)
        return optax.GradientTransformationExtraArgs(init, update)

    return accumulating(make, num_micro_batches, accumulator_dtype)
