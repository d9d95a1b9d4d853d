"""What the optimizers of `ipu.optim` share: dtypes, moments, gradients without the loss scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import whole_number, wide_dtype
from ipujax.api.replicate.replicas import AxisName
from ipujax.errors import ConfigError
from ipujax.optim.gradient_accumulation import gradient_accumulation
from ipujax.optim.hyperparameters import Values
from ipujax.optim.shards import sum_over_shards
from ipujax.optim.wrap import extended, on_arrays

if TYPE_CHECKING:
    import optax


def compute_dtype(x: Any) -> Any:
    """The dtype that updates are computed in: float32 or wider."""
    return wide_dtype(jnp.result_type(x))


def zeros(params: Any, dtype: Any) -> Any:
    """A moment's first value: zeros like the parameters, in its dtype (None: float32 or wider)."""
    return jax.tree.map(
        lambda p: jnp.zeros_like(p, dtype=compute_dtype(p) if dtype is None else dtype), params
    )


def unscaled(grads: Any, h: Values) -> Any:
    """Gradients of the unscaled loss, in `compute_dtype`."""

    def one(grad: Any) -> Any:
        grad = grad.astype(compute_dtype(grad))
        return grad if is_number(h["loss_scaling"], 1.0) else grad / h["loss_scaling"]

    return jax.tree.map(one, grads)


def with_decay(grads: Any, params: Any, decay: Any) -> Any:
    """Gradients plus decay times the parameters."""
    if is_number(decay, 0.0):
        return grads
    return jax.tree.map(lambda g, p: g + decay * p.astype(g.dtype), grads, params)


def clipped(where: str, grads: Any, bound: Any, axis_name: AxisName | None = None) -> Any:
    """Gradients scaled to a global norm of at most `bound`, over the parts that replicas hold."""
    leaves = jax.tree.leaves(grads)
    if bound is None or not leaves:
        return grads
    squares = sum(jnp.sum(jnp.square(x)) for x in leaves)
    norm = jnp.sqrt(sum_over_shards(where, squares, axis_name))
    factor = bound / jnp.maximum(norm, bound)
    return jax.tree.map(lambda x: x * factor.astype(x.dtype), grads)


def is_number(value: Any, number: float) -> bool:
    """Whether a hyperparameter is this constant."""
    return isinstance(value, float) and value == number


def times(factor: Any, x: jax.Array) -> jax.Array:
    """The product, which is x itself for the constant 1."""
    return x if is_number(factor, 1.0) else factor * x


def needs_params(where: str, params: Any, why: str) -> None:
    """Refuses an update without parameters."""
    if params is None:
        raise ConfigError(
            f"[{where}] needs the parameters for {why}; got none. "
            "Call update(grads, state, params)."
        )


def averaged(moment: Any, values: Any, decay: Any) -> Any:
    """decay * moment + (1 - decay) * values, in the dtype of the moment."""
    return jax.tree.map(
        lambda m, x: (decay * m.astype(x.dtype) + (1 - decay) * x).astype(m.dtype), moment, values
    )


def in_dtype_of(updates: Any, grads: Any, params: Any) -> Any:
    """Updates in the dtypes of the parameters, or of the gradients if there are none."""
    like = grads if params is None else params
    return jax.tree.map(lambda u, x: u.astype(jnp.result_type(x)), updates, like)


def kept(keep: jax.Array | None, updates: Any, new: Any, old: Any) -> tuple[Any, Any]:
    """The updates and the new state if `keep` holds; otherwise zeros and the old state."""
    if keep is None:
        return updates, new
    updates = jax.tree.map(lambda u: jnp.where(keep, u, jnp.zeros_like(u)), updates)
    return updates, jax.tree.map(lambda a, b: jnp.where(keep, a, b), new, old)


def accumulating(
    where: str,
    make: Callable[[], optax.GradientTransformation],
    num_micro_batches: int,
    accumulator_dtype: Any,
) -> optax.GradientTransformationExtraArgs:
    """The optimizer; it acts on every `num_micro_batches`-th call."""
    tx = on_arrays(where, extended(where, make()))
    if whole_number(num_micro_batches) == 1:
        return tx
    return gradient_accumulation(tx, num_micro_batches, accumulator_dtype)
