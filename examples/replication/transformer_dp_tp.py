"""Trains a transformer on eight IPUs: two-way data parallel, four-way tensor parallel.

The model is written for one device; `jit` partitions it by the shardings of its arguments. Ends
with the largest relative difference between its loss curve and that of one IPU.

Run: python examples/replication/transformer_dp_tp.py
"""

import os

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from transformer_model import Sizes, init_params, loss_of, tensor_parallel_specs

SIZES = Sizes(num_layers=2, num_heads=4, width=64, length=32, vocabulary=64)
BATCH_SIZE = 8
NUM_STEPS = 10
TOLERANCE = 1e-3

optimizer = optax.adam(1e-2)


def batches():
    """Sequences that count upwards, modulo the vocabulary."""
    rng = np.random.default_rng(0)
    for _ in range(NUM_STEPS):
        starts = rng.integers(0, SIZES.vocabulary, (BATCH_SIZE, 1))
        yield ((starts + np.arange(SIZES.length + 1)) % SIZES.vocabulary).astype(np.int32)


@jax.jit
def train_step(params, opt_state, tokens):
    loss, grads = jax.value_and_grad(loss_of)(params, tokens)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def train(params, place):
    """The losses; `place` shards a batch over the devices."""
    # The optimizer's state is sharded like the weights it is made from.
    opt_state = jax.jit(optimizer.init)(params)
    losses = []
    for tokens in batches():
        params, opt_state, loss = train_step(params, opt_state, place(tokens))
        losses.append(float(loss))
    return np.array(losses), params


def main():
    os.environ.setdefault("JAX_IPU_DEVICE_COUNT", "8")  # read when JAX makes the devices
    print("devices:", jax.devices())
    params = jax.jit(init_params, static_argnums=1)(jax.random.key(0), SIZES)
    wanted, _ = train(params, lambda tokens: tokens)

    mesh = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("data", "model"))
    shardings = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        tensor_parallel_specs("model"),
        is_leaf=lambda leaf: isinstance(leaf, PartitionSpec),
    )
    rows = NamedSharding(mesh, PartitionSpec("data"))
    losses, trained = train(
        jax.device_put(params, shardings), lambda tokens: jax.device_put(tokens, rows)
    )
    print("hidden weights:", trained["layers"]["up"].sharding.spec)
    difference = float(np.max(np.abs(losses - wanted) / wanted))
    print(f"loss: {losses[0]:.3f} -> {losses[-1]:.3f} in {NUM_STEPS} steps")
    print(f"largest relative difference from one IPU's loss curve: {difference:.1e}")
    if not (difference < TOLERANCE and losses[-1] < 0.8 * losses[0]):
        raise SystemExit(f"needs a difference below {TOLERANCE} and a loss that falls by a fifth")


if __name__ == "__main__":
    main()
