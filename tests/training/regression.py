"""A training that is killed again and again; run by test_resume.py.

Usage: regression.py <folder> <result>. It says a line after each call; at the end it writes the
weights and the metrics.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

STEPS, PER_CALL, EPOCH = 150, 5, 42


def batches():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(EPOCH, 8, 4)).astype(np.float32)
    return [(a, a @ np.float32([1, -2, 3, 0.5])) for a in x]


def step(state, batch, key):
    """Momentum, with noise from the key: the result depends on everything that is saved."""
    (w, v), (x, y) = state, batch
    noise = 0.01 * jax.random.normal(key, w.shape)
    loss, g = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w + noise)
    v = 0.9 * v + g
    return (w - 0.02 * v, v), loss


def main(folder: str, result: str) -> None:
    hooks = [
        ipu.training.Checkpoint(folder, every=PER_CALL, keep=2),
        ipu.training.Log(write=lambda line: print(line, flush=True)),
        ipu.training.EarlyStop("loss", patience=10**6),
    ]
    loop = ipu.training.Loop(step, steps_per_call=PER_CALL, key=jax.random.key(7), hooks=hooks)
    w, v = loop.train((jnp.zeros(4), jnp.zeros(4)), batches(), steps=STEPS)
    found = {
        "w": np.asarray(w).tobytes().hex(),
        "v": np.asarray(v).tobytes().hex(),
        "history": loop.last_run.history,
        "epoch": loop.last_run.epoch,
    }
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
