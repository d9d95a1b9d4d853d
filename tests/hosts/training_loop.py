"""A training over all processes of a job, which resumes from checkpoints: FOLDER RESULT [DELAY]."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import jax

if os.environ.get("WORLD_SIZE", "1") != "1":
    jax.distributed.initialize()

import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu

STEPS, PER_CALL = 40, 5


class _Slowly(ipu.training.Hook):
    """Tells of each call, and waits."""

    def after_call(self, run) -> None:
        print("step", run.step, flush=True)
        time.sleep(float(sys.argv[3]) if len(sys.argv) > 3 else 0)


def main(folder: str, result: str) -> None:
    mesh = Mesh(jax.devices(), "data")
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    rows = jax.local_device_count() * 2
    first = sum(d.process_index < jax.process_index() for d in jax.devices()) * 2
    data = np.random.default_rng(1).standard_normal((STEPS, jax.device_count() * 2, 16))
    data = data.astype(np.float32)[:, first : first + rows]
    tx = optax.adam(0.01)

    def loss_of(weights, x):
        return jnp.mean((jnp.tanh(x @ weights["a"]) @ weights["b"] - jnp.sin(x[:, :4])) ** 2)

    def step(state, batch):
        weights, moments = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
        updates, moments = tx.update(gradients, moments)
        return (optax.apply_updates(weights, updates), moments), loss

    draw = np.random.default_rng(2).standard_normal
    weights = {
        "a": jax.device_put(np.float32(draw((16, 32)) * 0.2), NamedSharding(mesh, P(None, "data"))),
        "b": jax.device_put(np.float32(draw((32, 4)) * 0.2), whole),
    }
    loop = ipu.training.Loop(
        step,
        steps_per_call=PER_CALL,
        hooks=[ipu.training.Checkpoint(folder, every=PER_CALL), _Slowly()],
    )
    state = (weights, jax.jit(tx.init)(weights))
    state = loop.train(state, ipu.Infeed(list(data), sharding=split), steps=STEPS)
    parts = [s.data for x in jax.tree.leaves(state) for s in x.addressable_shards]
    digest = [np.asarray(x).tobytes().hex() for x in parts]
    Path(f"{result}.{jax.process_index()}").write_text("\n".join(digest))


if __name__ == "__main__":
    main(*sys.argv[1:3])
