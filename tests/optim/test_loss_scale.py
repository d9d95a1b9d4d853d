"""Fixed and automatic loss scales."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu
from tests.optim import reference

optim = ipu.optim
LARGEST = 65504.0


def test_gradients_are_divided_by_the_scale():
    tx = optim.loss_scale(optax.sgd(1.0), 1024.0)
    params = jnp.ones(3, jnp.float16)
    state = tx.init(params)

    def loss_of(params):
        return jnp.sum(params).astype(jnp.float32) * 1e-7

    @jax.jit
    def step(params, state):
        grads = jax.grad(lambda p: optim.scale_loss(loss_of(p), state))(params)
        return *tx.update(grads, state, params), grads

    updates, state, grads = step(params, state)
    assert grads.dtype == updates.dtype == jnp.float16
    np.testing.assert_allclose(grads.astype(np.float32), 1024e-7, rtol=1e-2)
    np.testing.assert_allclose(updates.astype(np.float32), -1e-7, rtol=0.2)  # a subnormal half
    assert float(state.scale) == 1024.0
    state = optim.set_hyperparameters(state, loss_scaling=2.0)
    np.testing.assert_array_equal(step(params, state)[2], np.float16(2e-7))


def test_state_of_the_optimizer_is_float32():
    """Second moments of half parameters would round to zero in half."""
    tx = optim.loss_scale(optax.adam(0.5, eps=1e-12))
    params = jnp.ones(2, jnp.float16)
    state = tx.init(params)
    updates, after = tx.update(jnp.full(2, 2.0**-9, jnp.float16), state, params)
    pairs = zip(jax.tree.leaves(after), jax.tree.leaves(state), strict=True)
    assert all(new.dtype == old.dtype for new, old in pairs)
    np.testing.assert_allclose(updates, -0.5, rtol=1e-3)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan, LARGEST])
def test_an_overflow_skips_the_update(bad: float):
    tx = optim.loss_scale(optim.adam(0.1), 512.0, automatic=True, period=10)
    params = {"a": jnp.ones(2, jnp.float16), "b": jnp.ones((), jnp.float16)}
    state = tx.init(params)
    update = jax.jit(tx.update)
    good = {"a": jnp.ones(2, jnp.float16), "b": jnp.float16(1)}
    _, state = update(good, state, params)
    updates, after = update({**good, "b": jnp.float16(bad)}, state, params)
    assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(updates))
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), after.inner, state.inner))
    assert (float(after.scale), int(after.skipped), int(after.step)) == (256.0, 1, 0)
    updates, after = update(good, after, params)
    assert int(after.inner.count) == 2
    assert (np.asarray(updates["a"]) != 0).all()


def test_a_fixed_scale_skips_too_and_stays():
    tx = optim.loss_scale(optim.sgd(1.0), 512.0)
    updates, state = tx.update(jnp.array([np.inf, 1.0]), tx.init(jnp.zeros(2)))
    np.testing.assert_array_equal(updates, 0)
    assert (float(state.scale), int(state.skipped)) == (512.0, 1)


@pytest.mark.parametrize(
    ("period", "location", "share"), [(1, 0.0625, 1e-7), (3, 0.01, 0.25), (2, 0.5, 0.5)]
)
def test_scales_follow_the_histogram(period: int, location: float, share: float):
    """The scales of forty updates against a loop over plain numbers."""
    rng = np.random.default_rng(period)
    plain = [10.0 ** rng.uniform(-6, 1.5) * rng.normal(size=24) for _ in range(40)]
    want = reference.automatic_scales(plain, 64.0, location * LARGEST, share, period, LARGEST)
    tx = optim.loss_scale(
        optax.sgd(1.0),
        64.0,
        automatic=True,
        period=period,
        bin_edge_location=location,
        threshold_upper_count_proportion=share,
    )
    update = jax.jit(tx.update)
    state = tx.init(jnp.zeros(24, jnp.float16))
    got = [float(state.scale)]
    for gradient in plain:
        with np.errstate(over="ignore"):
            scaled = (gradient * got[-1]).astype(np.float16)
        _, state = update(scaled, state)
        got.append(float(state.scale))
    assert len(set(want)) > 4
    assert got == want


def test_scales_stay_in_their_range():
    tx = optim.loss_scale(
        optax.sgd(1.0), 8.0, automatic=True, increase_factor=4.0, minimum=2.0, maximum=16.0
    )
    state = tx.init(jnp.zeros(2))
    seen = []
    for gradient in (1.0, 1.0, np.inf, np.inf, np.inf, np.inf, 1.0):
        _, state = tx.update(jnp.full(2, gradient), state)
        seen.append(float(state.scale))
    assert seen == [16.0, 16.0, 8.0, 4.0, 2.0, 2.0, 8.0]


def test_scale_loss_finds_the_scale():
    params = jnp.zeros(2)
    fixed = optim.adam(loss_scaling=128.0)
    labels = {"a": 0, "b": 1}
    two = {"a": params, "b": params}
    same = optax.partition({0: fixed, 1: optim.sgd(0.1, loss_scaling=128.0)}, labels)
    variable = optim.gradient_accumulation(optim.lamb(loss_scaling=optim.variable(4.0)), 2)
    for state, want in (
        (optax.adam(0.1).init(params), 3.0),
        (fixed.init(params), 384.0),
        (same.init(two), 384.0),
        (variable.init(params), 12.0),
        (optim.offload_state(optim.loss_scale(optax.adam(0.1), 2.0)).init(params), 6.0),
    ):
        scaled = jax.jit(optim.scale_loss)(jnp.float16(3), state)
        assert (scaled, scaled.dtype) == (want, np.float32)
    other = optax.partition({0: fixed, 1: optim.sgd(0.1, loss_scaling=64.0)}, labels)
    with pytest.raises(ipu.ConfigError, match=r"with one loss scale; got 64.0 and 128.0. Pass"):
        optim.scale_loss(1.0, other.init(two))


def half_training(tx: Any, num_steps: int = 300) -> tuple[float, Any]:
    """Fits targets of some millimetres, in metres, in float16.

    Returns the error relative to the targets' size, and the scales.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 8)).astype(np.float16)
    y = np.sin(x[:, :4].astype(np.float32))  # millimetres

    def loss_of(params, state):
        output = jnp.tanh(x @ params["w"]) @ params["v"]
        error = 1e-3 * (output.astype(jnp.float32) - y)
        return optim.scale_loss(jnp.mean(error**2), state)

    def step(carry, _):
        params, state = carry
        grads = jax.grad(loss_of)(params, state)
        updates, state = tx.update(grads, state, params)
        return (optax.apply_updates(params, updates), state), state.scale

    w = rng.normal(size=(8, 32)) / 3
    params = {"w": w.astype(np.float16), "v": np.zeros((32, 4), np.float16)}
    start = (params, tx.init(params))
    (params, _), scales = jax.jit(lambda c: jax.lax.scan(step, c, None, num_steps))(start)
    single = {name: np.asarray(value, np.float32) for name, value in params.items()}
    error = np.tanh(x.astype(np.float32) @ single["w"]) @ single["v"] - y
    return float(np.abs(error).mean() / np.abs(y).mean()), np.asarray(scales)


def test_half_training_needs_the_scale():
    adam = optim.adam(1e-2, eps=1e-12)
    without, _ = half_training(optim.loss_scale(adam, 1.0))
    assert without == 1.0  # all gradients round to zero, so that the last layer stays zero
    got, scales = half_training(optim.loss_scale(adam, 1.0, automatic=True))
    assert got < 0.2, (got, scales)
    assert scales.max() == 2.0**15


REPLICAS = 4


def on_replicas(tx: Any, devices: Any, grads: np.ndarray, params: np.ndarray) -> tuple[Any, Any]:
    """Parameters and state of each replica; grads [steps, replicas, ...]."""

    def epoch(params, grads):
        def step(carry, grad):
            params, state = carry
            updates, state = tx.update(grad, state, params)
            return (optax.apply_updates(params, updates), state), None

        return jax.lax.scan(step, (params, tx.init(params)), grads)[0]

    run = ipu.pmap(epoch, in_axes=(None, 1), devices=devices)
    return run(params, grads)


def replica_wraps(inner: Any) -> dict[str, Any]:
    def scaled(tx: Any, **options: Any) -> Any:
        return optim.loss_scale(tx, 256.0, automatic=True, period=2, **options)

    return {
        "cross_replica": optim.cross_replica(scaled(inner)),
        "around_cross_replica": scaled(optim.cross_replica(inner), axis_name="replica"),
        "shard_state": optim.shard_state(scaled(inner)),
        "offloaded": optim.shard_state(optim.offload_state(scaled(inner))),
        "accumulated": optim.cross_replica_gradient_accumulation(scaled(inner), 2),
    }


@pytest.mark.parametrize("name", replica_wraps(optim.lamb()))
def test_replicas_agree(replicas, name: str):
    """One replica's overflow skips the update of all; norms and counts are of whole arrays."""
    rng = np.random.default_rng(5)
    params = rng.normal(size=(3, 5)).astype(np.float32)  # 15 elements: no multiple of the replicas
    grads = rng.normal(size=(6, REPLICAS, 3, 5)).astype(np.float32)
    if name == "accumulated":
        grads = np.repeat(grads, 2, axis=0)
    grads[-2, 1, 2, 4] = np.inf
    inner = optim.lamb(0.01, weight_decay=0.1)
    got, state = on_replicas(replica_wraps(inner)[name], replicas(REPLICAS), 256 * grads, params)

    if name == "accumulated":
        grads = grads.reshape(6, 2, REPLICAS, 3, 5).mean(1)
    plain = grads.mean(1)
    scale = reference.automatic_scales(list(plain), 256.0, 0.0625 * LARGEST, 1e-7, 2, np.inf)
    kept = np.isfinite(plain).all((1, 2))
    assert kept.sum() == 5
    used = [g * 256 / s for g, s, keep in zip(plain, scale, kept, strict=False) if keep]
    want = reference.lamb(params.astype(np.float64), used, 0.01, decay=0.1)
    for replica in range(REPLICAS):
        np.testing.assert_allclose(got[replica], want, rtol=1e-5, atol=1e-5)
    state = state.inner if name == "accumulated" else state
    np.testing.assert_array_equal(state.scale, scale[-1])
    np.testing.assert_array_equal(state.skipped, 1)


@pytest.mark.parametrize(
    ("tx", "formula"),
    [
        (
            optim.lamb(0.01, weight_decay=0.1, max_weight_norm=1.5),
            lambda w, g: reference.lamb(w, g, 0.01, decay=0.1, bound=1.5),
        ),
        (
            optim.sgd(0.1, 0.9, 0.5, 0.01, combined_accumulation=True),
            lambda w, g: reference.sgd(w, g, 0.1, 0.9, 0.5, 0.01),
        ),
        (
            optim.rmsprop(optim.variable(0.01), 0.9, 1e-3, 0.1, 0.8, centered=True),
            lambda w, g: reference.rmsprop(w, g, 0.01, 0.9, 1e-3, 0.1, 0.8, True),
        ),
    ],
    ids=["lamb", "sgd", "rmsprop"],
)
@pytest.mark.parametrize("wrap", [optim.cross_replica, optim.shard_state])
def test_optimizers_on_replicas(replicas, wrap, tx, formula):
    rng = np.random.default_rng(6)
    params = rng.normal(size=(3, 5)).astype(np.float32)
    grads = rng.normal(size=(5, REPLICAS, 3, 5)).astype(np.float32)
    got, _ = on_replicas(wrap(tx), replicas(REPLICAS), grads, params)
    want = formula(params.astype(np.float64), grads.astype(np.float64).mean(1))
    np.testing.assert_allclose(got, np.stack([want] * REPLICAS), rtol=1e-5, atol=1e-5)


def test_lamb_of_sharded_weights(replicas):
    """Each replica holds one row of the weights; one all-reduce makes the norms."""
    rng = np.random.default_rng(7)
    params = rng.normal(size=(REPLICAS, 6)).astype(np.float32)
    grads = rng.normal(size=(1, REPLICAS, 6)).astype(np.float32)
    tx = optim.lamb(0.01, axis_name="replica")

    def step(row, grad):
        updates, _ = tx.update(grad, tx.init(row), row)
        return row + updates

    run = ipu.pmap(step, devices=replicas(REPLICAS))
    got = run(params, grads[0])
    want = reference.lamb(params.astype(np.float64), grads.astype(np.float64), 0.01)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    text = run.lower(params, grads[0]).as_text()
    assert text.count("stablehlo.all_reduce") == 1
