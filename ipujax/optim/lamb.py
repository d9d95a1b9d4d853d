"""LAMB: Adam whose updates are scaled by the norms of the parameters, for large batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import flag
from ipujax.api.replicate.replicas import AxisName
from ipujax.optim.adam import AdamState, Family, adam_terms
from ipujax.optim.hyperparameters import Hyperparameter, Values
from ipujax.optim.moments import is_number
from ipujax.optim.shards import sum_over_shards

if TYPE_CHECKING:
    import optax

WHERE = "ipu.optim.lamb"


def lamb(
    learning_rate: Hyperparameter = 1e-3,
    b1: Hyperparameter = 0.9,
    b2: Hyperparameter = 0.999,
    eps: Hyperparameter = 1e-8,
    weight_decay: Hyperparameter = 0.0,
    *,
    max_weight_norm: Hyperparameter | None = None,
    loss_scaling: Hyperparameter = 1.0,
    bias_correction: bool = True,
    max_grad_norm: Hyperparameter | None = None,
    scaled_optimizer_state: bool = False,
    first_moment_dtype: Any = None,
    second_moment_dtype: Any = None,
    accumulator_dtype: Any = None,
    num_micro_batches: int = 1,
    axis_name: AxisName | None = None,
) -> optax.GradientTransformationExtraArgs:
    """LAMB, for each array of the parameters.

    With m and v of `ipu.optim.adam`, from gradients without weight decay:

        x = m / (sqrt(v) + eps) + weight_decay * w
        update = -learning_rate * min(norm(w), max_weight_norm) / norm(x) * x

    The ratio is 1 if one of the norms is zero. Norms are computed in float32, of whole arrays:
    inside `ipu.optim.shard_state` the sums of squares are added over the replicas, all in one
    collective.

    Args:
        learning_rate, b1, b2, eps, weight_decay, loss_scaling, bias_correction, max_grad_norm,
            scaled_optimizer_state, first_moment_dtype, second_moment_dtype, accumulator_dtype,
            num_micro_batches: as for `ipu.optim.adam`.
        max_weight_norm: upper bound of norm(w); None: no bound.
        axis_name: the axis of replicas that each hold a part of every parameter, such as those of
            `ipu.shard_weights`; not needed inside `shard_state`.
    Returns:
        An optax transformation; updates have the dtypes of the parameters.
    Raises:
        ConfigError: as `ipu.optim.adam`.
        ReplicationError: at `update`: axis_name is not mapped.

    Source: You et al., 2020 (arXiv 1904.00962); `poptorch.optim.LAMB`.

    Example:
        >>> tx = ipu.optim.lamb(0.1)
        >>> params = jnp.array([3.0, 4.0])  # of norm 5; the update's direction has norm sqrt(2)
        >>> print(tx.update(jnp.ones(2), tx.init(params), params)[0])
        [-0.35355338 -0.35355338]
    """
    bias_correction = flag(WHERE, "bias_correction", bias_correction)

    def rule(grads: Any, state: AdamState, params: Any, h: Values) -> tuple[Any, AdamState]:
        terms, new = adam_terms(grads, state, h, bias_correction)
        if not is_number(h["weight_decay"], 0.0):
            terms = jax.tree.map(
                lambda x, p: x + h["weight_decay"] * p.astype(x.dtype), terms, params
            )
        ratios = _trust_ratios(params, terms, h.get("max_weight_norm"), axis_name)
        return jax.tree.map(lambda x, r: -h["learning_rate"] * r * x, terms, ratios), new

    family = Family(
        *(learning_rate, b1, b2, eps, weight_decay, loss_scaling, max_grad_norm),
        scaled_optimizer_state,
        *(first_moment_dtype, second_moment_dtype, accumulator_dtype, num_micro_batches),
    )
    return family.optimizer(
        WHERE, rule, needs="their norms", max_weight_norm=max_weight_norm, axis_name=axis_name
    )


def _trust_ratios(params: Any, terms: Any, bound: Any, axis_name: AxisName | None) -> Any:
    """norm(w) / norm(x) for each array, float32 []."""
    leaves, tree = jax.tree.flatten(params)
    if not leaves:
        return params

    def squares(x: Any) -> jax.Array:
        return jnp.sum(jnp.square(x.astype(jnp.float32)))

    sums = [squares(x) for x in (*leaves, *jax.tree.leaves(terms))]
    norms = jnp.sqrt(sum_over_shards(WHERE, jnp.stack(sums), axis_name))
    weights, steps = norms[: len(leaves)], norms[len(leaves) :]
    if bound is not None:
        weights = jnp.minimum(weights, bound)
    is_one = (weights == 0) | (steps == 0)
    ratios = jnp.where(is_one, 1, weights / jnp.where(is_one, 1, steps))
    return jax.tree.unflatten(tree, list(ratios))
