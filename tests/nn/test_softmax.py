"""Softmax, its logarithm and the cross-entropy, against NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.nn import oracles

RNG = np.random.default_rng(3)
X = (3 * RNG.standard_normal((5, 7, 9))).astype(np.float32)
LABELS = RNG.integers(0, 9, (5, 7)).astype(np.int32)


def softmax(x: Any, axis: int = -1) -> Any:
    powers = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


@pytest.mark.parametrize("kind", ["plain", "stable", "scaled"])
@pytest.mark.parametrize("axis", [-1, 1])
def test_softmax(kind: str, axis: int) -> None:
    scale = 16384 if kind == "scaled" else 1

    def run(x: Any) -> jax.Array:
        return ipu.nn.softmax(x, axis=axis, kind=kind)

    p = softmax(X, axis)
    weights = RNG.standard_normal(X.shape)
    slopes = scale * p * (weights - (p * weights).sum(axis, keepdims=True))
    gradient = jax.grad(lambda x: jnp.sum(run(x) * weights.astype(np.float32)))
    for program in (jax.jit, lambda f: lambda x: oracles.on_cpu(f, x)):
        oracles.assert_close(program(run)(X), scale * p, 4e-6)
        oracles.assert_close(program(gradient)(X), slopes, 2e-5, 2e-6 * scale)


def test_scaled_softmax_keeps_small_probabilities_in_half() -> None:
    x = np.array([[0, -14, -15.5]], np.float16)
    wanted = softmax(x)
    scaled = jax.jit(lambda x: ipu.nn.softmax(x, kind="scaled"))(x)
    oracles.assert_close(np.asarray(scaled, np.float64) / 16384, wanted, 2e-3, 0)
    plain = np.asarray(jax.jit(ipu.nn.softmax)(x), np.float64)
    assert (abs(plain / wanted - 1) > 0.02).any()


def test_log_softmax() -> None:
    wanted = np.log(softmax(X))
    oracles.assert_close(jax.jit(ipu.nn.log_softmax)(X), wanted, 4e-6, 4e-6)
    halves = jax.jit(ipu.nn.log_softmax)(X.astype(np.float16))
    oracles.assert_close(halves, wanted, 4e-3, 1e-2)
    assert ipu.nn.log_softmax(jnp.zeros((2, 0))).shape == (2, 0)
    np.testing.assert_array_equal(jax.jit(ipu.nn.log_softmax)(np.ones((3, 1))), np.zeros((3, 1)))


def loss(x: Any, labels: Any = LABELS, scale: Any = 1.0) -> jax.Array:
    return jnp.sum(ipu.nn.cross_entropy(x, labels, loss_scale=scale))


def test_cross_entropy() -> None:
    p = softmax(X)
    hot = np.eye(9)[LABELS]
    run = jax.jit(ipu.nn.cross_entropy)
    oracles.assert_close(run(X, LABELS), -(np.log(p) * hot).sum(-1), 4e-6, 4e-6)
    for platform in ("cpu", "ipu"):
        with jax.default_device(jax.devices(platform)[0]):
            step = jax.jit(jax.value_and_grad(loss))
            oracles.assert_close(step(X, LABELS, 8.0)[1], 8 * (p - hot), 4e-6, 2e-5)
            # A scale that changes from step to step needs no other program.
            oracles.assert_close(step(X, LABELS, np.float32(2))[1], 2 * (p - hot), 4e-6, 4e-6)
    assert step._cache_size() <= 2
    second = jax.jit(jax.grad(lambda x: jnp.sum(jax.grad(loss)(x) ** 2)))(X)
    inner = 2 * (p - hot)
    oracles.assert_close(second, p * (inner - (p * inner).sum(-1, keepdims=True)), 1e-5, 1e-5)


def test_loss_scale_before_rounding() -> None:
    """Probabilities of 1e-6 have no normal number in half; scaled gradients do."""
    x = np.array([[0, -14.0]], np.float16)
    gradient = jax.jit(lambda x: jax.grad(loss)(x, np.array([0]), 1024.0))(x)
    wanted = 1024 * (softmax(x) - [[1, 0]])
    oracles.assert_close(gradient, wanted, 5e-3, 0)  # log(p) is half


def test_loss_scale_of_second_derivatives() -> None:
    """The loss's own derivative is scaled, too, where the gradient depends on the loss."""

    def squares(x: Any) -> jax.Array:
        return jnp.sum(ipu.nn.cross_entropy(x, LABELS[0], loss_scale=4.0) ** 2)

    x, along = X[0], np.ones_like(X[0]) * np.arange(9, dtype=np.float32)
    found = jax.jit(lambda x: jax.jvp(jax.grad(squares), (x,), (along,))[1])(x)
    p = softmax(x)
    hot = np.eye(9)[LABELS[0]]
    loss = -(np.log(p) * hot).sum(-1, keepdims=True)
    slope = 4 * (p - hot)
    curved = 4 * p * (along - (p * along).sum(-1, keepdims=True))
    wanted = 2 * slope * (slope * along).sum(-1, keepdims=True) + 2 * loss * curved
    oracles.assert_close(found, wanted, 1e-5, 1e-4)


def test_masked_labels() -> None:
    masked = LABELS.astype(np.uint32)
    masked[0] = ipu.nn.MASKED_LABEL
    value = np.asarray(jax.jit(ipu.nn.cross_entropy)(X, masked))
    gradient = np.asarray(jax.jit(jax.grad(loss))(X, masked))
    assert not value[0].any()
    assert not gradient[0].any()
    oracles.assert_close(value[1:], np.asarray(jax.jit(ipu.nn.cross_entropy)(X, LABELS))[1:])
    signed = jax.jit(ipu.nn.cross_entropy)(X[:, 0], np.array([-1, 9, 0, 1, 2], np.int8))
    assert not np.asarray(signed)[:2].any()
    assert np.asarray(signed)[2:].all()


def test_edges() -> None:
    x = np.array([[np.nan, 1], [np.inf, 1], [2, 1]], np.float32)
    found = np.asarray(jax.jit(ipu.nn.softmax)(x))
    assert np.isnan(found[:2]).any(1).all()
    oracles.assert_close(found[2], softmax(x[2:])[0])
    assert ipu.nn.softmax(jnp.zeros((2, 0))).shape == (2, 0)
    assert ipu.nn.cross_entropy(jnp.zeros((0, 3)), jnp.zeros(0, int)).shape == (0,)
    assert float(jax.jit(ipu.nn.cross_entropy)(np.ones((1, 1)), np.zeros(1, int))[0]) == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: ipu.nn.softmax(X, axis=3), "got axis=3"),
        (lambda: ipu.nn.softmax(X, kind="fast"), "plain, stable, scaled; got 'fast'"),
        (lambda: ipu.nn.log_softmax(LABELS), "float dtype; got int32"),
        (lambda: ipu.nn.cross_entropy(X, LABELS[0]), r"shape \(5, 7\); got int32\[7\]"),
        (lambda: ipu.nn.cross_entropy(X, LABELS * 1.0), r"got float"),
        (lambda: ipu.nn.cross_entropy(X, LABELS, loss_scale=0), "above 0; got 0"),
        (lambda: ipu.nn.cross_entropy(X, LABELS, loss_scale=float("nan")), "got nan"),
    ],
)
def test_refusals(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ipu.ConfigError, match=text):
        call()


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_floats_that_jax_does_not_promote(dtype: str) -> None:
    x = np.array([[0, 1, -1, 2], [2, 2, 0, 1]]).astype(jnp.dtype(dtype))
    p = softmax(x.astype(np.float32))
    for run, want in ((ipu.nn.softmax, p), (ipu.nn.log_softmax, np.log(p))):
        found = jax.jit(run)(x)
        assert found.dtype == x.dtype
        np.testing.assert_allclose(np.asarray(found).astype(np.float32), want, rtol=0.3, atol=0.26)
    loss = np.asarray(ipu.nn.cross_entropy(x, np.array([3, 0], np.int32))).astype(np.float32)
    np.testing.assert_allclose(loss, -np.log(p[[0, 1], [3, 0]]), atol=0.26)
