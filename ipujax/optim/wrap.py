"""Wraps optax transformations, and checks their arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.api.arguments import array
from ipujax.api.replicate.weight_shards import check_no_shards
from ipujax.errors import ConfigError, ReplicationError

if TYPE_CHECKING:
    import optax


def extended(where: str, tx: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """The transformation, with an `update` that takes further arguments.

    Raises:
        ConfigError: `tx` is not an optax transformation.
    """
    import optax

    if not isinstance(tx, optax.GradientTransformation):
        raise ConfigError(
            f"[{where}] needs an optax.GradientTransformation; got {tx!r}. "
            "Pass one, such as optax.adam(1e-3)."
        )
    return optax.with_extra_args_support(tx)


def on_arrays(
    where: str, tx: optax.GradientTransformationExtraArgs
) -> optax.GradientTransformationExtraArgs:
    """The transformation; it also takes Python numbers, and refuses anything but arrays."""

    def init(params: Any) -> Any:
        return tx.init(_arrays(where, "parameters", params))

    def update(grads: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        gradients, weights = _arrays(where, "gradients", grads), _arrays(where, "params", params)
        of_gradients, of_params = jax.tree.structure(gradients), jax.tree.structure(weights)
        if params is not None and of_gradients != of_params:
            raise ConfigError(
                f"[{where}] needs gradients of the structure of the parameters, {of_params}; got "
                f"{of_gradients}. Pass what jax.grad returns."
            )
        return tx.update(gradients, state, weights, **extra)

    return tx._replace(init=init, update=update)


def _arrays(where: str, name: str, values: Any) -> Any:
    def one(leaf: Any) -> Any:
        is_numpy = isinstance(leaf, np.ndarray | np.generic)
        is_described = hasattr(leaf, "shape") and hasattr(leaf, "dtype")
        return leaf if is_described and not is_numpy else array(where, name, leaf)

    return jax.tree.map(one, values)


def check_not_summed(where: str, grads: Any, axis_name: Any) -> None:
    """Refuses gradients that JAX has already summed over the replicas.

    Inside `shard_map(check_vma=True)` the derivative with respect to a value that all replicas
    share is a sum over replicas, which a second reduction would scale. The same holds for an
    `ipu.WeightShard`.
    """
    check_no_shards(where, grads)
    if not jax_compat.varying_axes(jax.lax.axis_index(axis_name)):
        return  # JAX does not track which values vary
    names = set(axis_name) if isinstance(axis_name, tuple) else {axis_name}
    for path, leaf in jax.tree_util.tree_leaves_with_path(grads):
        if not names <= jax_compat.varying_axes(leaf):
            raise ReplicationError(
                f"[{where}] needs the gradients of each replica; got one that shard_map has summed "
                f"over the replicas, at {jax.tree_util.keystr(path) or 'the top'}. Use ipu.pmap or "
                "shard_map(check_vma=False), or remove this transformation."
            )
