"""Adds up the gradients of several micro-batches, and updates once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from ipujax import jax_compat
from ipujax.errors import ConfigError
from ipujax.optim.wrap import around, check_choice

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.gradient_accumulation"
REDUCTIONS = ("mean", "sum", "running_mean")
#: None: each parameter's own; a dtype for all; or parameter -> dtype.
AccumulatorDtype: TypeAlias = Any


class GradientAccumulationState(NamedTuple):
    """State between micro-batches."""

    micro_step: jax.Array  # int32 []: micro-batches seen since the last update
    accumulated: Any  # pytree of the parameters, in the accumulator's dtype
    inner: Any  # the optimizer's own state


def gradient_accumulation(
    tx: optax.GradientTransformation,
    num_micro_batches: int,
    dtype: AccumulatorDtype = None,
    reduction: str = "mean",
) -> optax.GradientTransformationExtraArgs:
    """The same optimizer, which acts on every `num_micro_batches`-th call only.

    Other calls give updates of zero.

    Args:
        tx: any optax transformation.
        num_micro_batches: calls of `update` for one update of `tx`; at least 1.
        dtype: of the accumulators: None for each parameter's own, a dtype, or a function of the
            parameter that returns one.
        reduction: what `tx` sees: "mean" or "sum" of the micro-batches' gradients.
            "running_mean" is the mean, kept as one at every step, so that it never grows large.
    Raises:
        ConfigError: no optax transformation, less than one micro-batch, an unknown reduction.

    Example:
        tx = ipu.optim.gradient_accumulation(optax.adam(1e-3), 8, dtype=jnp.float32)
    """
    check_choice(WHERE, "reduction", reduction, REDUCTIONS)
    is_number = isinstance(num_micro_batches, int) and not isinstance(num_micro_batches, bool)
    if not is_number or num_micro_batches < 1:
        raise ConfigError(
            f"[{WHERE}] needs num_micro_batches of at least 1; got {num_micro_batches!r}. "
            "Pass the number of gradients that one update is made of."
        )
    dtype_of = _dtype_function(dtype)

    def build(inner: optax.GradientTransformationExtraArgs) -> tuple[Any, Any]:
        def init(params: Any) -> GradientAccumulationState:
            zeros = jax.tree.map(lambda p: jnp.zeros_like(p, dtype=dtype_of(p)), params)
            return GradientAccumulationState(jnp.zeros((), jnp.int32), zeros, inner.init(params))

        def update(
            grads: Any, state: GradientAccumulationState, params: Any = None, **extra: Any
        ) -> tuple[Any, GradientAccumulationState]:
            accumulated = _accumulate(state, grads, reduction)

            def act() -> tuple[Any, Any, Any]:
                scale = num_micro_batches if reduction == "mean" else 1
                whole = jax.tree.map(lambda a, g: (a / scale).astype(g.dtype), accumulated, grads)
                updates, new = inner.update(whole, state.inner, params, **extra)
                return updates, jax.tree.map(_zeros, accumulated), new

            def wait() -> tuple[Any, Any, Any]:
                updates = jax.tree.map(_zeros, jax.eval_shape(act)[0])
                return updates, accumulated, state.inner

            last = state.micro_step + 1 >= num_micro_batches
            updates, accumulated, new = lax.cond(last, act, wait)
            step = jnp.where(last, 0, state.micro_step + 1)
            return updates, GradientAccumulationState(step, accumulated, new)

        return init, update

    return around(WHERE, tx, build)


def _dtype_function(dtype: AccumulatorDtype) -> Callable[[Any], Any]:
    if dtype is None:
        return lambda param: jnp.result_type(param)
    if callable(dtype) and not isinstance(dtype, type):
        return lambda param: jnp.dtype(dtype(param))
    return lambda param: jnp.dtype(dtype)


def _accumulate(state: GradientAccumulationState, grads: Any, reduction: str) -> Any:
    def add(total: jax.Array, grad: jax.Array) -> jax.Array:
        grad = grad.astype(total.dtype)
        if reduction != "running_mean":
            return total + grad
        return total + (grad - total) / (state.micro_step + 1).astype(total.dtype)

    return jax.tree.map(add, state.accumulated, grads)


def _zeros(like: Any) -> jax.Array:
    """Zeros that vary over the axes that `like` varies over, as branches of a `cond` must."""
    axes = tuple(jax_compat.varying_axes(like))
    zeros = jnp.zeros(like.shape, like.dtype)
    return lax.pcast(zeros, axes, to="varying") if axes else zeros
