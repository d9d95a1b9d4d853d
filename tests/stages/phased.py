"""Runs a gradient in phases with each liveness; prints one JSON object for each.

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

PHASES, ROWS, WIDTH = 4, 1024, 256
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device


def model(weights: Any, x: Any) -> Any:
    """A sine and a product in each phase: the derivatives need the cosine and the sine."""
    first = x
    for i, w in enumerate(weights):
        with ipu.block(f"layer{i}"):
            x = jnp.sin(x) @ w
            if i == PHASES - 1:
                x = x + first  # read by the first and the last phase
    return jnp.sum(x)


def made(name: str, liveness: ipu.Liveness, minimum_bytes: int) -> Any:
    """Value and gradients, of weights in either memory."""
    blocks = [f"layer{i}" for i in range(PHASES)]
    strategy = getattr(ipu, name)(
        *blocks, liveness=liveness, minimum_remote_tensor_size=minimum_bytes
    )
    with_gradients = jax.value_and_grad(strategy.apply(model), argnums=(0, 1))
    return jax.jit(lambda weights, x: with_gradients(jax.device_put(weights, DEVICE), x))


def main(name: str) -> None:
    random = np.random.default_rng(0)
    weights = list((random.normal(size=(PHASES, WIDTH, WIDTH)) / 8).astype(np.float32))
    x = random.normal(size=(ROWS, WIDTH)).astype(np.float32)
    each = ipu.Liveness.OFF_CHIP_AFTER_EACH_PHASE
    rows = [(one.value, one, 128, DEVICE) for one in ipu.Liveness]
    rows += [("nothing that large", each, 1 << 30, DEVICE), ("weights", each, 128, HOST)]
    wanted: list[Any] = []
    for kind, liveness, minimum_bytes, memory in rows:
        given = [jax.device_put(jnp.asarray(w), memory) for w in weights]
        compiled = made(name, liveness, minimum_bytes).lower(given, x).compile()
        got = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(given, x))]
        wanted = wanted or got
        stats = compiled.memory_analysis()
        row = {
            "kind": kind,
            "equal": all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True)),
            "host": stats.host_temp_size_in_bytes,
            "device": stats.peak_memory_in_bytes,
            "costs": compiled.cost_analysis(),
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
