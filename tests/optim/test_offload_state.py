"""Optimizer state in the host's memory between steps."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError, PipelineError

PARAMS = {"w": np.ones((64, 48), np.float32), "b": np.zeros(4, np.float32)}
LARGE = PARAMS["w"].nbytes


def run(tx: Any) -> tuple[Any, Any, Any]:
    def step(params: Any, state: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            return jnp.sum(jnp.tanh(x @ p["w"]) ** 2) + jnp.sum((p["b"] - 1) ** 2)

        updates, state = tx.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    params = jax.tree.map(jnp.asarray, PARAMS)
    state = tx.init(params)
    x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    compiled = jax.jit(step, donate_argnums=(0, 1)).lower(params, state, x).compile()
    for _ in range(3):
        params, state = compiled(params, state, x)
    return params, state, compiled.memory_analysis()


@pytest.mark.parametrize(
    "make", [lambda: optax.adam(1e-2), lambda: optax.sgd(1e-2, momentum=0.9)], ids=["adam", "sgd"]
)
def test_state_on_the_host_gives_the_same_updates(make: Any) -> None:
    params, state, near = run(make())
    others, offloaded, far = run(ipu.optim.offload_state(make()))
    for wanted, got in zip(
        jax.tree.leaves((params, state)), jax.tree.leaves((others, offloaded)), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
    large = [leaf for leaf in jax.tree.leaves(offloaded) if leaf.nbytes >= 128]
    assert {leaf.sharding.memory_kind for leaf in large} == {"pinned_host"}
    size = len(large) * LARGE
    assert near.host_argument_size_in_bytes == 0
    assert far.host_argument_size_in_bytes == far.host_output_size_in_bytes == size
    assert far.host_alias_size_in_bytes == size
    assert near.argument_size_in_bytes - far.argument_size_in_bytes == size


def test_small_state_stays_and_bad_arguments_are_refused() -> None:
    _, state, _ = run(ipu.optim.offload_state(optax.adam(1e-2), minimum_remote_tensor_size=1 << 20))
    assert {leaf.sharding.memory_kind for leaf in jax.tree.leaves(state)} == {"device"}
    with pytest.raises(ConfigError, match=r"needs an optax.GradientTransformation; got 3"):
        ipu.optim.offload_state(3)  # type: ignore[arg-type]
    with pytest.raises(PipelineError, match="at least 1 byte; got 0"):
        ipu.optim.offload_state(optax.adam(1e-2), minimum_remote_tensor_size=0)
