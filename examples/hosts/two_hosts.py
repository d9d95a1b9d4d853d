"""Trains a small network data-parallel over all IPUs of all processes of a job.

python -m ipujax launch -n 2 --replicas 4 python examples/hosts/two_hosts.py

Every process calls the same functions in the same order, and makes its own part of the data. Alone,
it trains on the IPUs of one process, with the same result.
"""

import os

import jax

if "WORLD_SIZE" in os.environ or "SLURM_JOB_ID" in os.environ:
    jax.distributed.initialize()

import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

ROWS, STEPS = 64, 100


def part(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the data, which no process needs whole."""
    rows = np.arange(first, last, dtype=np.float32)[:, None]
    x = np.sin(rows * np.arange(1, 9, dtype=np.float32))
    return x, np.tanh(x[:, :4] + x[:, 4:])


def main() -> float:
    mesh = Mesh(jax.devices(), "data")
    split, whole = NamedSharding(mesh, P("data")), NamedSharding(mesh, P())
    own = ROWS * jax.local_device_count() // jax.device_count()
    first = own * jax.process_index()
    x, y = (jax.make_array_from_process_local_data(split, a) for a in part(first, first + own))

    key = jax.random.key(0)
    weights = {
        "a": jax.random.normal(key, (8, 32)) * 0.3,
        "b": jax.random.normal(jax.random.fold_in(key, 1), (32, 4)) * 0.3,
    }
    weights = jax.device_put(jax.tree.map(np.asarray, weights), whole)
    tx = optax.adam(0.02)
    state = jax.jit(tx.init)(weights)

    def loss_of(weights, x, y):
        return jnp.mean((jnp.tanh(x @ weights["a"]) @ weights["b"] - y) ** 2)

    @jax.jit
    def step(weights, state, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        updates, state = tx.update(gradients, state)
        return optax.apply_updates(weights, updates), state, loss

    for _ in range(STEPS):
        weights, state, loss = step(weights, state, x, y)
    return float(loss)


if __name__ == "__main__":
    loss = main()
    print(f"process {jax.process_index()} of {jax.process_count()}: loss {loss:.6f}")
    assert loss < 0.02, loss
