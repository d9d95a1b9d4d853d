"""Batch norm: statistics of one batch, of replicas' batches, and the moving ones."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.nn import oracles

RNG = np.random.default_rng(5)
X = RNG.standard_normal((4, 3, 5, 6)).astype(np.float32) + 1
GAMMA = RNG.uniform(0.5, 2, 6).astype(np.float32)
BETA = RNG.standard_normal(6).astype(np.float32)
STATE = ipu.nn.BatchNormState(np.full(6, 2, np.float32), np.full(6, 3, np.float32))


def expected(x: Any) -> tuple[Any, Any, Any]:
    """Of all but the last dimension: y, mean, variance."""
    wide = x.astype(np.float64)
    dims = tuple(range(x.ndim - 1))
    mean, variance = wide.mean(dims), wide.var(dims)
    return (wide - mean) / np.sqrt(variance + 1e-3) * GAMMA + BETA, mean, variance


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("platform", ["cpu", "ipu"])
def test_training(platform: str, stable: bool) -> None:
    def step(x: Any, state: Any) -> Any:
        return ipu.nn.batch_norm(x, state, GAMMA, BETA, momentum=0.75, use_stable_statistics=stable)

    with jax.default_device(jax.devices(platform)[0]):
        y, state = jax.jit(step)(X, STATE)
    wanted, mean, variance = expected(X)
    oracles.assert_close(y, wanted, atol=4e-6)
    unbiased = variance * 60 / 59
    oracles.assert_close(
        tuple(state), (2 * 0.75 + mean * 0.25, 3 * 0.75 + unbiased * 0.25), rtol=4e-6
    )


def test_inference() -> None:
    moved = np.moveaxis(X, -1, 1)

    def step(x: Any) -> Any:
        return ipu.nn.batch_norm(x, STATE, GAMMA, BETA, training=False, channels_axis=1)

    y, state = jax.jit(step)(moved)
    wanted = (X - 2.0) / np.sqrt(3 + 1e-3) * GAMMA + BETA
    oracles.assert_close(y, np.moveaxis(wanted, -1, 1))
    oracles.assert_close(state, STATE)


def loss(x: Any, **options: Any) -> jax.Array:
    return jnp.sum(jnp.sin(ipu.nn.batch_norm(x, STATE, GAMMA, BETA, **options)[0]))


def test_gradient_against_differences() -> None:
    x = X[:2, :1, :2]
    wanted = oracles.numeric_gradient(lambda x: float(np.sin(expected(x)[0]).sum()), x)
    oracles.assert_close(jax.jit(jax.grad(loss))(x), wanted, 2e-4, 2e-4)


@pytest.mark.parametrize("size", [None, 2])
def test_replicas_share_statistics(size: int | None) -> None:
    """Also the gradient of the sum of the replicas' losses, through the statistics of all."""

    def step(x: Any) -> Any:
        return (
            *ipu.nn.batch_norm(x, STATE, GAMMA, BETA, replica_group_size=size),
            jax.grad(lambda x: loss(x, replica_group_size=size))(x),
        )

    y, state, gradient = ipu.pmap(step)(X)
    for replicas in [range(4)] if size is None else [(0, 1), (2, 3)]:
        part = X[list(replicas)]
        wanted, mean, variance = expected(part)
        slopes = oracles.on_cpu(jax.grad(loss), part)
        count = part.size // 6
        for index, replica in enumerate(replicas):
            oracles.assert_close(y[replica], wanted[index], atol=4e-6)
            oracles.assert_close(state.mean[replica], 2 * 0.99 + 0.01 * mean)
            moved = 3 * 0.99 + 0.01 * variance * count / (count - 1)
            oracles.assert_close(state.variance[replica], moved)
            oracles.assert_close(gradient[replica], slopes[index], 1e-4, 1e-4)


def test_sharded_along_the_batch() -> None:
    mesh = jax.make_mesh((2,), ("a",), devices=jax.devices("ipu")[:2])
    placed = jax.device_put(X, jax.NamedSharding(mesh, jax.P("a")))
    y, _ = jax.jit(lambda x: ipu.nn.batch_norm(x, STATE, GAMMA, BETA))(placed)
    oracles.assert_close(y, expected(X)[0], atol=4e-6)


def test_edges_and_refusals() -> None:
    y, state = ipu.nn.batch_norm(jnp.zeros((0, 6)), STATE)
    assert y.shape == (0, 6)
    oracles.assert_close(state, STATE)
    one, state = ipu.nn.batch_norm(jnp.ones((1, 6)), STATE, momentum=0.0)
    oracles.assert_close((one, state.variance), (np.zeros((1, 6)), np.zeros(6)))
    with pytest.raises(ipu.ConfigError, match=r"gamma of shape \(6,\); got \(2,\)"):
        ipu.nn.batch_norm(X, STATE, GAMMA[:2])
    with pytest.raises(ipu.ConfigError, match=r"state.mean of shape \(5,\)"):
        ipu.nn.batch_norm(X, STATE, channels_axis=2)
    with pytest.raises(ipu.ConfigError, match="momentum=2"):
        ipu.nn.batch_norm(X, STATE, momentum=2)
    with pytest.raises(ipu.ReplicationError, match=r"nn\.batch_norm"):
        ipu.nn.batch_norm(X, STATE, replica_group_size=None)


@pytest.mark.parametrize("given", [(), ("gamma",), ("beta",), ("gamma", "beta")])
def test_gradients_with_and_without_gamma_and_beta(given: tuple[str, ...]):
    rng = np.random.default_rng(7)
    x, weights = (rng.normal(size=(4, 5, 6)).astype(np.float32) for _ in range(2))
    vectors = {name: rng.normal(size=6).astype(np.float32) for name in given}

    def loss(x, vectors):
        y, _ = ipu.nn.batch_norm(x, ipu.nn.batch_norm_init(6), **vectors)
        return jnp.sum(y * weights)

    def reference(x, vectors):
        y = (x - x.mean((0, 1))) / jnp.sqrt(x.var((0, 1)) + 1e-3)
        return jnp.sum((y * vectors.get("gamma", 1) + vectors.get("beta", 0)) * weights)

    found, wanted = (jax.jit(jax.grad(f, (0, 1)))(x, vectors) for f in (loss, reference))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5), found, wanted)
