"""Adam with its state sharded over four IPUs (ZeRO): each keeps and updates a quarter.

Gradients are reduce-scattered, each IPU updates its part, and the updates are gathered. This sends
as much over the links as one all-reduce, with a quarter of the optimizer's memory. Ends with the
share of the state on each IPU, and how far the weights are from those of plain Adam on one IPU.

Run: python examples/replication/zero_adam.py
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu

NUM_REPLICAS = 4
SIZES = (32, 256, 256, 8)
BATCH_SIZE = 64
NUM_STEPS = 20
TOLERANCE = 1e-3


def init_params():
    rng = np.random.default_rng(0)
    return [
        rng.normal(size=shape, scale=shape[0] ** -0.5).astype(np.float32)
        for shape in itertools.pairwise(SIZES)
    ]


def batches():
    rng = np.random.default_rng(1)
    for _ in range(NUM_STEPS):
        x = rng.normal(size=(BATCH_SIZE, SIZES[0])).astype(np.float32)
        yield x, np.sin(x[:, : SIZES[-1]] * 3)


def loss_of(params, x, y):
    for w in params[:-1]:
        x = jnp.tanh(x @ w)
    return jnp.mean((x @ params[-1] - y) ** 2)


def step_of(tx):
    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(loss_of)(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    return step


def train_on_one(tx):
    params = init_params()
    opt_state = tx.init(params)
    step = jax.jit(step_of(tx))
    for x, y in batches():
        params, opt_state, loss = step(params, opt_state, x, y)
    return params, float(loss)


def train_on_many(tx):
    """Weights are shared; the state has an axis of replicas, with one part each."""
    devices = jax.devices()[:NUM_REPLICAS]
    params = init_params()
    opt_state = ipu.pmap(tx.init, in_axes=None, devices=devices)(params)
    step = ipu.pmap(
        step_of(tx),
        in_axes=(None, 0, 0, 0),
        out_axes=(None, 0, 0),
        donate_argnums=(0, 1),
        devices=devices,
    )
    for x, y in batches():
        x, y = (a.reshape(NUM_REPLICAS, -1, a.shape[-1]) for a in (x, y))
        params, opt_state, losses = step(params, opt_state, x, y)
    return params, opt_state, float(losses.mean())


def bytes_on(device, tree):
    return sum(
        shard.data.nbytes
        for leaf in jax.tree.leaves(tree)
        for shard in leaf.addressable_shards
        if shard.device == device
    )


def main():
    print("devices:", jax.devices())
    tx = optax.adam(1e-3)
    wanted, loss_on_one = train_on_one(tx)
    params, opt_state, loss = train_on_many(ipu.optim.shard_state(tx))

    whole = sum(leaf.nbytes for leaf in jax.tree.leaves(tx.init(init_params())))
    part = bytes_on(jax.devices()[0], opt_state) / whole
    pairs = zip(params, wanted, strict=True)
    difference = max(float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) for a, b in pairs)
    print(f"loss: {loss_on_one:.4f} on one IPU, {loss:.4f} on {NUM_REPLICAS}")
    print(f"largest difference of the weights: {difference:.1e}")
    print(f"part of Adam's state on each IPU: {part:.3f}")
    if not (difference < TOLERANCE and part < 1.01 / NUM_REPLICAS):
        raise SystemExit(
            f"needs a difference below {TOLERANCE} and {1 / NUM_REPLICAS} of the state"
        )


if __name__ == "__main__":
    main()
