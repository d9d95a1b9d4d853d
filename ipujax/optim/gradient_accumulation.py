"""Gradient accumulation: one update for several micro-batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import LARGEST_INT32, check_dtype, whole_number
from ipujax.errors import ConfigError, check_choice
from ipujax.optim.wrap import extended, on_arrays
from ipujax.types import Accumulation

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.gradient_accumulation"
REDUCTIONS = ("mean", "sum", "running_mean")
#: None: the dtype of each parameter; a dtype for all; or a function, parameter -> dtype.
AccumulatorDtype: TypeAlias = Any


class GradientAccumulationState(NamedTuple):
    """State between micro-batches."""

    micro_step: jax.Array  # int32 []: micro-batches seen since the last update
    accumulated: Any  # pytree like the parameters, in the accumulators' dtype
    inner: Any  # the optimizer's own state


def gradient_accumulation(
    tx: optax.GradientTransformation,
    num_micro_batches: int,
    dtype: AccumulatorDtype = None,
    reduction: Accumulation = "mean",
) -> optax.GradientTransformationExtraArgs:
    """Makes an optimizer act on every `num_micro_batches`-th call only.

    The other calls accumulate the gradients and return updates of zero.

    Args:
        tx: any optax transformation.
        num_micro_batches: calls of `update` for one update of `tx`; at least 1.
        dtype: dtype of the accumulators: None for that of each parameter, a dtype, or a function
            of the parameter that returns one. `tx` gets gradients in this dtype, and makes its
            state and its updates from them.
        reduction: "mean" or "sum" of the micro-batches' gradients, which `tx` gets. "running_mean"
            is a mean that is updated at every step, so that the accumulator stays small.
    Raises:
        ConfigError: `tx` is not an optax transformation, there is less than one micro-batch, or the
            reduction is unknown.

    Example:
        >>> tx = ipu.optim.gradient_accumulation(optax.sgd(1.0), 2, dtype=jnp.float32)
        >>> state = tx.init(jnp.zeros(2))
        >>> for gradient in (jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])):
        ...     updates, state = tx.update(gradient, state)
        >>> print(updates)
        [-2. -3.]
    """
    check_choice(WHERE, "reduction", reduction, REDUCTIONS, ConfigError)
    num_micro_batches = check_num_micro_batches(WHERE, num_micro_batches)
    dtype_of = _dtype_function(dtype)
    inner = extended(WHERE, tx)

    def init(params: Any) -> GradientAccumulationState:
        zeros = jax.tree.map(lambda p: jnp.zeros_like(p, dtype=dtype_of(p)), params)
        # As wide as the gradients that `tx` gets: its state keeps its dtypes from update to update.
        seen = jax.tree.map(lambda p: p.astype(dtype_of(p)), params)
        return GradientAccumulationState(jnp.zeros((), jnp.int32), zeros, inner.init(seen))

    def update(
        grads: Any, state: GradientAccumulationState, params: Any = None, **extra: Any
    ) -> tuple[Any, GradientAccumulationState]:
        accumulated = _accumulate(state, grads, reduction)

        def act() -> tuple[Any, Any, Any]:
            scale = num_micro_batches if reduction == "mean" else 1
            whole = jax.tree.map(lambda a: (a / scale).astype(a.dtype), accumulated)
            updates, new = inner.update(whole, state.inner, params, **extra)
            return updates, jax.tree.map(jax_compat.zeros_of, accumulated), new

        def wait() -> tuple[Any, Any, Any]:
            updates = jax.tree.map(jax_compat.zeros_of, jax.eval_shape(act)[0])
            return updates, accumulated, state.inner

        last = state.micro_step + 1 >= num_micro_batches
        updates, accumulated, new = lax.cond(last, act, wait)
        step = jnp.where(last, 0, state.micro_step + 1)
        return updates, GradientAccumulationState(step, accumulated, new)

    return on_arrays(WHERE, inner._replace(init=init, update=update))


def check_num_micro_batches(where: str, num_micro_batches: Any) -> int:
    """Checks the number of micro-batches.

    Raises:
        ConfigError: it is not an integer from 1 to 2**31 - 1.
    """
    number = whole_number(num_micro_batches)
    if number is None or not 1 <= number <= LARGEST_INT32:
        bound = "at most 2**31 - 1" if number is not None and number > 1 else "at least 1"
        raise ConfigError(
            f"[{where}] needs num_micro_batches of {bound}; got {num_micro_batches!r}. "
            "Pass the number of micro-batches for each update."
        )
    return number


def _dtype_function(dtype: AccumulatorDtype) -> Callable[[Any], Any]:
    if dtype is None:
        return lambda param: jnp.result_type(param)
    if callable(dtype) and not _is_dtype(dtype):

        def dtype_of(param: Any) -> Any:
            made = dtype(param)
            check_dtype(WHERE, "what the function dtype returns", made, jnp.number)
            return jnp.result_type(param) if made is None else jnp.dtype(made)

        return dtype_of
    check_dtype(WHERE, "dtype", dtype, jnp.inexact)
    return lambda param: jnp.dtype(dtype)


def _is_dtype(value: Any) -> bool:
    """Whether it names a dtype; classes and JAX's scalar types do, although they are callable."""
    try:
        return jnp.dtype(value) is not None
    except TypeError:
        return False


def _accumulate(state: GradientAccumulationState, grads: Any, reduction: str) -> Any:
    def add(total: jax.Array, grad: jax.Array) -> jax.Array:
        grad = grad.astype(total.dtype)
        if reduction != "running_mean":
            return total + grad
        return total + (grad - total) / (state.micro_step + 1).astype(total.dtype)

    return jax.tree.map(add, state.accumulated, grads)
