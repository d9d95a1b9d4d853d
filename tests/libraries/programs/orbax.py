"""Orbax: checkpoints."""

from __future__ import annotations

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp

from tests.libraries.program import program

LIBRARIES = ("orbax-checkpoint", "optax")

OPTIMIZER = optax.adam(1e-2)


def _start():
    params = {
        "w": jax.random.normal(jax.random.key(0), (16, 4)),
        "half": jnp.linspace(0, 1, 5, dtype=jnp.bfloat16),
        "b": jnp.zeros(4),
    }
    return {"params": params, "opt_state": OPTIMIZER.init(params), "step": jnp.zeros((), jnp.int32)}


@jax.jit
def _train_step(state):
    def loss_of(params):
        x = jnp.sin(jnp.arange(48.0)).reshape(3, 16)
        y = jnp.tanh(x @ params["w"] + params["b"])
        return jnp.sum(y**2) + jnp.sum(params["half"] ** 2).astype(jnp.float32)

    grads = jax.grad(loss_of)(state["params"])
    updates, opt_state = OPTIMIZER.update(grads, state["opt_state"])
    params = optax.apply_updates(state["params"], updates)
    return {"params": params, "opt_state": opt_state, "step": state["step"] + 1}


def _assert_equal(first, second):
    jax.tree.map(np.testing.assert_array_equal, first, second)


@program(1e-2, "bfloat16 has 8 bits; what is saved is bits")
def saved_and_restored():
    state = _train_step(_start())
    with tempfile.TemporaryDirectory() as folder, ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(Path(folder) / "state", state)
        checkpointer.wait_until_finished()
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
        restored = checkpointer.restore(Path(folder) / "state", abstract)
    _assert_equal(restored, state)
    assert restored["params"]["w"].sharding == state["params"]["w"].sharding
    return _train_step(restored)


@program(1e-2, "bfloat16 has 8 bits; what is saved is bits")
def managed_while_training_goes_on():
    state = _start()
    options = ocp.CheckpointManagerOptions(max_to_keep=2, enable_async_checkpointing=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        ocp.CheckpointManager(folder, options=options) as manager,
    ):
        for step in range(4):
            state = _train_step(state)
            manager.save(step, args=ocp.args.StandardSave(state))
            if step == 2:
                wanted = state
        manager.wait_until_finished()
        assert sorted(manager.all_steps()) == [2, 3]
        restored = manager.restore(2, args=ocp.args.StandardRestore(state))
    _assert_equal(restored, wanted)
    return _train_step(restored)
