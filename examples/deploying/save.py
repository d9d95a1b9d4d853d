"""Precompile in Python, run in C: this half trains a classifier and saves it with its weights.

Run: python examples/deploying/run.py, which builds and runs the other half, classify.c, too; or
python examples/deploying/save.py <folder>
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

BATCH = 100


def spirals(count, key):
    """Points of three spirals [count, 2], and which one each is on [count]."""
    turns, noise = jax.random.split(key)
    label = jnp.arange(count) % 3
    t = jnp.sqrt(jax.random.uniform(turns, (count,)))
    angle = 4 * t + 2 * jnp.pi * label / 3
    points = t[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], 1)
    return points + 0.02 * jax.random.normal(noise, points.shape), label


def scores(weights, points):
    x = points
    for i, (w, b) in enumerate(weights):
        x = x @ w + b
        if i < len(weights) - 1:
            x = jnp.tanh(x)
    return x


@jax.jit
def train(weights, points, label):
    def loss(weights):
        logs = jax.nn.log_softmax(scores(weights, points))
        return -jnp.take_along_axis(logs, label[:, None], 1).mean()

    def step(_, state):
        weights, momentum = state
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, jax.grad(loss)(weights))
        return jax.tree.map(lambda w, m: w - 0.1 * m, weights, momentum), momentum

    zeros = jax.tree.map(jnp.zeros_like, weights)
    return jax.lax.fori_loop(0, 1500, step, (weights, zeros))[0]


def trained():
    """Weights, and points [1000, 2] that they have not seen, with their spirals [1000]."""
    keys = jax.random.split(jax.random.key(0), 5)
    sizes = [(2, 32), (32, 32), (32, 3)]
    weights = [
        (jax.random.normal(key, size) / size[0] ** 0.5, jnp.zeros(size[1]))
        for key, size in zip(keys, sizes, strict=False)
    ]
    weights = train(weights, *spirals(600, keys[3]))
    return weights, *spirals(1000, keys[4])


def main(folder):
    print(jax.devices())
    weights, points, label = trained()
    accuracy = float((scores(weights, points).argmax(1) == label).mean())
    print(f"test accuracy in JAX: {accuracy:.3f}")

    def classify(weights, points):
        return scores(weights, points).argmax(1).astype(jnp.int32)

    batch = jax.ShapeDtypeStruct((BATCH, 2), jnp.float32)
    program = ipu.precompile(classify, weights, batch)
    program.save(folder / "classifier.ipu", weights={"weights": weights})
    np.asarray(points, np.float32).tofile(folder / "points.bin")
    np.asarray(label, np.int32).tofile(folder / "labels.bin")
    return accuracy


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("needs a folder for the program; got none. Run save.py <folder>.")
    main(Path(sys.argv[1]))
