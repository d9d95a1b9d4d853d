"""Trains a small Flax NNX network with dropout and batch norm on digits to at least 96 %.

Run: python examples/libraries/flax_digits.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from sklearn.datasets import load_digits

NUM_STEPS = 300
BATCH_SIZE = 128
WANTED_ACCURACY = 0.96


class Network(nnx.Module):
    """[n, 64] -> logits [n, 10]."""

    def __init__(self, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(64, 128, rngs=rngs)
        self.norm = nnx.BatchNorm(128, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.out = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x):
        return self.out(self.dropout(nnx.relu(self.norm(self.hidden(x)))))


@nnx.jit
def train_step(network, optimizer, images, labels):
    def loss_of(network):
        losses = optax.softmax_cross_entropy_with_integer_labels(network(images), labels)
        return losses.mean()

    loss, grads = nnx.value_and_grad(loss_of)(network)
    optimizer.update(network, grads)
    return loss


@nnx.jit
def accuracy_of(network, images, labels):
    return (network(images).argmax(-1) == labels).mean()


def main():
    print("devices:", jax.devices())
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images = jnp.asarray(pixels[order] / 16, jnp.float32)
    labels = jnp.asarray(labels[order], jnp.int32)
    network = Network(nnx.Rngs(0))
    optimizer = nnx.Optimizer(network, optax.adam(3e-3), wrt=nnx.Param)
    for key in jax.random.split(jax.random.key(1), NUM_STEPS):
        chosen = jax.random.choice(key, 1500, (BATCH_SIZE,), replace=False)
        loss = train_step(network, optimizer, images[chosen], labels[chosen])
    network.eval()
    accuracy = float(accuracy_of(network, images[1500:], labels[1500:]))
    print(f"loss: {float(loss):.4f}")
    print(f"test accuracy: {accuracy:.4f}")
    if accuracy < WANTED_ACCURACY:
        raise SystemExit(f"test accuracy needs {WANTED_ACCURACY}; got {accuracy:.4f}")


if __name__ == "__main__":
    main()
