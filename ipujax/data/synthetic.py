"""`Synthetic`: batches that are made on the device, for programs without the host's data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.feed.batches import part_of
from ipujax.api.feed.keys import check_none
from ipujax.api.feed.ports import replicas_here
from ipujax.errors import FeedError
from ipujax.types import InitializerName

#: Makes an array from a key, a shape and a dtype.
Initializer = Callable[[jax.Array, tuple[int, ...], Any], jax.Array]


def _normal(key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    return jax.random.normal(key, shape).astype(dtype)


def _uniform(key: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    return jax.random.uniform(key, shape).astype(dtype)


_INITIALIZERS: dict[str, Initializer] = {
    "zeros": lambda key, shape, dtype: jnp.zeros(shape, dtype),
    "ones": lambda key, shape, dtype: jnp.ones(shape, dtype),
    "normal": _normal,
    "uniform": _uniform,
}


class Synthetic:
    """Replaces an `ipujax.Infeed`: makes one batch on the device and gives it to every step.

    No data cross the link to the host, so the difference between a loop with this and one with an
    `Infeed` is what the data cost. The data never end.

    Args:
        spec: a pytree of `jax.ShapeDtypeStruct` or arrays, or an `Infeed`: one batch, for all
            replicas.
        initializer: "zeros", "ones", "normal", "uniform", or a function of a key, a shape and a
            dtype.
        seed: seed of the key.
    Raises:
        FeedError: an unknown name.

    Source: `--use_synthetic_data` and `--synthetic_data_initializer` of Graphcore's TensorFlow.

    Example:
        >>> data = ipu.data.Synthetic(jax.ShapeDtypeStruct((2,), np.float32), "ones")
        >>> print(jax.jit(lambda x: ipu.repeat(3, jnp.add, x, infeed=data))(jnp.zeros(2)))
        [3. 3.]
    """

    def __init__(
        self, spec: Any, initializer: InitializerName | Initializer = "zeros", seed: int = 0
    ):
        if isinstance(initializer, str) and initializer not in _INITIALIZERS:
            raise FeedError(
                f"[synthetic] needs an initializer from {', '.join(_INITIALIZERS)}, or a function; "
                f"got {initializer!r}. Use one of these."
            )
        self._make = _INITIALIZERS[initializer] if isinstance(initializer, str) else initializer
        self.spec = getattr(spec, "spec", spec)
        self._seed = seed

    def begin(self) -> Any:
        """The batch, which is the cursor."""
        here = replicas_here()
        check_none("synthetic", "to make them", self.spec)
        leaves, tree = jax.tree.flatten(self.spec)
        keys = jax.random.split(jax.random.key(self._seed), max(len(leaves), 1))
        parts = [part_of(leaf, here.parts, here.axes) for leaf in leaves]
        made = [self._make(k, tuple(p.shape), p.dtype) for k, p in zip(keys, parts, strict=False)]
        return jax.tree.unflatten(tree, made)

    def fetch(self, cursor: Any) -> tuple[Any, Any]:
        return cursor, cursor

    def fetch_or_stop(self, cursor: Any) -> tuple[Any, Any, Any]:
        return cursor, jnp.bool_(True), cursor
