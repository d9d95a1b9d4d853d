"""Stops a training in the middle, starts it again, and compares with one that never stopped.

Run: python examples/training/resume.py
"""

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu

NUM_STEPS, NUM_BEFORE = 300, 128
WANTED_LOSS = 0.08
OPTIMIZER = optax.adam(1e-2)


def examples():
    """Two interleaved half circles: x [points, 2], label [points]."""
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, np.pi, 512)
    label = rng.integers(0, 2, 512)
    x = np.stack([np.cos(angle) + label, np.where(label, 0.5 - np.sin(angle), np.sin(angle))], 1)
    return {"x": (x + 0.05 * rng.normal(size=x.shape)).astype(np.float32), "label": label}


def first_state():
    keys = jax.random.split(jax.random.key(0))
    params = {
        "hidden": jax.random.normal(keys[0], (2, 32)),
        "bias": jnp.zeros(32),
        "out": jax.random.normal(keys[1], (32,)) / 6,
    }
    return params, OPTIMIZER.init(params)


def step(state, batch, key):
    """Adam with dropout: the key must be the same after a restart."""
    params, opt_state = state
    kept = jax.random.bernoulli(key, 0.95, (32,)) / 0.95

    def loss_of(params):
        hidden = jnp.tanh(batch["x"] @ params["hidden"] + params["bias"]) * kept
        sign = 1.0 - 2.0 * batch["label"]
        return jnp.mean(jax.nn.softplus(sign * (hidden @ params["out"])))

    loss, grads = jax.value_and_grad(loss_of)(params)
    updates, opt_state = OPTIMIZER.update(grads, opt_state)
    return (optax.apply_updates(params, updates), opt_state), loss


def train(folder, steps):
    loader = ipu.data.Loader(examples(), 64, seed=1, workers=2)
    hooks = [
        ipu.training.Checkpoint(folder, every=50),
        ipu.training.Log(every=50),
    ]
    loop = ipu.training.Loop(step, steps_per_call=10, key=jax.random.key(1), hooks=hooks)
    params, _ = loop.train(first_state(), loader, steps=steps)
    return params, loop.last_run


def main():
    with tempfile.TemporaryDirectory() as name:
        whole, run = train(Path(name) / "whole", NUM_STEPS)
        train(Path(name) / "parts", NUM_BEFORE)
        print("stopped; starts again")
        parts, again = train(Path(name) / "parts", NUM_STEPS)
    equal = jax.tree.map(lambda a, b: bool((a == b).all()), whole, parts)
    print(f"loss {run.metrics['loss']:.4f}; equal to the last bit: {equal}")
    assert all(jax.tree.leaves(equal))
    assert run.history == again.history
    assert run.metrics["loss"] < WANTED_LOSS, run.metrics


if __name__ == "__main__":
    main()
