"""Trains an LSTM with a CTC loss to write down what synthetic speakers say.

An utterance is a row of sounds, each some frames long, with pauses between them. No label says
where a sound begins: the CTC loss sums over all alignments, and a beam search finds the most
probable sounds. The example ends with the label error rate of utterances it was not trained on.

Run: python examples/models/speech_ctc.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu

NUM_SOUNDS, NUM_BANDS, NUM_FRAMES = 6, 12, 40
BLANK = NUM_SOUNDS
BATCH_SIZE, NUM_STEPS, NUM_HIDDEN = 32, 150, 48
NOISE = 0.4
WANTED_ERROR_RATE = 0.05


def utterances(rng, count):
    """Frames [time, count, bands], their numbers [count], sounds [count, 6], their numbers."""
    voices = np.random.default_rng(1).normal(size=(NUM_SOUNDS, NUM_BANDS))
    frames = np.zeros((NUM_FRAMES, count, NUM_BANDS))
    sounds = np.zeros((count, 6), np.int32)
    num_frames, num_sounds = np.zeros((2, count), np.int32)
    for speaker in range(count):
        time = 0
        num_sounds[speaker] = rng.integers(2, 7)
        for place in range(num_sounds[speaker]):
            sounds[speaker, place] = rng.integers(NUM_SOUNDS)
            length = rng.integers(2, 5)
            frames[time : time + length, speaker] = voices[sounds[speaker, place]]
            time += length + rng.integers(1, 3)  # a pause
        num_frames[speaker] = time
    frames += NOISE * rng.normal(size=frames.shape)
    return frames.astype(np.float32), num_frames, sounds, num_sounds


def init_params(key):
    keys = jax.random.split(key, 3)
    scale = NUM_HIDDEN**-0.5
    return {
        "lstm": ipu.nn.LSTMWeights(
            scale * jax.random.normal(keys[0], (4, NUM_BANDS, NUM_HIDDEN)),
            scale * jax.random.normal(keys[1], (4, NUM_HIDDEN, NUM_HIDDEN)),
            jnp.zeros((4, NUM_HIDDEN)),
        ),
        "out": scale * jax.random.normal(keys[2], (NUM_HIDDEN, NUM_SOUNDS + 1)),
    }


def logits_of(params, frames, num_frames):
    """[time, batch, sounds and blank]."""
    hidden, _ = ipu.nn.lstm(frames, params["lstm"], lengths=num_frames)
    return hidden @ params["out"]


def errors_between(found, wanted):
    """The fewest insertions, deletions and substitutions that make one row the other."""
    costs = np.arange(len(wanted) + 1)
    for number, label in enumerate(found, 1):
        before, costs[0] = costs[:-1].copy(), number
        replaced = before + (np.asarray(wanted) != label)
        costs[1:] = np.minimum(replaced, costs[1:] + 1)
        for place in range(1, len(costs)):
            costs[place] = min(costs[place], costs[place - 1] + 1)
    return int(costs[-1])


def label_error_rate(params, batch):
    frames, num_frames, sounds, num_sounds = batch

    @jax.jit
    def decode(params):
        logits = logits_of(params, frames, num_frames)
        return ipu.nn.ctc_beam_search_decoder(logits, num_frames, beam_width=8, blank_index=BLANK)

    paths = jax.device_get(decode(params))
    errors = 0
    for speaker in range(len(sounds)):
        found = paths.labels[speaker, 0, : paths.lengths[speaker, 0]]
        errors += errors_between(found, sounds[speaker, : num_sounds[speaker]])
    return errors / num_sounds.sum()


def main():
    print("devices:", jax.devices())
    rng = np.random.default_rng(0)
    optimizer = ipu.optim.adam(1e-2)

    @jax.jit
    def step(params, opt_state, frames, num_frames, sounds, num_sounds):
        def loss_of(params):
            logits = logits_of(params, frames, num_frames)
            losses = ipu.nn.ctc_loss(logits, sounds, num_frames, num_sounds, blank_index=BLANK)
            return jnp.mean(losses)

        loss, gradients = jax.value_and_grad(loss_of)(params)
        updates, opt_state = optimizer.update(gradients, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    params = init_params(jax.random.key(0))
    opt_state, unseen = optimizer.init(params), utterances(rng, 64)
    print(f"label error rate before training: {label_error_rate(params, unseen):.3f}")
    for number in range(NUM_STEPS):
        params, opt_state, loss = step(params, opt_state, *utterances(rng, BATCH_SIZE))
        if number % 50 == 49:
            print(f"step {number + 1}: loss {loss:.3f}")
    rate = label_error_rate(params, unseen)
    print(f"label error rate: {rate:.3f}")
    if rate > WANTED_ERROR_RATE:
        raise SystemExit(f"needs a label error rate of at most {WANTED_ERROR_RATE}")


if __name__ == "__main__":
    main()
