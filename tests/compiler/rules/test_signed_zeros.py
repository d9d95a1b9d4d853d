"""Maxima and minima of zeros: +0 is larger than -0, as in IEEE 754 and StableHLO, in every op."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

#: Ops of a (rows, columns) array, and where their results say that a maximum has a sign: those are
#: negative whose operands all are.
OPS: dict[str, tuple[Callable, Callable]] = {
    "reduce rows": (lambda x: x.max(1), lambda s: s.all(1)),
    "reduce columns": (lambda x: x.max(0), lambda s: s.all(0)),
    "reduce all": (lambda x: x.max(), lambda s: s.all()),
    "reduce what is computed": (lambda x: (x * 3).max(1), lambda s: s.all(1)),
    "elementwise": (lambda x: jnp.maximum(x, x[::-1]), lambda s: s & s[::-1]),
    "cumulative": (lambda x: lax.cummax(x, 1), lambda s: np.logical_and.accumulate(s, 1)),
    "windows": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 1), "VALID"),
        lambda s: s[:, 1:] & s[:, :-1],
    ),
    "large windows": (
        lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, x.shape[1]), (1, 1), "VALID"),
        lambda s: (s[1:] & s[:-1]).all(1, keepdims=True),
    ),
    "scatter": (lambda x: x.at[0].max(x[1]), lambda s: np.vstack([s[:1] & s[1], s[1:]])),
    "segments": (
        lambda x: jax.ops.segment_max(x, jnp.arange(len(x)) % 2, 2),
        lambda s: np.stack([s[::2].all(0), s[1::2].all(0)]),
    ),
}


def zeros(dtype: str, shape: tuple[int, ...], seed: int) -> np.ndarray:
    negative = np.random.default_rng(seed).random(shape) < 0.7
    return np.where(negative, -0.0, 0.0).astype(jnp.dtype(dtype))


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64"])
def test_a_zero_without_a_sign_is_larger(name: str, dtype: str):
    op, wants = OPS[name]
    with jax.enable_x64(dtype == "float64"):
        largest = jax.jit(op)
        for seed, shape in enumerate([(2, 3), (4, 2), (5, 17), (3, 64), (40, 129)]):
            x = zeros(dtype, shape, seed)
            want = wants(np.signbit(x.astype(np.float64)))
            np.testing.assert_array_equal(np.signbit(np.asarray(largest(x), np.float64)), want)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_minima_mirror_maxima(dtype: str):
    with jax.enable_x64(dtype == "float64"):
        for seed, shape in enumerate([(2, 3), (5, 17), (40, 129)]):
            x = zeros(dtype, shape, seed)
            positive = ~np.signbit(x)
            results = jax.jit(lambda x: (x.min(0), x.min(1), lax.cummin(x, 1), x.at[0].min(x[1])))(
                x
            )
            wants = (
                positive.all(0),
                positive.all(1),
                np.logical_and.accumulate(positive, 1),
                np.vstack([positive[:1] & positive[1], positive[1:]]),
            )
            for found, want in zip(results, wants, strict=True):
                np.testing.assert_array_equal(~np.signbit(np.asarray(found)), want)


def test_maxima_over_devices():
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("i",))
    run = jax.jit(
        jax.shard_map(
            lambda x: (lax.pmax(x, "i"), lax.pmin(x, "i")),
            mesh=mesh,
            in_specs=P("i"),
            out_specs=P(),
        )
    )
    x = zeros("float32", (4, 50), 0)
    largest, smallest = run(x)
    np.testing.assert_array_equal(np.signbit(largest[0]), np.signbit(x).all(0))
    np.testing.assert_array_equal(np.signbit(smallest[0]), np.signbit(x).any(0))


@pytest.mark.parametrize("at", [0, 1, 16, 40])
def test_a_nan_stays(at: int):
    x = zeros("float32", (3, 41), 1)
    x[1, at] = np.nan
    for name in ("reduce rows", "reduce columns", "reduce all", "cumulative", "windows"):
        op = OPS[name][0]
        with jax.default_device(jax.devices("cpu")[0]):  # the oracle: which results a NaN reaches
            want = op(jnp.asarray(x))
        np.testing.assert_array_equal(np.isnan(jax.jit(op)(x)), np.isnan(want))
