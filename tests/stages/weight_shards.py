"""Runs steps of one pipeline on replicas that share its weights, and on ones that partition them.

`python -m tests.stages.weight_shards SCHEDULE SERIAL REPLICAS` prints one JSON object for each.

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

STAGES, MICRO_BATCHES, ROWS, WIDTH = 4, 8, 16, 129
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
#: Options of the pipeline by form; the first has whole weights.
FORMS: dict[str, dict[str, Any]] = {
    "whole": {},
    "gathered once": {"replicated_weight_sharding": False},
    "gathered": {"replicated_weight_sharding": True},
    "by default": {},
    "offloaded": {"replicated_weight_sharding": True, "offload_weights": True},
}


def layer(w: Any, x: Any) -> Any:
    return jnp.sin(x @ w)


def head(w: Any, x: Any) -> Any:
    return jnp.mean(layer(w, x) ** 2)


def step_of(form: str, options: dict[str, Any]) -> Any:
    """The function of one replica, of (weights, batch); offloaded weights begin and end there."""
    stages = [layer] * (STAGES - 1) + [head]
    loss = ipu.pipeline(stages, reduction="mean", remat=True, **options, **FORMS[form])
    memory = HOST if form == "offloaded" else DEVICE

    def step(weights: Any, batch: Any) -> Any:
        near = jax.device_put(weights, DEVICE)
        value, gradients = jax.value_and_grad(loss)(near, batch)
        if form == "whole":
            gradients = ipu.cross_replica_sum(gradients)
        share = 0.1 / ipu.replication_factor()
        after = jax.tree.map(lambda w, g: w - share * g, near, gradients)
        return jax.device_put(after, memory), value

    return step


def main(schedule: str, serial: str, replicas: str) -> None:
    options = {"schedule": schedule, "batch_serialization_iterations": int(serial)}
    options["micro_batches"] = MICRO_BATCHES
    devices = jax.devices()[: int(replicas)]
    random = np.random.default_rng(0)
    weights = list((random.normal(size=(STAGES, WIDTH, WIDTH)) / 12).astype(np.float32))
    batch = random.normal(size=(len(devices), MICRO_BATCHES, ROWS, WIDTH)).astype(np.float32)
    shards = ipu.pmap(ipu.shard_weights, in_axes=None, devices=devices)(weights)
    far = jax.tree.map(
        lambda x: jax.device_put(x, x.sharding.with_memory_kind("pinned_host")), shards
    )
    gather = ipu.pmap(ipu.gather_weights, out_axes=None, devices=devices)
    wanted: list[Any] = []
    for form in FORMS:
        axis = None if form == "whole" else 0
        given = weights if form == "whole" else far if form == "offloaded" else shards
        run = ipu.pmap(
            step_of(form, options), in_axes=(axis, 0), out_axes=(axis, 0), devices=devices
        )
        compiled = run.lower(given, batch).compile()
        after, values = compiled(given, batch)
        after = after if form == "whole" else gather(jax.device_get(after))
        got = [np.asarray(leaf) for leaf in jax.tree.leaves((after, values))]
        wanted = wanted or got
        stats, costs = compiled.memory_analysis(), compiled.cost_analysis()
        row = {
            "form": form,
            "equal": all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True)),
            "arguments": stats.argument_size_in_bytes,
            "host arguments": stats.host_argument_size_in_bytes,
            "peak": stats.peak_memory_in_bytes,
            "link bytes": costs["link bytes"],
            "host cycles": costs["host cycles"],
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
