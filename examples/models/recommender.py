"""Trains a recommender whose table of users and items is larger than an IPU's memory.

The table has 4,000,000 rows in a memory-mapped file; users and items are found in it by a hash. A
step looks up the rows of its batch, and hands their gradients back; rows of the next batch are read
while it runs. The example ends with the error on ratings that were not trained on.

Run: python examples/models/recommender.py
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu

NUM_ROWS, DIM = 4_000_000, 64
NUM_USERS, NUM_ITEMS, NUM_TASTES = 800, 200, 3
BATCH_SIZE, NUM_STEPS = 1024, 400
NOISE = 0.1
WANTED_ERROR = 0.2
IPU_BYTES = 1472 * 624 * 1024


def row_of(kind, number):
    """Where a user (0) or an item (1) is in the table."""
    mixed = (2 * number.astype(np.uint64) + kind + 1) * np.uint64(0x9E3779B97F4A7C15)
    return (mixed >> np.uint64(40)).astype(np.int64) % NUM_ROWS


def ratings(rng):
    """Users, items and ratings of all pairs, in random order."""
    users, items = map(np.ravel, np.indices((NUM_USERS, NUM_ITEMS)))
    likes = rng.normal(size=(NUM_USERS, NUM_TASTES)) / NUM_TASTES**0.5
    has = rng.normal(size=(NUM_ITEMS, NUM_TASTES))
    values = (likes @ has.T).ravel() + NOISE * rng.normal(size=len(users))
    order = rng.permutation(len(users))
    return users[order], items[order], values[order].astype(np.float32)


def new_table(folder, rng):
    """Zeros, but for the rows of users and items that exist."""
    path = folder / "table.npy"
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (NUM_ROWS, DIM))
    for kind, count in enumerate((NUM_USERS, NUM_ITEMS)):
        rows[row_of(kind, np.arange(count))] = 0.3 * rng.normal(size=(count, DIM))
    return ipu.HostEmbedding(rows, ipu.HostEmbeddingSGD(25.0))


def predict(biases, users, items):
    return jnp.sum(users * items, -1) * biases["scale"] + biases["offset"]


def train(table, batches):
    """Returns what the device holds, and the table's token."""
    optimizer = ipu.optim.adam(1e-2)

    @jax.jit
    def step(token, biases, opt_state, ids, values, following):
        table.lookup_ahead(following)

        def loss_of(token, biases):
            rows = table.lookup(token, ids)
            return jnp.mean((predict(biases, rows["user"], rows["item"]) - values) ** 2)

        loss, (raised, gradients) = jax.value_and_grad(loss_of, (0, 1))(token, biases)
        updates, opt_state = optimizer.update(gradients, opt_state, biases)
        return token + raised, optax.apply_updates(biases, updates), opt_state, loss

    biases = {"scale": jnp.float32(1), "offset": jnp.float32(0)}
    opt_state, token = optimizer.init(biases), table.token()
    for number, (ids, values) in enumerate(batches):
        following = batches[(number + 1) % len(batches)][0]
        token, biases, opt_state, loss = step(token, biases, opt_state, ids, values, following)
        if number % 100 == 99:
            print(f"step {number + 1}: mean squared error {loss:.4f}")
    return biases, token


def main():
    print("devices:", jax.devices())
    rng = np.random.default_rng(0)
    users, items, values = ratings(rng)
    ids = {"user": row_of(0, users).astype(np.int32), "item": row_of(1, items).astype(np.int32)}
    unseen = len(users) // 5
    batches = []
    for _ in range(NUM_STEPS):
        chosen = rng.integers(unseen, len(users), BATCH_SIZE)
        batches.append(({kind: rows[chosen] for kind, rows in ids.items()}, values[chosen]))

    with tempfile.TemporaryDirectory() as folder:
        table = new_table(Path(folder), rng)
        num_bytes = NUM_ROWS * DIM * table.dtype.itemsize
        print(f"table: {num_bytes / 1e6:,.0f} MB; memory of an IPU: {IPU_BYTES / 1e6:,.0f} MB")
        biases, token = train(table, batches)
        rows = table.lookup(token, {kind: rows[:unseen] for kind, rows in ids.items()})
    found = np.asarray(predict(biases, rows["user"], rows["item"]))
    error = np.sqrt(np.mean((found - values[:unseen]) ** 2)) / values[:unseen].std()
    print(f"error of unseen ratings, relative to their spread: {error:.3f}")
    if error > WANTED_ERROR:
        raise SystemExit(f"needs a relative error of at most {WANTED_ERROR}")


if __name__ == "__main__":
    main()
