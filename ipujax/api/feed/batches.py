"""Converts batches of users' iterators to those that programs take."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import numpy as np

from ipujax.api.feed.keys import as_words
from ipujax.errors import FeedError

#: Anything that gives batches: an iterable, an iterator, or a function that returns one.
Data = Iterable[Any] | Callable[[], Iterable[Any]]


def iterate(data: Data, position: int = 0) -> Iterator[Any]:
    """An iterator that begins at this batch, by the data's method `skip` if there is one."""
    if callable(data) and not hasattr(data, "__iter__"):
        data = data()
    check_iterable(data)
    return _iterate(data, position)


def check_data(data: Any) -> None:
    """Refuses anything but data or a function that may return them."""
    if not callable(data):
        check_iterable(data)


def check_iterable(data: Any) -> None:
    if not any(hasattr(data, name) for name in ("__iter__", "__next__", "as_numpy_iterator")):
        raise FeedError(
            f"[infeed] needs data that can be iterated over; got {type(data).__name__}. Pass an "
            "iterable of batches, or a function that returns one."
        )


def _iterate(data: Any, position: int) -> Iterator[Any]:
    if position and callable(getattr(data, "skip", None)):
        data, position = data.skip(position), 0
    if callable(getattr(data, "as_numpy_iterator", None)):  # tf.data
        data = data.as_numpy_iterator()
    return itertools.islice(iter(data), position, None)


def leaves_of(batch: Any) -> tuple[list[np.ndarray], Any]:
    """The arrays of a batch, in the dtypes that programs have, and its tree of `as_words`."""
    with jax.ensure_compile_time_eval():  # the first batch is made while a program is traced
        leaves, tree = jax.tree.flatten(as_words(batch))
    return [_array(leaf) for leaf in leaves], tree


def _array(leaf: Any) -> np.ndarray:
    try:
        array = np.asarray(leaf)
    except TypeError:  # torch's bfloat16, which NumPy lacks
        if not hasattr(leaf, "__dlpack__"):
            raise
        array = np.asarray(jax.dlpack.from_dlpack(leaf))
    if array.dtype == object or array.dtype.kind in "SUMm":
        raise FeedError(
            f"[infeed] needs arrays of numbers; got {type(leaf).__name__} of dtype {array.dtype}. "
            "Convert it in the iterator."
        )
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def specs_of(leaves: Iterable[np.ndarray]) -> tuple[jax.ShapeDtypeStruct, ...]:
    return tuple(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in leaves)


def check_same(number: int, leaves: list[np.ndarray], tree: Any, specs: Any, first: Any) -> None:
    """Refuses a batch that is not like the first one, for which programs are compiled."""
    if tree != first:
        raise FeedError(
            f"[infeed] needs batches of one structure, {first}; got {tree} for batch {number}. "
            "Give all batches the same structure."
        )
    found = specs_of(leaves)
    if found == specs:
        return
    i = next(i for i, pair in enumerate(zip(found, specs, strict=True)) if pair[0] != pair[1])
    raise FeedError(
        f"[infeed] needs batches like the first one: {_text(specs[i])}; got {_text(found[i])} for "
        f"array {i} of batch {number}. Drop or pad the last batch (drop_remainder=True)."
    )


def _text(spec: jax.ShapeDtypeStruct) -> str:
    return f"{np.dtype(spec.dtype).name}{list(spec.shape)}"


def part_of(spec: jax.ShapeDtypeStruct, parts: int, axes: Any) -> jax.ShapeDtypeStruct:
    """The part of an array that one replica gets.

    Raises:
        FeedError: the first dimension cannot be split into `parts`.
    """
    if parts == 1:
        return spec
    rows = spec.shape[0] if spec.shape else 0
    if rows == 0 or rows % parts:
        raise FeedError(
            f"[infeed] needs a first dimension of replicas x batch of a replica; got "
            f"{_text(spec)} for {parts} replicas of axes {list(axes)}: {rows} = {parts} x "
            f"{rows / parts:g}. Use batches of a multiple of {parts}."
        )
    return jax.ShapeDtypeStruct((rows // parts, *spec.shape[1:]), spec.dtype)
