"""How one optax transformation is built around another."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax

from ipujax import jax_compat
from ipujax.errors import ConfigError, ReplicationError

if TYPE_CHECKING:
    import optax


def around(
    where: str,
    tx: optax.GradientTransformation,
    build: Callable[[optax.GradientTransformationExtraArgs], tuple[Any, Any]],
) -> optax.GradientTransformationExtraArgs:
    """The transformation of the (init, update) that `build` makes of the inner one.

    Raises:
        ConfigError: `tx` is no optax transformation.
    """
    import optax

    if not isinstance(tx, optax.GradientTransformation):
        raise ConfigError(
            f"[{where}] needs an optax.GradientTransformation; got {tx!r}. "
            "Pass one, such as optax.adam(1e-3)."
        )
    init, update = build(optax.with_extra_args_support(tx))
    return optax.GradientTransformationExtraArgs(init, update)


def check_choice(where: str, name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuses a value that is not one of `choices`."""
    if value not in choices:
        raise ConfigError(
            f"[{where}] needs {name} out of {', '.join(choices)}; got {value!r}. Use one of these."
        )


def check_not_summed(where: str, grads: Any, axis_name: Any) -> None:
    """Refuses gradients that JAX has summed over the replicas already.

    Inside of `shard_map(check_vma=True)` derivatives by a value that all replicas share are sums
    over them: a second reduction would scale them.
    """
    if not jax_compat.varying_axes(jax.lax.axis_index(axis_name)):
        return  # nothing is known of which values vary
    names = set(axis_name) if isinstance(axis_name, tuple) else {axis_name}
    for path, leaf in jax.tree_util.tree_leaves_with_path(grads):
        if not names <= jax_compat.varying_axes(leaf):
            raise ReplicationError(
                f"[{where}] needs gradients of each replica; got one that is equal on all, and so "
                f"was summed by shard_map, at {jax.tree_util.keystr(path) or 'the top'}. Pass "
                "shard_map(check_vma=False), use ipu.pmap, or leave this transformation out."
            )
