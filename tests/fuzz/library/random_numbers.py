"""Random numbers: what holds for them whatever the generator."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal


def _seed(numbers: Numbers) -> Any:
    return numbers.integers(0, 2**32, 2, dtype=np.uint32)


@generator("nn.dropout")
def dropout(d: Draw) -> Case:
    """An element that is dropped is replaced, so that the result is known, and its gradient."""
    shape, dtype = d.shape(0, 3), d.dtype()
    rate = d.one(0.0, 0.25, 0.5)
    noise_shape = None if d.chance(0.5) else tuple(d.one(1, size) for size in shape)
    factor = 1 / (1 - rate)

    def function(x: Any, seed: Any) -> Any:
        y = ipu.nn.dropout(x, seed, rate=rate, noise_shape=noise_shape)
        return jnp.where(y == 0, x * jnp.asarray(factor, x.dtype), y)

    def draw(numbers: Numbers) -> Any:
        x = normal(numbers, shape, np.float32)
        return np.where(np.abs(x) < 0.1, 0.5, x).astype(dtype), _seed(numbers)

    text = f"rate={rate}, noise_shape={noise_shape}"
    return Case(function, lambda x, seed: x * factor, draw, text=text)


def _of(name: str, d: Draw) -> tuple[dict[str, Any], Any, Any]:
    """Options, what holds for each number, a value that the mean of many is close to."""
    if name == "random_uniform":
        low = d.integer(-3, 2)
        high = low + d.integer(1, 4)
        is_within = lambda x: (x >= low) & (x <= high)  # noqa: E731
        return {"low": low, "high": high}, is_within, (low + high) / 2
    if name == "random_bernoulli":
        p = d.one(0.0, 0.25, 1.0)
        return {"probability": p}, lambda x: (x == 0) | (x == 1), p
    mean, stddev = d.one(0.0, 2.0), d.one(0.5, 1.0)
    options = {"mean": mean, "stddev": stddev}
    if name == "random_normal":
        return options, lambda x: abs(x - mean) < 7 * stddev, mean
    alpha = d.one(1.0, 2.0)
    is_near = lambda x: abs(x - mean) <= 1.01 * alpha * stddev  # noqa: E731
    return options | {"alpha": alpha}, is_near, mean


@generator(
    "ops.random_uniform",
    "ops.random_normal",
    "ops.random_truncated_normal",
    "ops.random_bernoulli",
)
def random(d: Draw, name: str) -> Case:
    short = name.removeprefix("ops.")
    options, holds, middle = _of(short, d)
    with_integers = short in ("random_uniform", "random_bernoulli")
    dtype = d.one("float32", "float16", *(("int32",) if with_integers else ()))
    shape = d.one((0, 2), (1,), (3, 5), (40, 50))
    function = getattr(ipu.ops, short)

    def checked(seed: Any) -> Any:
        """All are allowed, a seed gives them again, and the mean of many is near the middle."""
        x = function(shape, dtype, seed=seed, **options)
        again = function(shape, dtype, seed=seed, **options)
        near = abs(jnp.mean(x.astype(jnp.float32)) - middle) < 0.3 if x.size > 1000 else True
        return jnp.all(holds(x.astype(jnp.float32))), jnp.all(x == again), jnp.asarray(near)

    def reference(seed: Any) -> Any:
        return (jnp.asarray(True),) * 3

    draw = lambda numbers: (_seed(numbers),)  # noqa: E731
    text = f"{shape}, {dtype}, {options}"
    return Case(checked, reference, draw, smooth=(), order=0, text=text)
