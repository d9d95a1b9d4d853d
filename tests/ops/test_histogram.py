"""Histograms against NumPy, on IPUs and on the CPU."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu

PLATFORMS = ("ipu", "cpu")


def counted(x: np.ndarray, levels: np.ndarray, absolute: bool) -> list[int]:
    """By comparing each input with each level."""
    x = abs(x) if absolute else x
    counts = [0] * (len(levels) + 1)
    for value in x:
        counts[sum(not value < level for level in levels)] += 1
    return counts


def on(platform: str, function, *arguments):
    device = jax.devices(platform)[0]
    return np.asarray(jax.jit(function)(*jax.device_put(arguments, device)))


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_counts(platform: str, dtype):
    rng = np.random.default_rng(0)
    for size, num_levels, absolute in ((1000, 7, False), (333, 1, True), (1, 2, False)):
        x = rng.normal(size=size).astype(dtype)
        levels = np.sort(rng.normal(size=num_levels).astype(dtype))
        x[: num_levels // 2] = levels[: num_levels // 2]  # on the level is above it
        got = on(platform, lambda a, b, s=absolute: ipu.ops.histogram(a, b, s), x, levels)
        assert got.dtype == np.float32
        assert got.tolist() == counted(x, levels, absolute)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_edges(platform: str):
    levels = np.array([-1.0, 0.0, 1.0], np.float32)
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], np.float32)
    assert on(platform, ipu.ops.histogram, x, levels).tolist() == [1, 0, 2, 3]
    assert on(platform, ipu.ops.histogram, x[:0], levels).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("platform", PLATFORMS)
def test_updates_add_up(platform: str):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 50)).astype(np.float32)
    levels = np.array([-0.5, 0.5], np.float32)

    def both(x, y, levels):
        counts = ipu.ops.histogram(x, levels, True)
        return ipu.ops.histogram_update(counts, y, levels, True)

    want = counted(np.concatenate([x, y]), levels, True)
    assert on(platform, both, x, y, levels).tolist() == want


def test_levels_of_fixed_width():
    x = np.array([2.0, -3.0, 5.0], np.float32)
    levels = ipu.ops.fixed_width_bins(x, 9)
    np.testing.assert_allclose(levels, np.linspace(-3, 5, 9), rtol=1e-6)
    assert ipu.ops.fixed_width_bins(x, 1).tolist() == [-3.0]
    assert ipu.ops.fixed_width_bins(x.astype(np.float16), 4).dtype == np.float16


def test_transformations():
    """vmap counts each row; the derivative is zero; inputs may be sharded."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(3, 40)).astype(np.float32)
    levels = np.array([0.0, 1.0], np.float32)
    rows = jax.jit(jax.vmap(ipu.ops.histogram, in_axes=(0, None)))(x, levels)
    assert rows.tolist() == [counted(row, levels, False) for row in x]
    slope = jax.grad(lambda x: ipu.ops.histogram(x, levels)[0])(x[0])
    np.testing.assert_array_equal(slope, 0)
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("data",))
    flat = jax.device_put(x.ravel(), NamedSharding(mesh, P("data")))
    got = jax.jit(ipu.ops.histogram)(flat, levels)
    assert got.tolist() == counted(x.ravel(), levels, False)
    update = jax.jit(ipu.ops.histogram_update)
    assert update(got, flat, levels).tolist() == (2 * np.array(got)).tolist()
    assert "all-gather(" not in update.lower(got, flat, levels).compile().as_text()


REFUSED = [
    (lambda: ipu.ops.histogram(jnp.ones((2, 2)), jnp.ones(1)), r"inputs \[n\] of .*got float32 \["),
    (lambda: ipu.ops.histogram(jnp.arange(3), jnp.ones(1)), "got int32"),
    (lambda: ipu.ops.histogram(jnp.ones(2), jnp.ones(0)), "at least one level.* got 0"),
    (lambda: ipu.ops.histogram(jnp.ones(2), jnp.ones(1, jnp.float16)), "of float16 for inputs of"),
    (
        lambda: ipu.ops.histogram_update(jnp.ones(2), jnp.ones(2), jnp.ones(2)),
        r"float32 \[3\].*\[2",
    ),
    (lambda: ipu.ops.fixed_width_bins(jnp.ones(0), 2), "got 0 and 2"),
    (lambda: ipu.ops.fixed_width_bins(jnp.ones(1), 0), "got 1 and 0"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_refused(call, text: str):
    with pytest.raises(ipu.ConfigError, match=text):
        call()
