"""What the functions of `ipu.nn` compute, in NumPy's float64, and how results are compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

Array = Any


def on_cpu(function: Callable[..., Any], *arguments: Any) -> Any:
    """The plain definition: JAX's own CPU backend compiles it."""
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.tree.map(np.asarray, jax.jit(function)(*arguments))


def assert_close(found: Any, wanted: Any, rtol: float = 2e-6, atol: float = 2e-6) -> None:
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(
            np.asarray(a, np.float64), np.asarray(b, np.float64), rtol=rtol, atol=atol
        ),
        found,
        wanted,
    )


def norm(x: Array, members: Callable[[int], Array], epsilon: float) -> Array:
    """Of x [C, n]: each channel by the statistics of the channels `members(c)`."""
    x = x.astype(np.float64)
    y = np.empty_like(x)
    for c in range(len(x)):
        group = x[members(c)]
        y[c] = (x[c] - group.mean()) / np.sqrt(group.var() + epsilon)
    return y


def group_norm(
    x: Array, gamma: Array, beta: Array, groups: int, axis: int, strided: bool, epsilon: float
) -> Array:
    """Channel by channel."""
    moved = np.moveaxis(x, axis, 1)
    channels = moved.shape[1]
    numbers = np.arange(channels)
    group_of = numbers % groups if strided else numbers // (channels // groups)
    rows = [
        norm(
            row.reshape(channels, -1),
            lambda c: np.flatnonzero(group_of == group_of[c]),
            epsilon,
        ).reshape(row.shape)
        for row in moved
    ]
    shape = (channels, *[1] * (moved.ndim - 2))
    y = np.stack(rows) * gamma.reshape(shape) + beta.reshape(shape)
    return np.moveaxis(y, 1, axis)


def numeric_gradient(function: Callable[[Array], float], x: Array, step: float = 1e-5) -> Array:
    """Central differences in float64."""
    x = x.astype(np.float64)
    gradient = np.empty_like(x)
    for index in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[index] += sign * step
            ends.append(function(moved))
        gradient[index] = (ends[0] - ends[1]) / (2 * step)
    return gradient
