"""Runs one pipeline, and a loop of steps with Adam, with and without each kind of offloading.

`python -m tests.stages.offloaded SCHEDULE FORM` prints one JSON object for each. The form is
"derived", the gradient of `ipu.pipeline`, or "explicit": `ipu.accumulate`.

Run as a process of its own, whose environment sets the number of IPUs of a device.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu
from tests.stages.models import schedule_options

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
#: Loops of steps: whether the optimizer's state lies on the host, and options of the pipeline.
LOOPS: dict[str, tuple[bool, dict[str, Any]]] = {
    "nothing": (False, {}),
    "state": (True, {}),
    "all": (True, KINDS["all"] | {"remat": "then"}),
}
BATCHES = 3


def layer(w: Any, x: Any) -> Any:
    return jnp.sin(x @ w)


def head(w: Any, x: Any) -> Any:
    return jnp.mean(layer(w, x) ** 2)


def with_gradients(schedule: str, form: str, options: dict[str, Any]) -> Any:
    """The function of (weights, batch) that returns the loss and its gradients."""
    options = {"micro_batches": MICRO_BATCHES, "remat": True} | options
    options |= schedule_options(schedule)
    remat = options.pop("remat")
    stages = [ipu.stage(fun, remat=remat) for fun in [*[layer] * (STAGES - 1), head]]
    if form == "derived":
        return jax.value_and_grad(ipu.pipeline(stages, reduction="mean", **options))

    def loss(weights: Any, x: Any) -> Any:
        for fun, w in zip(stages, weights, strict=True):
            x = fun(w, x)
        return x

    return ipu.accumulate(jax.value_and_grad(loss), **options)


def made(schedule: str, form: str, options: dict[str, Any]) -> Any:
    """A step; weights that are offloaded lie in the host's memory between two steps."""
    run = with_gradients(schedule, form, options)
    memory = HOST if options.get("offload_weights") else DEVICE

    def step(weights: Any, batch: Any) -> Any:
        near = jax.device_put(weights, DEVICE)
        value, gradients = run(near, batch)
        after = jax.tree.map(lambda w, g: w - 0.1 * g, near, gradients)
        return jax.device_put(after, memory), value

    return jax.jit(step, donate_argnums=0), memory


def loop(schedule: str, form: str, is_far: bool, options: dict[str, Any]) -> Any:
    """Several steps in one program; weights and state are donated."""
    run = with_gradients(schedule, form, options)
    optimizer = ipu.optim.offload_state(optax.adam(0.1)) if is_far else optax.adam(0.1)
    memory = HOST if options.get("offload_weights") else DEVICE

    def step(carried: Any, batch: Any) -> Any:
        weights, state = carried
        near = jax.device_put(weights, DEVICE)
        value, gradients = run(near, batch)
        updates, state = optimizer.update(gradients, state, near)
        return (jax.device_put(optax.apply_updates(near, updates), memory), state), value

    def steps(weights: Any, state: Any, batches: Any) -> Any:
        return jax.lax.scan(step, (weights, state), batches)

    return jax.jit(steps, donate_argnums=(0, 1)), optimizer, memory


def run_loops(schedule: str, form: str, weights: Any, batch: Any) -> None:
    batches = np.stack([batch + i for i in range(BATCHES)])
    wanted: list[Any] = []
    for kind, (is_far, options) in LOOPS.items():
        steps, optimizer, memory = loop(schedule, form, is_far, options)
        given = [jax.device_put(jnp.asarray(w), memory) for w in weights]
        state = optimizer.init([jnp.asarray(w) for w in weights])
        compiled = steps.lower(given, state, batches).compile()
        got = [np.asarray(leaf) for leaf in jax.tree.leaves(compiled(given, state, batches))]
        wanted = wanted or got
        stats = compiled.memory_analysis()
        row = {
            "loop": kind,
            "equal": all(np.array_equal(a, b) for a, b in zip(got, wanted, strict=True)),
            "host arguments": stats.host_argument_size_in_bytes,
            "host results in place": stats.host_alias_size_in_bytes,
            "host": stats.host_temp_size_in_bytes,
        }
        print(json.dumps(row), flush=True)


def main(schedule: str, form: str) -> None:
    random = np.random.default_rng(0)
    weights = list((random.normal(size=(STAGES, WIDTH, WIDTH)) / 12).astype(np.float32))
    batch = random.normal(size=(MICRO_BATCHES, ROWS, WIDTH)).astype(np.float32)
    wanted: list[Any] = []
    for kind, options in KINDS.items():
        step, memory = made(schedule, form, options)
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
    run_loops(schedule, form, weights, batch)


if __name__ == "__main__":
    main(*sys.argv[1:])
