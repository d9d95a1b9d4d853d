"""Trains a small transformer on the letters of a bundled story, with one scan over its layers.

Runs the same 50 steps on the default device and on JAX's CPU backend, and ends with the largest
relative difference of the two loss curves, which must be within float32 rounding over 50 steps.

Run: python examples/models/transformer.py
"""

from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from progress import progress_bar
from step_cost import print_step_cost

TEXT = Path(__file__).resolve().parent.parent / "data" / "lighthouse.txt"
NUM_LAYERS = 4
NUM_HEADS = 4
WIDTH = 64
LENGTH = 64
BATCH_SIZE = 16
NUM_STEPS = 50
TOLERANCE = 1e-4

optimizer = optax.adam(1e-3)


def load_tokens():
    """The text as an int32 array of letter numbers, and the number of different letters."""
    letters = sorted(set(text := TEXT.read_text()))
    number_of = {letter: i for i, letter in enumerate(letters)}
    return np.array([number_of[letter] for letter in text], np.int32), len(letters)


def batches(tokens, seed=0):
    """Endless batches [BATCH_SIZE, LENGTH + 1] from random places of the text."""
    rng = np.random.default_rng(seed)
    while True:
        starts = rng.integers(0, len(tokens) - LENGTH - 1, BATCH_SIZE)
        yield tokens[starts[:, None] + np.arange(LENGTH + 1)]


def init_params(key, num_letters):
    """Embeddings, and the layers' weights stacked along a first axis of NUM_LAYERS for the scan."""
    keys = iter(jax.random.split(key, 6))

    def normal(*shape, fan_in):
        return jax.random.normal(next(keys), shape) * fan_in**-0.5

    layers = {
        "qkv": normal(NUM_LAYERS, WIDTH, 3 * WIDTH, fan_in=WIDTH),
        "out": normal(NUM_LAYERS, WIDTH, WIDTH, fan_in=WIDTH * NUM_LAYERS),
        "up": normal(NUM_LAYERS, WIDTH, 4 * WIDTH, fan_in=WIDTH),
        "down": normal(NUM_LAYERS, 4 * WIDTH, WIDTH, fan_in=4 * WIDTH * NUM_LAYERS),
        "norm1": jnp.ones((NUM_LAYERS, WIDTH)),
        "norm2": jnp.ones((NUM_LAYERS, WIDTH)),
    }
    letters = normal(num_letters, WIDTH, fan_in=WIDTH)
    places = normal(LENGTH, WIDTH, fan_in=WIDTH)
    return {"letters": letters, "places": places, "layers": layers, "norm": jnp.ones(WIDTH)}


def normalise(x, scale):
    """Root-mean-square norm over the last axis."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * scale


def attention(x, layer):
    """Causal self-attention, x [b, t, WIDTH]."""
    b, t, _ = x.shape
    qkv = (x @ layer["qkv"]).reshape(b, t, 3, NUM_HEADS, WIDTH // NUM_HEADS)
    query, key, value = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * (WIDTH // NUM_HEADS) ** -0.5
    causal = jnp.tril(jnp.ones((t, t), bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(b, t, WIDTH) @ layer["out"]


def block(x, layer):
    """One layer in the form that scan wants: carry in, carry out, nothing stacked."""
    x = x + attention(normalise(x, layer["norm1"]), layer)
    hidden = jax.nn.gelu(normalise(x, layer["norm2"]) @ layer["up"])
    return x + hidden @ layer["down"], None


def loss_of(params, tokens):
    """Mean cross entropy of each next letter, tokens [b, LENGTH + 1]."""
    x = params["letters"][tokens[:, :-1]] + params["places"]
    x, _ = jax.lax.scan(block, x, params["layers"])
    logits = normalise(x, params["norm"]) @ params["letters"].T
    return optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:]).mean()


@partial(jax.jit, donate_argnums=0)
def train_step(state, tokens):
    """One Adam step; `state` is (params, optimizer state)."""
    params, opt_state = state
    loss, grads = jax.value_and_grad(loss_of)(params, tokens)
    updates, opt_state = optimizer.update(grads, opt_state)
    return (optax.apply_updates(params, updates), opt_state), loss


def train(device, tokens, num_letters):
    """The losses of NUM_STEPS steps on `device`, and the compiled step."""
    with jax.default_device(device):
        params = jax.jit(init_params, static_argnums=1)(jax.random.key(0), num_letters)
        state = (params, optimizer.init(params))
        stream = batches(tokens)
        compiled = train_step.lower(state, next(stream)).compile()
        losses = []
        with progress_bar(f"transformer on {device}", NUM_STEPS) as advance:
            for _, batch in zip(range(NUM_STEPS), stream, strict=False):
                state, loss = train_step(state, batch)
                losses.append(float(loss))
                advance(f"loss {losses[-1]:.3f}")
    return np.array(losses), compiled


def main():
    print("devices:", jax.devices())
    tokens, num_letters = load_tokens()
    losses, compiled = train(jax.devices()[0], tokens, num_letters)
    # The CPU backend is the yardstick here, not where the example runs.
    wanted, _ = train(jax.devices("cpu")[0], tokens, num_letters)

    print_step_cost("training step", compiled)
    difference = np.max(np.abs(losses - wanted) / wanted)
    print(f"loss: {losses[0]:.3f} -> {losses[-1]:.3f} in {NUM_STEPS} steps")
    print(f"largest relative difference from the CPU backend's loss curve: {difference:.1e}")
    if not (difference < TOLERANCE and losses[-1] < 0.8 * losses[0]):
        raise SystemExit(f"needs a difference below {TOLERANCE} and a loss that falls by a fifth")


if __name__ == "__main__":
    main()
