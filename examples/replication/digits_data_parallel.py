"""Trains a digits classifier on four IPUs with data parallelism, in two ways.

`ipu.pmap` runs the step of one replica on each IPU, and the optimizer averages the gradients.
`jit` with shardings runs the step of one device, unchanged, on arrays sharded over the IPUs. Both
use the same batches, so they end with the same weights; the test accuracy must reach 97 %.

Run: python examples/replication/digits_data_parallel.py
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from sklearn.datasets import load_digits

import ipujax as ipu

NUM_REPLICAS = 4
BATCH_SIZE = 128  # of all replicas together
NUM_EPOCHS = 40
NUM_TEST = 360
SIZES = (64, 128, 10)
WANTED_ACCURACY = 0.97
TOLERANCE = 1e-3


def load():
    """(train images [n, 64], train labels [n], test images, test labels), shuffled."""
    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    images = (bunch.data / 16).astype(np.float32)[order]
    labels = bunch.target.astype(np.int32)[order]
    return images[NUM_TEST:], labels[NUM_TEST:], images[:NUM_TEST], labels[:NUM_TEST]


def batches(images, labels):
    """All epochs' batches, the same at each call."""
    rng = np.random.default_rng(1)
    for _ in range(NUM_EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(order) - BATCH_SIZE + 1, BATCH_SIZE):
            chosen = order[start : start + BATCH_SIZE]
            yield images[chosen], labels[chosen]


def init_params():
    rng = np.random.default_rng(2)
    return [
        (rng.normal(size=(m, n), scale=(2 / m) ** 0.5).astype(np.float32), np.zeros(n, np.float32))
        for m, n in itertools.pairwise(SIZES)
    ]


def logits_of(params, x):
    (w0, b0), (w1, b1) = params
    return jax.nn.relu(x @ w0 + b0) @ w1 + b1


def loss_of(params, x, y):
    return optax.softmax_cross_entropy_with_integer_labels(logits_of(params, x), y).mean()


def step_of(tx):
    """One training step; nothing in it knows of replicas."""

    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step


def train_with_pmap(stream):
    """Batches [replicas, n, ...]; weights are what all replicas share."""
    tx = ipu.optim.cross_replica(optax.adam(2e-3))  # the one line that makes it data-parallel
    step = ipu.pmap(
        step_of(tx),
        in_axes=(None, None, 0, 0),
        out_axes=(None, None, 0),
        donate_argnums=(0, 1),
        devices=jax.devices()[:NUM_REPLICAS],
    )
    params = init_params()
    opt_state = tx.init(params)
    for x, y in stream:
        x, y = (a.reshape(NUM_REPLICAS, -1, *a.shape[1:]) for a in (x, y))
        params, opt_state, losses = step(params, opt_state, x, y)
    print(f"ipu.pmap: losses of the replicas' last batches {np.round(losses, 4)}")
    return params


def train_with_shardings(stream):
    """Batches [n, ...] are sharded over the IPUs; weights are replicated."""
    tx = optax.adam(2e-3)
    mesh = Mesh(np.array(jax.devices()[:NUM_REPLICAS]), ("data",))
    split = NamedSharding(mesh, PartitionSpec("data"))
    everywhere = NamedSharding(mesh, PartitionSpec())
    step = jax.jit(step_of(tx), donate_argnums=(0, 1))
    params = jax.device_put(init_params(), everywhere)
    opt_state = jax.device_put(tx.init(params), everywhere)
    for x, y in stream:
        batch = jax.device_put((x, y), split)
        params, opt_state, loss = step(params, opt_state, *batch)
    print(f"jit with shardings: loss of the last batch {loss:.4f}")
    return params


def main():
    print("devices:", jax.devices())
    images, labels, test_images, test_labels = load()
    by_pmap = train_with_pmap(batches(images, labels))
    by_jit = train_with_shardings(batches(images, labels))

    pairs = zip(jax.tree.leaves(by_pmap), jax.tree.leaves(by_jit), strict=True)
    difference = max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) for a, b in pairs)
    logits = logits_of(jax.tree.map(jnp.asarray, jax.device_get(by_pmap)), test_images)
    accuracy = float((logits.argmax(-1) == test_labels).mean())
    print(f"largest difference between the two ways' weights: {difference:.1e}")
    print(f"test accuracy: {accuracy:.4f}")
    if not (accuracy >= WANTED_ACCURACY and difference < TOLERANCE):
        raise SystemExit(f"needs {WANTED_ACCURACY} and a difference below {TOLERANCE}")


if __name__ == "__main__":
    main()
