"""Trains an LSTM on the characters of a language whose perplexity is known.

A small grammar makes the sentences, so that the entropy of a character is a number: no model of
unseen text can be better. The example ends with the model's perplexity, compared with it.

Run: python examples/models/lstm_language_model.py
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu

PLACES = (
    ("the ", "a ", "every ", "no "),
    ("", "", "old ", "grey ", "quiet ", "tall "),
    ("keeper ", "ship ", "lamp ", "storm ", "gull ", "tide ", "book ", "window "),
    ("saw ", "left ", "followed ", "forgot ", "heard ", "lit "),
    ("the north. ", "the sea. ", "a fire. ", "it. "),
)
NUM_HIDDEN, BATCH_SIZE, LENGTH, NUM_STEPS = 96, 32, 64, 200
MOST_ABOVE = 1.05


def sentences(rng, num_characters):
    """Text of at least so many characters."""
    text = ""
    while len(text) < num_characters:
        text += "".join(rng.choice(words) for words in PLACES)
    return text


def ideal_perplexity():
    """exp(entropy of a sentence / its mean length)."""
    entropy, length = 0.0, 0.0
    for words in PLACES:
        shares = [words.count(word) / len(words) for word in set(words)]
        entropy -= sum(share * math.log(share) for share in shares)
        length += sum(map(len, words)) / len(words)
    return math.exp(entropy / length)


ALPHABET = sorted(set("".join(map("".join, PLACES))))


def rows_of(text, count):
    """Inputs and targets [time, count]: consecutive pieces of the text."""
    codes = np.array([ALPHABET.index(letter) for letter in text], np.int32)
    time = (len(codes) - 1) // count
    rows = codes[: time * count + 1]
    return rows[:-1].reshape(count, time).T, rows[1:].reshape(count, time).T


def init_params(key):
    keys, scale = jax.random.split(key, 4), NUM_HIDDEN**-0.5
    return {
        "letters": jax.random.normal(keys[0], (len(ALPHABET), NUM_HIDDEN)),
        "lstm": ipu.nn.LSTMWeights(
            scale * jax.random.normal(keys[1], (4, NUM_HIDDEN, NUM_HIDDEN)),
            scale * jax.random.normal(keys[2], (4, NUM_HIDDEN, NUM_HIDDEN)),
            jnp.zeros((4, NUM_HIDDEN)),
        ),
        "out": scale * jax.random.normal(keys[3], (NUM_HIDDEN, len(ALPHABET))),
    }


def loss_of(params, state, inputs, targets):
    """Mean cross-entropy of a character, and the state after the last one."""
    letters = ipu.ops.embedding_lookup(params["letters"], inputs)
    hidden, state = ipu.nn.lstm(letters, params["lstm"], state)
    logits = hidden @ params["out"]
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
    return jnp.mean(losses), state


def main():
    print("devices:", jax.devices())
    rng = np.random.default_rng(0)
    optimizer = ipu.optim.adam(5e-3)

    @jax.jit
    def step(params, opt_state, state, inputs, targets):
        (loss, state), gradients = jax.value_and_grad(loss_of, has_aux=True)(
            params, state, inputs, targets
        )
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, state, loss

    params = init_params(jax.random.key(0))
    opt_state = optimizer.init(params)
    zeros = jnp.zeros((BATCH_SIZE, NUM_HIDDEN))
    state = ipu.nn.LSTMState(zeros, zeros)
    inputs, targets = rows_of(sentences(rng, BATCH_SIZE * LENGTH * NUM_STEPS + 1), BATCH_SIZE)
    for number in range(NUM_STEPS):
        piece = slice(number * LENGTH, (number + 1) * LENGTH)
        params, opt_state, state, loss = step(
            params, opt_state, state, inputs[piece], targets[piece]
        )
        if number % 50 == 49:
            print(f"step {number + 1}: perplexity {math.exp(loss):.3f}")
    unseen = rows_of(sentences(rng, BATCH_SIZE * 512), BATCH_SIZE)
    start = ipu.nn.LSTMState(zeros, zeros)
    perplexity = math.exp(jax.jit(loss_of)(params, start, *unseen)[0])
    ideal = ideal_perplexity()
    print(f"perplexity of unseen text: {perplexity:.3f}; of the language itself: {ideal:.3f}")
    print(f"perplexity relative to the language's: {perplexity / ideal:.3f}")
    if perplexity > MOST_ABOVE * ideal:
        raise SystemExit(f"needs at most {MOST_ABOVE} of the language's perplexity")


if __name__ == "__main__":
    main()
