"""`ipu.remedies`: what is tried, that it is what the change itself gives, and bad input."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import SingleDeviceSharding

import ipujax as ipu

WEIGHTS = [jax.ShapeDtypeStruct((1024, 1024), jnp.float32)] * 24
X = jax.ShapeDtypeStruct((4096, 1024), jnp.float32)
TX = optax.adam(1e-3)
STATE = jax.eval_shape(TX.init, WEIGHTS)


def loss(weights: Any, x: jax.Array) -> jax.Array:
    for w in weights:
        x = jax.nn.gelu(x @ w)
    return jnp.mean(x**2)


def step(weights: Any, state: Any, x: jax.Array) -> Any:
    updates, state = TX.update(jax.grad(loss)(weights, x), state, weights)
    return optax.apply_updates(weights, updates), state


def test_what_fits_needs_nothing() -> None:
    found = ipu.remedies(jnp.tanh, jax.ShapeDtypeStruct((8,), jnp.float32))
    assert found.before.fits
    assert found.tried == found.fitting == ()


def test_each_change_gives_what_it_gives_by_hand(device: jax.Device) -> None:
    found = ipu.remedies(jax.jit(step, donate_argnums=(0, 1)), WEIGHTS, STATE, X, batch=2, state=1)
    assert not found.before.fits
    by_text = {each.text: each for each in found.tried}

    recomputed = by_text["ipu_allow_recompute=True"]
    lowered = (
        jax.jit(step, donate_argnums=(0, 1))
        .trace(WEIGHTS, STATE, X)
        .lower(lowering_platforms=("ipu",))
    )
    by_hand = lowered.compile(dict(recomputed.options)).cost_analysis()
    assert recomputed.cost.analysis == by_hand
    assert recomputed.keeps_results

    smaller = by_text["ipu.accumulate over 4 micro-batches"]

    def accumulating(weights: Any, state: Any, x: jax.Array) -> Any:
        gradient = ipu.accumulate(jax.grad(loss), micro_batches=4)
        parts = x.reshape(4, x.shape[0] // 4, *x.shape[1:])
        updates, state = TX.update(gradient(weights, parts), state, weights)
        return optax.apply_updates(weights, updates), state

    by_hand = ipu.cost(jax.jit(accumulating, donate_argnums=(0, 1)), WEIGHTS, STATE, X)
    assert smaller.cost.fullest_tile_bytes == pytest.approx(by_hand.fullest_tile_bytes, rel=0.02)
    assert smaller.cycles == pytest.approx(by_hand.cycles, rel=0.02)
    assert smaller.runs == 1
    assert not smaller.keeps_results

    waiting = by_text["argument 1 in streaming memory"]
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    far = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=host), STATE)
    tx = ipu.optim.offload_state(TX, minimum_remote_tensor_size=1)

    def offloading(weights: Any, state: Any, x: jax.Array) -> Any:
        updates, state = tx.update(jax.grad(loss)(weights, x), state, weights)
        return optax.apply_updates(weights, updates), state

    by_hand = ipu.cost(jax.jit(offloading, donate_argnums=(0, 1)), WEIGHTS, far, X)
    assert waiting.cost.parts["state"] < found.before.parts["state"]
    assert waiting.cost.fullest_tile_bytes == pytest.approx(by_hand.fullest_tile_bytes, rel=0.05)


def test_those_that_fit_come_first_and_the_fastest_of_them() -> None:
    found = ipu.remedies(step, WEIGHTS[:8], jax.eval_shape(TX.init, WEIGHTS[:8]), X, batch=2)
    assert 0 < len(found.fitting) < len(found.tried)
    assert found.tried[: len(found.fitting)] == found.fitting
    cycles = [each.cycles for each in found.fitting]
    assert cycles == sorted(cycles)
    lines = str(found).splitlines()
    assert lines[1].split()[0] == f"{found.before.fullest_tile_bytes:,}"
    assert sum(" fits " in line for line in lines) == len(found.fitting)


def test_changes_are_joined_when_one_is_not_enough() -> None:
    weights = WEIGHTS * 2
    state = jax.eval_shape(TX.init, weights)
    found = ipu.remedies(step, weights, state, X, batch=2, state=1, seconds=300)
    assert found.fitting
    assert all("; " in each.text for each in found.fitting)


def test_half_partials_are_only_for_half_products() -> None:
    def texts(dtype: Any) -> list[str]:
        x = jax.ShapeDtypeStruct((16384, 16384), dtype)
        return [each.text for each in ipu.remedies(lambda x: x @ x, x).tried]

    assert "ipu_partials_type=half" in texts(jnp.float16)
    assert "ipu_partials_type=half" not in texts(jnp.float32)


def test_trials_end_in_time() -> None:
    assert len(ipu.remedies(jax.grad(loss), WEIGHTS, X, seconds=0).tried) == 1


def test_bad_input_is_refused() -> None:
    with pytest.raises(ipu.ConfigError, match=r"\[remedies\] needs a function; got int"):
        ipu.remedies(3)  # type: ignore[arg-type]
    with pytest.raises(ipu.ConfigError, match="needs batch to name arguments from 0 to 1; got 2"):
        ipu.remedies(loss, WEIGHTS, X, batch=2)
    with pytest.raises(ipu.ConfigError, match="needs state to name arguments from 0 to 1; got -1"):
        ipu.remedies(loss, WEIGHTS, X, state=-1)
    with pytest.raises(ipu.ConfigError, match="a first axis of samples; got a number in argument"):
        ipu.remedies(lambda x, n: x * n, X, 3.0, batch=1)
    with pytest.raises(ipu.ConfigError, match="needs names from"):
        ipu.remedies(jax.grad(loss), WEIGHTS, X, options={"ipu_what": 1})
    jitted = jax.jit(jax.grad(loss), compiler_options={"ipu_outline": "auto"})
    with pytest.raises(ipu.ConfigError, match="a function without compiler options"):
        ipu.remedies(jitted, WEIGHTS, X, batch=1)
