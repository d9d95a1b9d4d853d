"""Optimizer state in streaming memory, sharded over the devices, through many steps of training."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax

STEPS = 100


def test_a_hundred_steps_with_state_on_the_host(replicas: Callable[[int], list[jax.Device]]):
    """Replicated tensor sharding gives the numbers of state on the devices, in constant memory."""
    devices = replicas(4)
    mesh = Mesh(np.array(devices), ("data",))
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    tx = optax.adam(0.1)
    params = {"w": np.linspace(-1, 1, 64, dtype=np.float32), "b": np.zeros(4, np.float32)}
    goal = jax.tree.map(lambda p: jnp.cos(3 * p), params)

    def step(params: Any, state: Any) -> Any:
        state = jax.device_put(state, jax.memory.Space.Device)
        gradients = jax.grad(lambda p: optax.tree.norm(optax.tree.sub(p, goal)) ** 2)(params)
        updates, state = tx.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    def run(kind: str) -> Any:
        like = jax.eval_shape(tx.init, params)
        shardings = jax.tree.map(
            lambda leaf: (split if leaf.ndim else whole).with_memory_kind(kind), like
        )
        state = jax.jit(tx.init, out_shardings=shardings)(params)
        jitted = jax.jit(step, donate_argnums=1, out_shardings=(whole, shardings))
        at, used = jax.device_put(params, whole), []
        for _ in range(STEPS):
            old = state
            at, state = jitted(at, state)
            assert all(leaf.is_deleted() for leaf in jax.tree.leaves(old))
            used.append(bytes_of_host(devices[-1]))
        assert jax.tree.map(lambda leaf: leaf.sharding, state) == shardings
        assert len(set(used)) == 1
        return at, state, used[-1]

    gc.collect()
    before = bytes_of_host(devices[-1])
    *expected, on_device = run("device")
    *got, on_host = run("pinned_host")
    jax.tree.map(np.testing.assert_array_equal, got, expected)
    if devices[0].platform == "ipu":
        assert on_device == before
        assert on_host == before + 4 * (2 * (64 + 4) // 4 + 1)  # moments are split, count is not


def bytes_of_host(device: jax.Device) -> int:
    """In its streaming memory; 0 on other platforms."""
    if device.platform != "ipu":
        return 0
    return ipujax.memory_stats(device)["pinned_host"]["bytes_in_use"]
