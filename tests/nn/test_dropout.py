"""Dropout: rates, equal masks for equal seeds, and gradients with the same mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.nn.dropout import DROPOUT

KEY = jax.random.key_data(jax.random.key(3))
X = np.random.default_rng(0).uniform(1, 2, (64, 48)).astype(np.float32)


def dropped(x: Any, seed: Any = KEY, **options: Any) -> jax.Array:
    return ipu.nn.dropout(x, seed, **{"rate": 0.25, **options})


@pytest.fixture(params=["cpu", "ipu"])
def platform(request: pytest.FixtureRequest) -> Any:
    with jax.default_device(jax.devices(request.param)[0]):
        yield request.param


def test_rate_and_scale(platform: str) -> None:
    y = np.asarray(jax.jit(dropped)(X))
    kept = y != 0
    np.testing.assert_allclose(y[kept], X[kept] / np.float32(0.75), rtol=2e-7)
    # 3072 trials: a deviation is 0.0078.
    assert abs(kept.mean() - 0.75) < 0.04
    other = np.asarray(jax.jit(dropped)(X, KEY + np.uint32(1)))
    assert 0.2 < ((other != 0) != kept).mean() < 0.55


def test_equal_seeds_make_equal_masks(platform: str) -> None:
    typed = jax.random.wrap_key_data(KEY)
    first = jax.jit(dropped)(X)
    np.testing.assert_array_equal(first, jax.jit(lambda x: dropped(x, typed))(X))
    np.testing.assert_array_equal(np.asarray(first) != 0, np.asarray(dropped(2 * X)) != 0)


def test_derivatives_make_the_mask_again(platform: str) -> None:
    y = np.asarray(jax.jit(dropped)(X))
    mask = np.where(y != 0, np.float32(1 / 0.75), 0)
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(dropped(x) ** 2)))(X)
    np.testing.assert_allclose(gradient, 2 * y * mask, rtol=1e-6)
    _, tangent = jax.jit(lambda x: jax.jvp(dropped, (x,), (x + 1,)))(X)
    np.testing.assert_allclose(tangent, (X + 1) * mask, rtol=1e-6)
    second = jax.jit(jax.grad(lambda x: jnp.sum(jax.grad(lambda z: jnp.sum(dropped(z) ** 3))(x))))
    np.testing.assert_allclose(second(X), 6 * y * mask**2, rtol=1e-5)


def test_without_a_seed_each_run_has_a_mask_of_its_own(platform: str) -> None:
    """The gradient of a run has that run's mask; `reset_seed` begins again."""
    run = jax.jit(jax.value_and_grad(lambda x: jnp.sum(dropped(x, None)), has_aux=False))
    ipu.reset_seed(5)
    first, second = (np.asarray(run(X)[1]) for _ in range(2))
    assert ((first != 0) != (second != 0)).mean() > 0.2
    ipu.reset_seed(5)
    total, gradient = run(X)
    np.testing.assert_array_equal(gradient, first)
    np.testing.assert_allclose(total, (X * first).sum(), rtol=1e-5)
    assert "callback" not in str(jax.make_jaxpr(lambda x: dropped(x, None, rate=0.0))(X))


def test_nothing_but_the_seed_is_kept() -> None:
    _, transpose = jax.vjp(dropped, jnp.asarray(X))
    assert max(leaf.size for leaf in jax.tree.leaves(transpose)) <= 2


def test_noise_shape(platform: str) -> None:
    y = np.asarray(jax.jit(lambda x: dropped(x, noise_shape=(64, 1)))(X))
    kept = y != 0
    assert (kept.all(1) | ~kept.any(1)).all()
    assert 0.5 < kept.mean() < 0.95
    gradient = jax.jit(jax.grad(lambda x: jnp.sum(dropped(x, noise_shape=(64, 1)))))(X)
    np.testing.assert_array_equal(np.asarray(gradient) != 0, kept)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("noise", [(7, 1, 51), (1, 33, 1), (1, 1, 51), (7, 33, 1), (1, 1, 1)])
def test_shaped_masks_are_masks_of_their_shape(noise: tuple[int, ...], dtype: Any) -> None:
    """Each decision is that of a mask of the noise's shape, repeated."""
    x = np.random.default_rng(1).uniform(1, 2, (7, 33, 51)).astype(dtype)
    mask = np.asarray(jax.jit(dropped)(np.ones(noise, np.float32))) != 0
    wanted = np.where(mask, (x / 0.75).astype(dtype), 0)
    got = jax.jit(lambda x: dropped(x, noise_shape=noise))(x)
    np.testing.assert_allclose(got, wanted, rtol=2e-7 if dtype == np.float32 else 1e-3)


def test_vmap(platform: str) -> None:
    """Examples with one seed share its mask; with seeds of their own each has its own."""
    x = np.stack([X, 2 * X])
    one = np.asarray(jax.jit(jax.vmap(dropped, (0, None)))(x, KEY))
    np.testing.assert_array_equal(2 * one[0], one[1])
    seeds = np.stack([KEY, KEY + np.uint32(5)])
    own = np.asarray(jax.jit(jax.vmap(dropped))(x, seeds))
    for row, seed, y in zip(x, seeds, own, strict=True):
        np.testing.assert_array_equal(y, jax.jit(dropped)(row, seed))
    shared = np.asarray(jax.jit(jax.vmap(dropped, (None, 0)))(X, seeds))
    np.testing.assert_array_equal(shared[0], own[0])


def test_half_and_edges(platform: str) -> None:
    y = np.asarray(jax.jit(dropped)(X.astype(np.float16)))
    assert y.dtype == np.float16
    kept = y != 0
    np.testing.assert_allclose(y[kept], X[kept] / 0.75, rtol=2e-3)
    np.testing.assert_array_equal(dropped(X, rate=0.0), X)
    assert dropped(jnp.zeros((0, 3))).shape == (0, 3)
    assert dropped(jnp.ones(1)).shape == (1,)


def test_sharded_programs_and_replicas() -> None:
    mesh = jax.make_mesh((2,), ("a",), devices=jax.devices("ipu")[:2])
    placed = jax.device_put(X, jax.NamedSharding(mesh, jax.P("a")))
    whole = jax.jit(dropped)(jax.device_put(X, jax.devices("ipu")[0]), KEY)
    np.testing.assert_array_equal(jax.jit(dropped)(placed, KEY), whole)
    seeds = np.stack([KEY, KEY + np.uint32(5)])
    each = ipu.pmap(dropped)(np.stack([X, X]), seeds)
    np.testing.assert_array_equal(each[0], whole)
    assert (np.asarray(each[1]) != np.asarray(whole)).any()


@pytest.mark.parametrize(
    ("shape", "spec", "noise"),
    [
        ((64, 48), jax.P("a"), None),
        ((64, 48), jax.P(None, "b"), None),
        ((64, 48), jax.P("b", "a"), (64, 1)),
        ((64, 48), jax.P("b", "a"), (1, 48)),
        ((7, 1031), jax.P(None, ("a", "b")), None),
        ((5, 3, 9), jax.P("a", None, "b"), None),
        ((5, 9, 4), jax.P(None, "a", "b"), (5, 1, 4)),
        ((4,), jax.P(("b", "a")), None),
        ((4, 4), jax.P(None, ("a", "b")), None),
    ],
)
def test_devices_make_their_part_of_the_mask(
    shape: tuple[int, ...], spec: jax.P, noise: tuple[int, ...] | None
) -> None:
    """Blocks, with and without padding, equal those of one device, in the gradient too."""
    mesh = jax.sharding.Mesh(np.reshape(jax.devices("ipu")[:4], (2, 2)), ("a", "b"))
    sharding = jax.NamedSharding(mesh, spec)
    x = np.random.default_rng(2).uniform(1, 2, shape).astype(np.float32)

    def both(x: Any) -> Any:
        y, back = jax.vjp(lambda x: dropped(x, noise_shape=noise), x)
        return y, back(jnp.sin(x))[0]

    wanted = jax.jit(both)(x)
    step = jax.jit(lambda x: both(jax.lax.with_sharding_constraint(x, sharding)))
    found = step(jax.device_put(x, jax.NamedSharding(mesh, jax.P())))
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-6)
    assert (np.asarray(found[0]) == 0).any() or 0.75 ** np.size(x) > 0.01


def test_sharded_masks_need_no_whole_array() -> None:
    """What a device moves and keeps is a block: nothing is gathered."""
    mesh = jax.make_mesh((4,), ("a",), devices=jax.devices("ipu")[:4])
    x = jax.ShapeDtypeStruct((4096, 64), np.float32, sharding=jax.NamedSharding(mesh, jax.P("a")))
    compiled = jax.jit(lambda x: dropped(x)).lower(x).compile()
    assert "all_gather" not in compiled.as_text()
    assert compiled.memory_analysis().output_size_in_bytes == 4096 * 64


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: dropped(X, rate=1.0), "got rate=1.0"),
        (lambda: dropped(X, rate=-0.1), "got rate=-0.1"),
        (lambda: dropped(X, rate=float("nan")), "got rate=nan"),
        (lambda: dropped(X, noise_shape=(64, 2)), r"got noise_shape=\(64, 2\)"),
        (lambda: dropped(X, noise_shape=(64,)), r"got noise_shape=\(64,\)"),
        (lambda: dropped(X, 0.5), r"got float32 \[\]"),
        (lambda: dropped(X.astype(int)), "float dtype; got int"),
    ],
)
def test_refusals(call: Callable[[], Any], text: str) -> None:
    with pytest.raises(ipu.ConfigError, match=text):
        call()


def test_one_step_costs_less_than_a_mask_of_jax() -> None:
    def by_jax(x: Any, seed: Any) -> jax.Array:
        mask = jax.random.bernoulli(jax.random.wrap_key_data(seed), 0.75, x.shape)
        return jnp.where(mask, x / 0.75, 0)

    cycles = [
        jax.jit(f).lower(X, KEY).compile().cost_analysis()["cycles"] for f in (dropped, by_jax)
    ]
    assert cycles[0] < 0.5 * cycles[1]
    assert DROPOUT.name == "dropout"
