"""States of any kind as arrays: what a program carries, and what a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding

from ipujax.distributed.host_arrays import replicated
from ipujax.errors import ArrayFileError


@dataclass(frozen=True)
class Structure:
    """A state without its arrays: its tree, and leaves such as a layer's activation function."""

    tree: Any
    names: tuple[str, ...]  #: of all leaves
    others: tuple[Any, ...]  #: all leaves; None for an array

    def join(self, arrays: Sequence[Any]) -> Any:
        """The state with these arrays."""
        rest = iter(arrays)
        leaves = [next(rest) if other is None else other for other in self.others]
        return jax.tree.unflatten(self.tree, leaves)

    @property
    def array_names(self) -> list[str]:
        pairs = zip(self.names, self.others, strict=True)
        return [name for name, other in pairs if other is None]


def split(state: Any) -> tuple[list[jax.Array], Structure]:
    """Splits a pytree into copies of its arrays and the rest. Numbers are arrays."""
    with_names, tree = jax.tree_util.tree_flatten_with_path(state)
    leaves = [leaf for _, leaf in with_names]
    names = tuple(jax.tree_util.keystr(path) for path, _ in with_names)
    others = tuple(None if _is_array(leaf) else leaf for leaf in leaves)
    arrays = [jnp.array(leaf) for leaf in leaves if _is_array(leaf)]
    return arrays, Structure(tree, names, others)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic, bool, int, float, complex))


def to_host(arrays: Sequence[jax.Array]) -> list[np.ndarray]:
    """The arrays' elements; for random keys, their words.

    Of arrays that several processes hold, too: all of them call this at the same time.
    """
    words = [_whole(jax.random.key_data(x) if _is_key(x) else x) for x in arrays]
    return [np.asarray(x) for x in jax.device_get(words)]


def _whole(x: jax.Array) -> jax.Array:
    if x.is_fully_addressable or x.is_fully_replicated:
        return x
    assert isinstance(x.sharding, NamedSharding), x.sharding
    return replicated(x, x.sharding.mesh)


def from_host(
    held: Mapping[str, np.ndarray], like: Sequence[jax.Array], names: Sequence[str]
) -> list[jax.Array]:
    """The inverse of `to_host`, placed and sharded as these arrays are.

    Raises:
        ArrayFileError: names, shapes or dtypes differ.
    """
    if set(held) != set(names):
        raise ArrayFileError(
            "[checkpoint] needs the state that it was saved from; got one with other arrays: "
            f"{sorted(set(held) ^ set(names))[:5]}. Use the same model, or another folder."
        )
    return [_placed(name, held[name], array) for name, array in zip(names, like, strict=True)]


def _placed(name: str, held: np.ndarray, like: jax.Array) -> jax.Array:
    wanted = jax.random.key_data(like) if _is_key(like) else like
    if (held.shape, held.dtype) != (wanted.shape, wanted.dtype):
        raise ArrayFileError(
            f"[checkpoint] needs {wanted.dtype}{list(wanted.shape)} for {name}; got "
            f"{held.dtype}{list(held.shape)}. Use the same model, or another folder."
        )
    made: Any = held
    if _is_key(like):
        made = jax.random.wrap_key_data(jnp.asarray(held), impl=jax.random.key_impl(like))
    # Arrays that may be anywhere stay so: others of the state decide where a program runs.
    return jax.device_put(made, like.sharding) if like.committed else jnp.array(made)


def _is_key(array: jax.Array) -> bool:
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)
