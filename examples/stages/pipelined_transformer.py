"""Trains a transformer with tied embeddings on the letters of a story, pipelined over four IPUs.

The table of letters is used by the first stage, which looks them up, and by the last, which scores
them; both are on IPU 0, so that it lies in one place. Six layers lie on IPUs 1 to 3. The same steps
run on one IPU without stages: the loss curves must agree within float32 rounding. Nothing ran on
hardware.

Run: python examples/stages/pipelined_transformer.py
"""

import os
import sys
from functools import partial
from pathlib import Path

os.environ.setdefault("JAX_IPU_IPUS_PER_DEVICE", "4")  # before JAX starts
sys.path.append(str(Path(__file__).resolve().parent.parent / "models"))

import jax
import numpy as np
import optax
import transformer as model
from busy import print_busy_ipus

import ipujax as ipu

LAYERS_PER_STAGE = 2
MICRO_BATCHES = 8
SAMPLES = 4  # of a micro-batch
NUM_STEPS = 12
TOLERANCE = 1e-4

optimizer = optax.adam(1e-3)


def embed(params, tokens):
    """Looks up the letters, tokens [b, t + 1]; the next letters go on to the last stage."""
    x = params["letters"][tokens[:, :-1]] + params["places"]
    return x, tokens[:, 1:]


def layers(params, given):
    """Two layers, stacked along the first axis of their weights."""
    x, wanted = given
    x, _ = jax.lax.scan(model.block, x, params)
    return x, wanted


def head(params, given):
    """Mean cross entropy of the next letters."""
    x, wanted = given
    logits = model.normalise(x, params["norm"]) @ params["letters"].T
    return optax.softmax_cross_entropy_with_integer_labels(logits, wanted).mean()


STAGES = (
    ipu.stage(embed, ipu=0),
    *(ipu.stage(layers, ipu=i, name=f"layers {i}") for i in (1, 2, 3)),
    ipu.stage(head, ipu=0),
)


def loss_of(params, tokens):
    """Loss of one micro-batch. The first and the last stage share their parameters."""
    first, *middle, last = STAGES
    given = first(params["ends"], tokens)
    for stage, own in zip(middle, params["layers"], strict=True):
        given = stage(own, given)
    return last(params["ends"], given)


def pipelined_loss_of(params, tokens):
    """The mean over micro-batches, tokens [micro-batches, b, t + 1]."""
    run = ipu.pipeline(loss_of, micro_batches=MICRO_BATCHES, reduction="mean")
    return run(params, tokens)


def plain_loss_of(params, tokens):
    """The same without a pipeline: one large batch."""
    return loss_of(params, tokens.reshape(-1, tokens.shape[-1]))


def init_params(key, num_letters):
    """The ends' parameters, and those of each stage between them."""
    first, *others = jax.random.split(key, 4)
    whole = model.init_params(first, num_letters)
    ends = {name: whole[name] for name in ("letters", "places", "norm")}
    middle = [model.init_params(own, num_letters)["layers"] for own in others]
    return {"ends": ends, "layers": jax.tree.map(lambda w: w[:LAYERS_PER_STAGE], middle)}


def train_step(loss_of, state, tokens):
    """One Adam step; `state` is (params, optimizer state)."""
    params, opt_state = state
    loss, grads = jax.value_and_grad(loss_of)(params, tokens)
    updates, opt_state = optimizer.update(grads, opt_state)
    return (optax.apply_updates(params, updates), opt_state), loss


def batches(tokens, seed=0):
    """Endless batches [MICRO_BATCHES, SAMPLES, LENGTH + 1] from random places of the text."""
    rng = np.random.default_rng(seed)
    length = model.LENGTH
    while True:
        starts = rng.integers(0, len(tokens) - length - 1, (MICRO_BATCHES, SAMPLES))
        yield tokens[starts[..., None] + np.arange(length + 1)]


def train(device, loss_of, tokens, num_letters):
    """The losses of NUM_STEPS steps on `device`, and the compiled step."""
    with jax.default_device(device):
        params = jax.jit(init_params, static_argnums=1)(jax.random.key(0), num_letters)
        state = (params, optimizer.init(params))
        stream = batches(tokens)
        step = jax.jit(partial(train_step, loss_of), donate_argnums=0)
        compiled = step.lower(state, next(stream)).compile()
        losses = []
        for _, batch in zip(range(NUM_STEPS), stream, strict=False):
            state, loss = step(state, batch)
            losses.append(float(loss))
    return np.array(losses), compiled


def main():
    print("devices:", jax.devices())
    tokens, num_letters = model.load_tokens()
    losses, compiled = train(jax.devices()[0], pipelined_loss_of, tokens, num_letters)
    # The CPU backend is the yardstick here, not where the example runs.
    wanted, _ = train(jax.devices("cpu")[0], plain_loss_of, tokens, num_letters)

    print_busy_ipus(compiled)
    difference = np.max(np.abs(losses - wanted) / wanted)
    print(f"loss: {losses[0]:.3f} -> {losses[-1]:.3f} in {NUM_STEPS} steps")
    print(f"largest relative difference from the plain model's loss curve: {difference:.1e}")
    if not (difference < TOLERANCE and losses[-1] < 0.9 * losses[0]):
        raise SystemExit(f"needs a difference below {TOLERANCE} and a loss that falls by a tenth")


if __name__ == "__main__":
    main()
