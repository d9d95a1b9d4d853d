"""Functions of scalars as one step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError


def expression(seed: int) -> Callable[..., Any]:
    """A random expression of three scalars."""
    draw = random.Random(seed)
    unary = [jnp.tanh, jnp.sin, jnp.exp, jnp.abs, lambda x: x * x, jax.nn.sigmoid]
    binary = [
        lambda x, y: x + y,
        lambda x, y: x - y,
        lambda x, y: x * y,
        jnp.maximum,
        lambda x, y: jnp.where(x > y, x, 2 * y),
    ]

    def made(x: Any, y: Any, z: Any) -> Any:
        values = [x, y, z]
        steps = random.Random(draw_seed)
        for _ in range(8):
            if steps.random() < 0.4:
                values.append(steps.choice(unary)(steps.choice(values)) * 0.5)
            else:
                values.append(steps.choice(binary)(steps.choice(values), values[-1]) * 0.5)
        return values[-1]

    draw_seed = draw.randrange(2**31)
    return made


@pytest.mark.parametrize("seed", range(12))
def test_random_expressions_and_their_derivatives(seed: int) -> None:
    fun = expression(seed)
    x, y, z = (
        jax.random.normal(jax.random.key(i), shape)
        for i, shape in enumerate([(4, 6), (6,), (4, 1)])
    )
    fused = ipu.codelet_expression(fun)
    plain = lambda *a: fun(*jnp.broadcast_arrays(*a))  # noqa: E731
    cpu = jax.devices("cpu")[0]
    on_cpu = [jax.device_put(a, cpu) for a in (x, y, z)]
    np.testing.assert_allclose(jax.jit(fused)(x, y, z), plain(*on_cpu), rtol=2e-5, atol=1e-6)
    gradients = jax.jit(jax.grad(lambda *a: fused(*a).sum(), (0, 1, 2)))(x, y, z)
    wanted = jax.grad(lambda *a: jnp.sum(plain(*a)), (0, 1, 2))(*on_cpu)
    for found, each in zip(gradients, wanted, strict=True):
        np.testing.assert_allclose(found, each, rtol=2e-4, atol=2e-5)


def test_it_is_one_step() -> None:
    def gelu(x, y):
        return 0.5 * x * (1 + jnp.tanh(y * (x + 0.044715 * x * x * x)))

    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    report = ipu.report(ipu.codelet_expression(gelu), shape, shape)
    assert [step.kernel for step in report.steps] == ["popx.map"]


def test_transformations_and_dtypes() -> None:
    fused = ipu.codelet_expression(lambda x, y: x * y + 1)
    x = jnp.arange(6.0).reshape(2, 3) / 8
    np.testing.assert_array_equal(jax.vmap(fused, (0, None))(x, 2.0), 2 * x + 1)
    half = fused(x.astype(jnp.float16), jnp.float16(2))
    assert (half.dtype, fused(jnp.arange(3), 2).dtype) == (jnp.float16, jnp.int32)
    square = lambda c, _: (fused(c, c), None)  # noqa: E731
    squared = jax.jit(jax.grad(lambda x: jax.lax.scan(square, x, None, length=2)[0].sum()))
    np.testing.assert_allclose(squared(x), 4 * x * (x**2 + 1), rtol=1e-6)
    second = jax.grad(jax.grad(ipu.codelet_expression(jnp.sin)))(1.0)
    np.testing.assert_allclose(second, -np.sin(1.0), rtol=1e-6)
    assert ipu.codelet_expression(lambda x: 1.0)(x).shape == (2, 3)


def test_what_is_no_expression() -> None:
    x = jnp.ones(3)
    with pytest.raises(ConfigError, match="needs an array; got none"):
        ipu.codelet_expression(lambda: 1.0)()
    with pytest.raises(
        ConfigError, match=r"return one scalar; got results of shapes \[\(\), \(\)\]"
    ):
        ipu.codelet_expression(lambda x: (x, x))(x)
    with pytest.raises(ConfigError, match=r"return one scalar; got results of shapes \[\(2,\)\]"):
        ipu.codelet_expression(lambda x: jnp.stack([x, x]))(x)
    with pytest.raises(ConfigError, match="to be one expression; got while"):
        ipu.codelet_expression(lambda x: jax.lax.while_loop(lambda x: x < 3, lambda x: x + 1, x))(x)
    with pytest.raises(ConfigError, match="to be one expression; got cond"):
        ipu.codelet_expression(jax.jit(lambda x: jax.lax.cond(x > 0, lambda: x, lambda: -x)))(x)
