"""Elementwise steps and reductions over views in several orders of memory, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8])
@pytest.mark.parametrize("shape", [(70, 130), (17, 300), (8, 64), (300, 7), (33, 1)])
def test_transposed_operands(shape: tuple[int, int], dtype: Any) -> None:
    """Beside operands in order, rows and columns that repeat, and a transposed result."""
    rows, columns = shape
    a = (9 * normal(columns, rows)).astype(dtype)
    b = (9 * normal(rows, columns, seed=1)).astype(dtype)
    column = (9 * normal(rows, 1, seed=2)).astype(dtype)

    def function(a: Any, b: Any, column: Any) -> Any:
        made = a.T + b - column
        return made, made.T, b + b[:1]

    got = jax.jit(function)(a, b, column)
    for value, want in zip(got, function(a, b, column), strict=True):
        np.testing.assert_array_equal(value, want.astype(dtype))


@pytest.mark.parametrize("sizes", [(8, 8), (3, 5), (16, 8), (64, 2), (5, 1)])
def test_groups_of_few_columns(sizes: tuple[int, int]) -> None:
    """As group norms read them: one operand for each group, one for each channel, of each batch."""
    n1, n2 = sizes
    x, of_group = normal(3, 37, n1, n2), normal(3, 1, n1, 1, seed=1)
    of_other, of_channel = normal(3, 1, 1, n2, seed=2), normal(1, 1, n1, n2, seed=3)

    def function(x: Any, *others: Any) -> Any:
        first, second, third = others
        made = x * first + second - third
        return made, made.transpose(0, 2, 3, 1)

    others = (of_group, of_other, of_channel)
    got = jax.jit(function)(x, *others)
    for value, want in zip(got, function(x, *others), strict=True):
        np.testing.assert_allclose(value, want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(2, 40, 8, 8), (1, 9, 3, 16), (4, 300, 32, 2), (2, 8, 1, 64)])
@pytest.mark.parametrize("dims", [(1, 3), (1, 2)])
def test_sums_of_groups(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    x = normal(*shape)
    np.testing.assert_allclose(
        jax.jit(lambda x: x.sum(dims))(x), x.sum(dims, dtype=np.float64), rtol=1e-5, atol=1e-4
    )
    np.testing.assert_array_equal(jax.jit(lambda x: x.max(dims))(x), x.max(dims))
    whole = (9 * x).astype(np.int32)
    np.testing.assert_array_equal(jax.jit(lambda x: x.sum(dims))(whole), whole.sum(dims))
    halves = x.astype(np.float16)
    wanted = halves.astype(np.float64).sum(dims)
    np.testing.assert_allclose(jax.jit(lambda x: x.sum(dims))(halves), wanted, rtol=2e-3, atol=2e-2)


def test_sums_of_squares_are_one_reduction() -> None:
    x = normal(50, 300)

    def variance(x: Any) -> Any:
        return jnp.mean(x * x, 1) - jnp.mean(x, 1) ** 2

    np.testing.assert_allclose(jax.jit(variance)(x), x.astype(np.float64).var(1), rtol=1e-5)
    steps = ipu.report(lambda x: jnp.sum(x * x, 1), x).steps
    assert [step.op for step in steps if step.flops] == ["reduce"]
    halves = x.astype(np.float16)

    def wide(x: Any) -> Any:
        return jnp.sum(jnp.square(x.astype(jnp.float32)), 1)

    wanted = (halves.astype(np.float64) ** 2).sum(1)
    np.testing.assert_allclose(jax.jit(wide)(halves), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (jnp.sum(x * x), x * x),  # the squares are a result
        lambda x: (jnp.sum(x * x), jnp.sum(jnp.sin(x * x))),  # and read elsewhere
        lambda x: (jnp.sum((x - 1) * (x - 1)), x - 1),  # what is squared is a result
        lambda x: (jnp.sum((x - 1) * (x - 1)),),  # or only computed here
        lambda x: (jnp.sum((x * x).reshape(-1, 2), 1), jnp.sum((x * x).T, 1)),
        lambda x: (jnp.max(x * x), jnp.sum(x * (x + 1))),  # no sums of squares
    ],
    ids=["result", "read", "factor", "inside", "views", "others"],
)
def test_sums_of_squares_where_they_are_read_elsewhere(function: Callable[..., Any]) -> None:
    x = normal(20, 130)
    on_cpu = jax.device_put(x, jax.devices("cpu")[0])
    got, wanted = jax.jit(function)(x), jax.jit(function)(on_cpu)
    for value, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(value, want, rtol=2e-6, atol=1e-5)
