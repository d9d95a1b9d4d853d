"""Trains on a stream of batches, many steps in each call of the device, and reads losses meanwhile.

The stream has the interface of tf.data: methods that return new datasets, and
`as_numpy_iterator`. An Infeed takes a `tf.data.Dataset` in the same way.

Run: python examples/training/feeds.py
"""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

NUM_STEPS, BATCH = 400, 32
LARGEST_ERROR = 0.02


class Dataset:
    """Examples of a noisy line, as a chain of datasets."""

    def __init__(self, make):
        self._make = make

    @classmethod
    def lines(cls) -> "Dataset":
        def examples() -> Iterator[tuple[np.float32, np.float32]]:
            rng = np.random.default_rng(0)
            while True:
                x = np.float32(rng.normal())
                yield x, np.float32(3 * x - 1 + 0.1 * rng.normal())

        return cls(examples)

    def batch(self, size: int) -> "Dataset":
        def batches():
            examples = self._make()
            while True:
                rows = [next(examples) for _ in range(size)]
                yield {"x": np.array([x for x, _ in rows]), "y": np.array([y for _, y in rows])}

        return Dataset(batches)

    def as_numpy_iterator(self):
        return self._make()

    __iter__ = as_numpy_iterator


def step(line, batch):
    """One step of gradient descent: line [slope, intercept]."""

    def loss_of(line):
        return jnp.mean((line[0] * batch["x"] + line[1] - batch["y"]) ** 2)

    loss, gradient = jax.value_and_grad(loss_of)(line)
    return line - 0.1 * gradient, loss


def main():
    infeed = ipu.Infeed(Dataset.lines().batch(BATCH), prefetch_depth=4)
    outfeed = ipu.Outfeed("all", every=100)
    train = jax.jit(lambda line: ipu.repeat(NUM_STEPS, step, line, infeed=infeed, outfeed=outfeed))
    line = train(jnp.zeros(2))
    for i, loss in enumerate(outfeed.items(line), 1):  # as they come
        print(f"step {100 * i}: loss {loss:.4f}")
    slope, intercept = map(float, line)
    print(f"line: {slope:.3f} x {intercept:+.3f}; waited {infeed.wait_seconds:.3f} s for data")
    error = max(abs(slope - 3), abs(intercept + 1))
    assert error < LARGEST_ERROR, error
    infeed.close()


if __name__ == "__main__":
    main()
