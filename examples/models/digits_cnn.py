"""Trains a convolutional network on handwritten digits in float16, with float32 master weights.

Weights and activations of both passes are float16; the optimizer holds and updates float32 weights.
The loss is scaled so that small gradients do not vanish in float16. Ends with the test accuracy,
which must be at least 97 %.

Run: python examples/models/digits_cnn.py
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from digits_training import train_and_test
from jax import lax

BATCH_SIZE = 64
NUM_EPOCHS = 20
LOSS_SCALE = 128.0

optimizer = optax.adam(2e-3)


def init_params(key):
    """Float32 master weights: two 3x3 convolutions (HWIO) and a dense layer."""
    first, second, dense = jax.random.split(key, 3)
    return {
        "conv1": jax.random.normal(first, (3, 3, 1, 16)) * jnp.sqrt(2.0 / 9),
        "conv2": jax.random.normal(second, (3, 3, 16, 32)) * jnp.sqrt(2.0 / 144),
        "dense": jax.random.normal(dense, (4 * 4 * 32, 10)) * jnp.sqrt(1.0 / 512),
        "bias": jnp.zeros(10),
    }


def conv(x, kernel):
    """x [n, h, w, c], kernel [3, 3, c, d] -> [n, h, w, d]."""
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def max_pool(x):
    """The largest of each 2x2 window."""
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def logits_of(params, images):
    """images [n, 8, 8] float32 -> logits [n, 10] float32; all between is float16."""
    half = jax.tree.map(lambda p: p.astype(jnp.float16), params)
    x = images.astype(jnp.float16)[..., None]
    x = jax.nn.relu(conv(x, half["conv1"]))
    x = max_pool(jax.nn.relu(conv(x, half["conv2"])))
    x = x.reshape(x.shape[0], -1) @ half["dense"] + half["bias"]
    return x.astype(jnp.float32)


def scaled_loss_of(params, images, labels):
    losses = optax.softmax_cross_entropy_with_integer_labels(logits_of(params, images), labels)
    return losses.mean() * LOSS_SCALE


@partial(jax.jit, donate_argnums=0)
def train_step(state, images, labels):
    """One Adam step on the master weights; `state` is (params, optimizer state)."""
    params, opt_state = state
    loss, grads = jax.value_and_grad(scaled_loss_of)(params, images, labels)
    grads = jax.tree.map(lambda g: g / LOSS_SCALE, grads)
    updates, opt_state = optimizer.update(grads, opt_state)
    return (optax.apply_updates(params, updates), opt_state), loss / LOSS_SCALE


def main():
    params = jax.jit(init_params)(jax.random.key(0))
    state = (params, optimizer.init(params))
    train_and_test("digits CNN", train_step, state, logits_of, BATCH_SIZE, NUM_EPOCHS)


if __name__ == "__main__":
    main()
