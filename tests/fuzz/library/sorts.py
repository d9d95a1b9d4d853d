"""Sorts and selections, by positions in a stable order."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator


def _dtype(d: Draw) -> Any:
    return d.one(np.float32, np.float32, np.float16, np.int32)


def _values(numbers: Numbers, shape: Any, dtype: Any) -> Any:
    """Whole numbers, of which some are equal, and others between them."""
    x = numbers.integers(-9, 9, shape)
    return (x + (numbers.random(shape) if dtype != np.int32 else 0)).astype(dtype)


def _ranks(x: Any, axis: int, descending: bool) -> Any:
    """How many elements come before each: smaller ones, and equal ones that are earlier."""
    moved = jnp.moveaxis(x, axis, -1)
    a, b = moved[..., :, None], moved[..., None, :]
    at = jnp.arange(moved.shape[-1])
    before = (b > a if descending else b < a) | ((b == a) & (at[None, :] < at[:, None]))
    return jnp.moveaxis(jnp.sum(before, -1), -1, axis)


def _arranged(values: Any, ranks: Any, axis: int) -> Any:
    """Each value at its rank, by a product with a permutation."""
    moved, places = jnp.moveaxis(values, axis, -1), jnp.moveaxis(ranks, axis, -1)
    hot = places[..., None, :] == jnp.arange(moved.shape[-1])[:, None]
    return jnp.moveaxis(jnp.sum(jnp.where(hot, moved[..., None, :], 0), -1), -1, axis)


@generator("ops.sort", "ops.sort_key_value")
def sort(d: Draw, name: str) -> Case:
    shape, dtype = d.shape(1, 3, 200), _dtype(d)
    axis = d.integer(-len(shape), len(shape) - 1)
    with_values = name == "ops.sort_key_value"
    of_values = d.dtype()
    equal_keys = d.chance(0.4)

    def draw(numbers: Numbers) -> Any:
        keys = _values(numbers, shape, np.int32 if equal_keys and with_values else dtype)
        if not with_values:
            return (keys,)
        return keys.astype(dtype), numbers.standard_normal(shape).astype(of_values)

    def function(*operands: Any) -> Any:
        return getattr(ipu.ops, name.removeprefix("ops."))(*operands, axis=axis)

    def reference(*operands: Any) -> Any:
        return _arranged(operands[-1], _ranks(operands[0], axis, False), axis)

    is_smooth = with_values or dtype != np.int32
    return Case(
        function,
        reference,
        draw,
        smooth=(1 if with_values else 0,) if is_smooth else (),
        order=2 if is_smooth else 0,
        text=f"axis={axis}",
    )


@generator("ops.top_k")
def top_k(d: Draw) -> Case:
    shape, dtype = d.shape(1, 3, 200), _dtype(d)
    k, largest = d.integer(0, shape[-1]), d.chance(0.6)
    order = d.one("descending", "ascending", "none")

    def function(x: Any) -> Any:
        values, found = ipu.ops.top_k(x, k, largest=largest, order=order)
        if order == "none":
            return jnp.sort(values), jnp.sort(found)
        return values, found

    def reference(x: Any) -> Any:
        ranks = _ranks(x, -1, largest)
        at = jnp.broadcast_to(jnp.arange(x.shape[-1]), x.shape)
        values, found = _arranged(x, ranks, -1)[..., :k], _arranged(at, ranks, -1)[..., :k]
        if order == "none":
            return jnp.sort(values), jnp.sort(found)
        turned = (order == "descending") != largest
        return (values[..., ::-1], found[..., ::-1]) if turned else (values, found)

    is_smooth = dtype != np.int32 and order != "none"
    return Case(
        function,
        reference,
        lambda numbers: (_values(numbers, shape, dtype),),
        smooth=(0,) if is_smooth else (),
        order=2 if is_smooth else 0,
        text=f"k={k}, largest={largest}, order={order}",
    )
