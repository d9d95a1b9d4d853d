"""Trains a multi-layer perceptron on handwritten digits to a test accuracy of at least 97 %.

Run: python examples/models/digits_mlp.py
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from digits_training import train_and_test

SIZES = (64, 256, 128, 10)
BATCH_SIZE = 128
NUM_EPOCHS = 30

optimizer = optax.adam(2e-3)


def init_params(key):
    """A list of (weights [in, out], bias [out]), He-initialised."""
    keys = jax.random.split(key, len(SIZES) - 1)
    return [
        (jax.random.normal(k, (m, n)) * jnp.sqrt(2.0 / m), jnp.zeros(n))
        for k, m, n in zip(keys, SIZES[:-1], SIZES[1:], strict=True)
    ]


def logits_of(params, images):
    """images [n, 8, 8] -> logits [n, 10]."""
    x = images.reshape(images.shape[0], -1)
    for weights, bias in params[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = params[-1]
    return x @ weights + bias


def loss_of(params, images, labels):
    losses = optax.softmax_cross_entropy_with_integer_labels(logits_of(params, images), labels)
    return losses.mean()


@partial(jax.jit, donate_argnums=0)
def train_step(state, images, labels):
    """One Adam step; `state` is (params, optimizer state)."""
    params, opt_state = state
    loss, grads = jax.value_and_grad(loss_of)(params, images, labels)
    updates, opt_state = optimizer.update(grads, opt_state)
    return (optax.apply_updates(params, updates), opt_state), loss


def main():
    params = jax.jit(init_params)(jax.random.key(0))
    state = (params, optimizer.init(params))
    train_and_test("digits MLP", train_step, state, logits_of, BATCH_SIZE, NUM_EPOCHS)


if __name__ == "__main__":
    main()
