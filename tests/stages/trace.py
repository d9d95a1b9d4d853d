"""The published trace of facts/stages.md, section 6: a perceptron's training step on two IPUs.

From graphcore/tutorials (tensorflow1/pipelining): MNIST, layers of 784, 256, 128, 64, 32 and 10,
float32, 32 samples a micro-batch, 16 micro-batches, grouped, cut before the layer of 32. Digitised
from a picture, within 0.3 kcycles.

Run as a process of its own, it prints what one micro-batch more costs.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import jax
import jax.numpy as jnp

import ipujax as ipu

SIZES = (784, 256, 128, 64, 32, 10)
CUT = 3
MICRO_BATCHES, SAMPLES = 16, 32


def layers(parameters: Any, x: jax.Array) -> jax.Array:
    for weights, bias in parameters:
        x = jax.nn.relu(x @ weights + bias)
    return x


def first(parameters: Any, given: Any) -> Any:
    return layers(parameters, given[0]), given[1]


def second(parameters: Any, given: Any) -> jax.Array:
    weights, bias = parameters[-1]
    scores = jax.nn.log_softmax(layers(parameters[:-1], given[0]) @ weights + bias)
    return -jnp.mean(jnp.take_along_axis(scores, given[1][:, None], 1))


def lowered(micro_batches: int) -> Any:
    """The step, without any data."""
    loss = ipu.pipeline([first, second], micro_batches=micro_batches, reduction="mean")

    def step(parameters: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, batch)
        return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, gradients), value

    def of(shape: tuple[int, ...], dtype: Any = jnp.float32) -> Any:
        return jax.ShapeDtypeStruct(shape, dtype)

    pairs = [(of(pair), of(pair[1:])) for pair in itertools.pairwise(SIZES)]
    batch = (
        of((micro_batches, SAMPLES, SIZES[0])),
        of((micro_batches, SAMPLES), jnp.int32),
    )
    return jax.jit(step).trace([pairs[:CUT], pairs[CUT:]], batch).lower(lowering_platforms=("ipu",))


def main() -> None:
    """Prints the cycles of one slot: what one micro-batch more costs."""
    costs = [lowered(count).compile().cost_analysis() for count in (16, 32)]
    slot = {key: (costs[1][key] - costs[0][key]) / 16 for key in costs[0] if "cycles" in key}
    found = {
        f"ipu {i}": slot[f"ipu {i} compute cycles"] + slot[f"ipu {i} exchange cycles"]
        for i in (0, 1)
    }
    print(json.dumps({**found, "copies": slot["ipu 1 link cycles"]}))


if __name__ == "__main__":
    main()
