"""Runs one pipeline with and without each kind of offloading; prints one JSON object for each.

Run as a process of its own, whose environment sets the number of IPUs of a device.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

STAGES, MICRO_BATCHES, ROWS, WIDTH = 4, 8, 64, 128
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
KINDS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "activations": {"offload_activations": True},
    "accumulators": {"offload_accumulators": True},
    "weights": {"offload_weights": True},
    "all": {"offload_activations": True, "offload_accumulators": True, "offload_weights": True},
    "nothing that large": {"offload_activations": True, "minimum_remote_tensor_size": 1 << 30},
}


def layer(w: Any, x: Any) -> Any:
    return jnp.sin(x @ w)


def head(w: Any, x: Any) -> Any:
    return jnp.mean(layer(w, x) ** 2)


def made(schedule: str, options: dict[str, Any]) -> Any:
    """A step; weights that are offloaded lie in the host's memory between two steps."""
    loss = ipu.pipeline(
        [*[layer] * (STAGES - 1), head],
        micro_batches=MICRO_BATCHES,
        schedule=schedule,
        reduction="mean",
        remat=True,
        **options,
    )
    memory = HOST if options.get("offload_weights") else DEVICE

    def step(weights: Any, batch: Any) -> Any:
        near = jax.device_put(weights, DEVICE)
        value, gradients = jax.value_and_grad(loss)(near, batch)
        after = jax.tree.map(lambda w, g: w - 0.1 * g, near, gradients)
        return jax.device_put(after, memory), value

    return jax.jit(step, donate_argnums=0), memory


def main(schedule: str) -> None:
    random = np.random.default_rng(0)
    weights = list((random.normal(size=(STAGES, WIDTH, WIDTH)) / 12).astype(np.float32))
    batch = random.normal(size=(MICRO_BATCHES, ROWS, WIDTH)).astype(np.float32)
    wanted: list[Any] = []
    for kind, options in KINDS.items():
        step, memory = made(schedule, options)
        given = [jax.device_put(jnp.asarray(w), memory) for w in weights]
        compiled = step.lower(given, batch).compile()
        got = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(given, batch))]
        wanted = wanted or got
        stats = compiled.memory_analysis()
        row = {
            "kind": kind,
            "equal": all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True)),
            "host": stats.host_temp_size_in_bytes,
            "host arguments": stats.host_argument_size_in_bytes,
            "device": stats.peak_memory_in_bytes,
            "costs": compiled.cost_analysis(),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
