"""Typed PRNG keys in feeds: their words cross the link, and become keys again."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ipujax.errors import FeedError


@functools.partial(jax.tree_util.register_dataclass, data_fields=["words"], meta_fields=["impl"])
@dataclass(frozen=True)
class Words:
    """Stands for an array of keys. A pytree.

    Attributes:
        words: uint32 [..., words of one key], for keys [...].
        impl: implementation of the keys, as `jax.random.key_impl` names it.
    """

    words: Any
    impl: Any

    def keys(self) -> Any:
        if isinstance(self.words, jax.ShapeDtypeStruct):
            return jax.eval_shape(self._wrapped, self.words)
        return self._wrapped(self.words)

    def _wrapped(self, words: Any) -> jax.Array:
        return jax.random.wrap_key_data(words, impl=self.impl)


def is_keys(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and bool(jnp.issubdtype(dtype, jax.dtypes.prng_key))


def as_words(tree: Any) -> Any:
    """The pytree with `Words` in place of arrays of keys."""
    return jax.tree.map(
        lambda x: Words(jax.random.key_data(x), jax.random.key_impl(x)) if is_keys(x) else x, tree
    )


def as_keys(tree: Any) -> Any:
    """The inverse of `as_words`."""
    return jax.tree.map(lambda x: x.keys() if _is_words(x) else x, tree, is_leaf=_is_words)


def check_split(tree: Any, parts: int) -> None:
    """Refuses a single key in a batch of which each replica gets a part."""
    words = [x.words for x in jax.tree.leaves(tree, is_leaf=_is_words) if _is_words(x)]
    if parts > 1 and any(len(x.shape) < 2 for x in words):
        raise FeedError(
            f"[infeed] needs keys with a first dimension to split over {parts} replicas; got a "
            "single key. Pass jax.random.split(key, replicas)."
        )


def check_none(where: str, what: str, tree: Any) -> None:
    """Refuses keys where only numbers are possible."""
    found = next((x for x in jax.tree.leaves(tree, is_leaf=_is_words) if _is_any(x)), None)
    if found is not None:
        dtype = found.dtype if is_keys(found) else f"keys of {found.impl}"
        raise FeedError(
            f"[{where}] needs numbers {what}; got {dtype}. Pass jax.random.key_data(key), and "
            "jax.random.wrap_key_data where the key is used."
        )


def _is_words(x: Any) -> bool:
    return isinstance(x, Words)


def _is_any(x: Any) -> bool:
    return _is_words(x) or is_keys(x)
