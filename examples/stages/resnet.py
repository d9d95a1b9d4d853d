"""Trains a small ResNet on handwritten digits: pipelined over four IPUs, then on one.

Batch norm's moving statistics are state that each micro-batch hands to the next. On one IPU the
same pipeline runs with checkpoints: the backward pass computes each stage again, and keeps its
input only. Both must reach 95 % accuracy on images not trained on.

Run: python examples/stages/resnet.py
"""

import os
import sys
from functools import partial
from pathlib import Path

os.environ.setdefault("JAX_IPU_IPUS_PER_DEVICE", "4")  # before JAX starts
sys.path.append(str(Path(__file__).resolve().parent.parent / "models"))

import digits_data
import jax
import jax.numpy as jnp
import optax
from busy import print_busy_ipus
from digits_cnn import conv

import ipujax as ipu

CHANNELS = (16, 16, 32, 32)  # of each stage
MICRO_BATCHES = 4
SAMPLES = 32  # of a micro-batch
NUM_EPOCHS = 6
MOMENTUM = 0.8  # of the moving statistics
WANTED_ACCURACY = 0.95

optimizer = optax.adam(2e-3)


def init_params(key):
    """Weights of each stage: two convolutions with their norms, and the shortcut's projection."""
    stages = []
    before = 1
    for channels in CHANNELS:
        key, first, second, third = jax.random.split(key, 4)
        he = jax.nn.initializers.he_normal()
        norm = {"scale": jnp.ones(channels), "shift": jnp.zeros(channels)}
        stages.append(
            {
                "conv1": he(first, (3, 3, before, channels)),
                "conv2": he(second, (3, 3, channels, channels)),
                "shortcut": he(third, (1, 1, before, channels)),
                "norm1": norm,
                "norm2": norm,
            }
        )
        before = channels
    stages[-1]["dense"] = jax.random.normal(key, (before, 10)) * before**-0.5
    return stages


def init_statistics():
    """Moving mean and variance of both norms of each stage."""
    return [
        {name: (jnp.zeros(channels), jnp.ones(channels)) for name in ("norm1", "norm2")}
        for channels in CHANNELS
    ]


def batch_norm(params, moving, x, training):
    """Norm over all but the last axis; returns the new moving statistics, too."""
    if training:
        mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
        moving = tuple(
            MOMENTUM * old + (1 - MOMENTUM) * new
            for old, new in zip(moving, (mean, variance), strict=True)
        )
    else:
        mean, variance = moving
    x = (x - mean) * jax.lax.rsqrt(variance + 1e-5)
    return x * params["scale"] + params["shift"], moving


def block(params, statistics, x, training=True):
    """Two convolutions beside a shortcut, x [n, h, w, c]; the image keeps its size."""
    new = {}
    y = conv(x, params["conv1"])
    y, new["norm1"] = batch_norm(params["norm1"], statistics["norm1"], y, training)
    y = conv(jax.nn.relu(y), params["conv2"])
    y, new["norm2"] = batch_norm(params["norm2"], statistics["norm2"], y, training)
    return jax.nn.relu(y + conv(x, params["shortcut"])), new


def block_and_head(params, statistics, x, training=True):
    """The last block, then the mean over the image and ten logits."""
    y, new = block(params, statistics, x, training)
    return jnp.mean(y, (1, 2)) @ params["dense"], new


def stages_on(ipus, remat):
    *blocks, last = ipus
    return [
        *(ipu.stage(block, ipu=i, name=f"block {n}", remat=remat) for n, i in enumerate(blocks)),
        ipu.stage(block_and_head, ipu=last, remat=remat),
    ]


def loss_of(stages, params, statistics, images, labels):
    """Loss of one micro-batch, and the new statistics."""
    x = images[..., None]
    new = []
    for stage, own, moving in zip(stages, params, statistics, strict=True):
        x, moving = stage(own, moving, x)
        new.append(moving)
    return optax.softmax_cross_entropy_with_integer_labels(x, labels).mean(), new


@jax.jit
def accuracy_of(params, statistics, images, labels):
    x = images[..., None]
    for fun, own, moving in zip([block] * 3 + [block_and_head], params, statistics, strict=True):
        x, _ = fun(own, moving, x, training=False)
    return (x.argmax(-1) == labels).mean()


def make_step(ipus, remat):
    """A training step; its state is (params, statistics, optimizer state)."""
    run = ipu.pipeline(
        partial(loss_of, stages_on(ipus, remat)),
        micro_batches=MICRO_BATCHES,
        in_axes=(None, "carried", 0, 0),
        reduction="mean",
    )

    @partial(jax.jit, donate_argnums=0)
    def step(state, images, labels):
        params, statistics, opt_state = state
        (loss, statistics), grads = jax.value_and_grad(run, has_aux=True)(
            params, statistics, images, labels
        )
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), statistics, opt_state), loss

    return step


def train_and_test(title, step, digits):
    """Trains, prints accuracy and costs; returns the accuracy."""
    params = jax.jit(init_params)(jax.random.key(0))
    state = (params, init_statistics(), optimizer.init(params))
    shape = (MICRO_BATCHES, SAMPLES)
    batches = [
        (images.reshape(*shape, 8, 8), labels.reshape(shape))
        for images, labels in digits_data.batches(
            digits.train_images, digits.train_labels, MICRO_BATCHES * SAMPLES, NUM_EPOCHS, seed=1
        )
    ]
    compiled = step.lower(state, *batches[0]).compile()
    for batch in batches:
        state, _ = step(state, *batch)
    params, statistics, _ = state
    accuracy = float(accuracy_of(params, statistics, digits.test_images, digits.test_labels))
    print(f"{title}: test accuracy {accuracy:.4f}")
    print_busy_ipus(compiled)
    return accuracy


def main():
    print("devices:", jax.devices())
    digits = digits_data.load()
    pipelined = train_and_test("four IPUs", make_step([0, 1, 2, 3], remat=None), digits)
    single = train_and_test("one IPU, checkpoints", make_step([0] * 4, remat=True), digits)
    print(f"lowest test accuracy: {min(pipelined, single):.4f}")
    if min(pipelined, single) < WANTED_ACCURACY:
        raise SystemExit(f"test accuracy needs {WANTED_ACCURACY}")


if __name__ == "__main__":
    main()
