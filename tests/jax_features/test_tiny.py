"""The smoke test of `make tiny`: the whole way once, in seconds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

pytestmark = pytest.mark.tiny


def test_the_default_devices_are_four_ipus_of_the_model(run_python, monkeypatch):
    monkeypatch.delenv("JAX_IPU_DEVICE_COUNT")
    run = run_python("-c", "import jax; print(jax.devices())")
    assert run.stdout == f"[{', '.join(f'IpuDevice(id={i})' for i in range(4))}]\n", run.stderr


def test_what_a_device_tells():
    devices = jax.devices()
    first = devices[0]
    assert (first.platform, first.num_ipus, first.num_tiles) == ("ipu", 1, 1472)
    assert (first.bytes_per_tile, first.is_ipu_model) == (638_976, True)
    assert first.clock_hz == 1.33e9


def test_jit_grad_vmap_against_numpy():
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((5, 8), np.float32), rng.standard_normal((8, 3), np.float32)

    @jax.jit
    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    hidden = np.tanh(x @ w)
    np.testing.assert_allclose(loss(w, x), np.sum(hidden**2), rtol=1e-5)
    gradient = jax.jit(jax.grad(loss))(w, x)
    np.testing.assert_allclose(gradient, x.T @ (2 * hidden * (1 - hidden**2)), rtol=1e-4, atol=1e-5)
    rows = jax.jit(jax.vmap(loss, in_axes=(None, 0)))(w, x)
    np.testing.assert_allclose(rows, np.sum(hidden**2, axis=1), rtol=1e-5)


def test_a_training_step_with_adam_lowers_the_loss():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((64, 4), np.float32)
    y = x @ np.array([1.0, -2.0, 3.0, 0.5], np.float32)
    optimizer = optax.adam(0.1)

    def step(state, _):
        w, opt_state = state
        value, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        updates, opt_state = optimizer.update(gradient, opt_state)
        return (optax.apply_updates(w, updates), opt_state), value

    w = jnp.zeros(4)
    (w, _), losses = jax.jit(lambda s: jax.lax.scan(step, s, None, 200))((w, optimizer.init(w)))
    assert losses[-1] < 1e-3 * losses[0]
    np.testing.assert_allclose(w, [1.0, -2.0, 3.0, 0.5], atol=0.05)


def test_costs_and_memory_are_reported():
    x = np.ones((64, 64), np.float32)
    compiled = jax.jit(lambda a: jnp.tanh(a @ a)).lower(x).compile()
    cost = compiled.cost_analysis()
    assert cost["cycles"] > 0
    assert cost["flops"] >= 2 * 64**3
    assert cost["seconds"] == pytest.approx(cost["cycles"] / 1.33e9, rel=1e-6)
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 64 * 64 * 4
    assert memory.output_size_in_bytes == 64 * 64 * 4
    assert compiled.as_text()
