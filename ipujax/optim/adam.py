"""Adam, and the terms that AdamW and LAMB share with it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp

from ipujax.optim.hyperparameters import Declared, Hyperparameter, Hyperparameters, Values
from ipujax.optim.moments import (
    accumulating,
    averaged,
    check_dtype,
    in_dtype_of,
    kept,
    needs_params,
    unscaled,
    zeros,
)

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.adam"


class AdamState(NamedTuple):
    """State of `adam`, `adamw`, `adamax` and `lamb`."""

    count: jax.Array  # type: ignore[assignment]  # int32 []: updates so far
    mu: Any  # pytree like the parameters, first moments in `first_moment_dtype`
    nu: Any  # pytree like the parameters, second moments in `second_moment_dtype`
    hyperparameters: Hyperparameters


def adam(
    learning_rate: Hyperparameter = 1e-3,
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
    """Adam, with the weight decay in the gradient (L2 regularization).

        g = gradient / loss_scaling + weight_decay * w
        m = b1 * m + (1 - b1) * g;   v = b2 * v + (1 - b2) * g ** 2
        update = -learning_rate * (m / (1 - b1 ** t)) / (sqrt(v / (1 - b2 ** t)) + eps)

    Args:
        learning_rate, b1, b2, eps, weight_decay: numbers, `ipu.optim.variable`, or functions of the
            number of updates so far.
        loss_scaling: what the loss was multiplied by, see `ipu.optim.scale_loss`; no function.
        bias_correction: whether moments are divided by 1 - b ** t.
        first_moment_dtype, second_moment_dtype: dtypes of m and v; None: float32, or the
            parameter's where it is wider. Updates are computed in float32 or wider.
        accumulator_dtype, num_micro_batches: the mean of the gradients of several calls makes one
            update, see `ipu.optim.gradient_accumulation`.
    Returns:
        An optax transformation; updates have the dtypes of the parameters. An update with a
        variable that is NaN or infinite changes nothing: it is zero, and the state stays.
    Raises:
        ConfigError: a hyperparameter is out of its range, or a dtype is not a floating-point one;
            at `update`: parameters are missing, or the state has other constants.

    Source: Kingma and Ba, 2015 (arXiv 1412.6980); `poptorch.optim.Adam`.

    Example:
        >>> tx = ipu.optim.adam(0.1, b1=0.75, first_moment_dtype=jnp.float16)
        >>> updates, state = tx.update(jnp.array([2.0, -4.0]), tx.init(jnp.ones(2)))
        >>> print(updates, state.mu.dtype)
        [-0.1  0.1] float16
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
        terms, new = adam_terms(
            unscaled(grads, params, h, h["weight_decay"]), state, h, bias_correction
        )
        updates = jax.tree.map(lambda x: -h["learning_rate"] * x, terms)
        return kept(h.valid, in_dtype_of(updates, grads, params), new, state)

    def make() -> optax.GradientTransformation:
        import optax

        init = adam_init(declared, first_moment_dtype, second_moment_dtype)
        return optax.GradientTransformationExtraArgs(init, update)

    return accumulating(make, num_micro_batches, accumulator_dtype)


def adam_init(declared: Declared, first_dtype: Any, second_dtype: Any) -> Any:
    """`init` of an optimizer whose state is an `AdamState`."""

    def init(params: Any) -> AdamState:
        mu, nu = zeros(params, first_dtype), zeros(params, second_dtype)
        return AdamState(jnp.zeros((), jnp.int32), mu, nu, declared.initial())

    return init


def adam_terms(
    grads: Any, state: AdamState, h: Values, bias_correction: bool
) -> tuple[Any, AdamState]:
    """m / (sqrt(v) + eps) in the gradients' dtypes, and the new state."""
    count = state.count + 1
    mu = averaged(state.mu, grads, h["b1"])
    nu = averaged(state.nu, jax.tree.map(jnp.square, grads), h["b2"])

    def term(m: jax.Array, v: jax.Array, grad: jax.Array) -> jax.Array:
        m, v = m.astype(grad.dtype), v.astype(grad.dtype)
        if bias_correction:
            m = m / correction(h["b1"], count, grad.dtype)
            v = v / correction(h["b2"], count, grad.dtype)
        return m / (jnp.sqrt(v) + h["eps"])

    return jax.tree.map(term, mu, nu, grads), AdamState(count, mu, nu, state.hyperparameters)


def correction(decay: Any, count: jax.Array, dtype: Any) -> Any:
    """1 - decay ** count, exact where decay is a constant close to 1."""
    if not isinstance(decay, float):
        return 1 - decay ** count.astype(dtype)
    return -jnp.expm1(count.astype(dtype) * math.log(decay)) if decay else 1.0
