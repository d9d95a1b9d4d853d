"""Pipelines whose stages are recomputed, on four IPUs, beside those whose stages are not.

Prints one JSON object for each, in the given schedule: whether value and gradients have the same
bits, and what the compiled program costs. Run as a process of its own.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name

import ipujax as ipu

STAGES, LAYERS, MICRO_BATCHES, SAMPLES, WIDTH = 4, 3, 8, 128, 32

WEIGHTS = [
    jnp.asarray(np.random.default_rng(i).normal(size=(LAYERS, WIDTH, WIDTH)) / 6, jnp.float32)
    for i in range(STAGES)
]
BATCH = jnp.asarray(np.random.default_rng(9).normal(size=(MICRO_BATCHES, SAMPLES, WIDTH)))
KEY = jax.random.PRNGKey(0)

Function = Callable[..., Any]
policies = jax.checkpoint_policies
NAMES = policies.save_only_these_names("product")
OFFLOADED_NAMES = policies.save_and_offload_only_these_names(
    names_which_can_be_saved=[],
    names_which_can_be_offloaded=["product"],
    offload_src="device",
    offload_dst="pinned_host",
)
OFFLOADED_DOTS = policies.offload_dot_with_no_batch_dims("device", "pinned_host")


def layer(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(ipu.recomputation_checkpoint(x @ w))


def named(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(checkpoint_name(x @ w, "product"))


def dropped(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.where(jax.random.bernoulli(KEY, 0.9, x.shape[1:]), jnp.tanh(x @ w), 0)


def in_a_row(one: Function, weights: jax.Array, x: jax.Array) -> jax.Array:
    for w in weights:
        x = one(w, x)
    return x


def scanned(one: Function, weights: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda x, w: (one(w, x), None), x, weights)[0]


def unnamed(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def stages(whole: Function, one: Function) -> list[Function]:
    stage = functools.partial(whole, one)
    return [*[stage] * (STAGES - 1), lambda weights, x: jnp.mean(stage(weights, x) ** 2)]


def around_each(functions: list[Function]) -> Function:
    called = [jax.checkpoint(ipu.stage(f, ipu=i)) for i, f in enumerate(functions)]

    def pipelined(weights: Any, x: jax.Array) -> jax.Array:
        for stage, own in zip(called, weights, strict=True):
            x = stage(own, x)
        return x

    return pipelined


PLAIN, SCANNED, DROPPED = (
    stages(in_a_row, unnamed),
    stages(scanned, unnamed),
    stages(in_a_row, dropped),
)

#: What is recomputed, and the same without recomputation.
ROWS: dict[str, tuple[Any, dict[str, Any], str]] = {
    "plain": (PLAIN, {}, "plain"),
    "then": (PLAIN, {"remat": "then"}, "plain"),
    "interleaved": (PLAIN, {"remat": "interleaved"}, "plain"),
    "jax.checkpoint around stages": (around_each(PLAIN), {}, "plain"),
    "checkpoints": (stages(in_a_row, layer), {"remat": True}, "plain"),
    "nested": (stages(in_a_row, jax.checkpoint(unnamed)), {"remat": True}, "plain"),
    "dots": (PLAIN, {"remat": ipu.remat(policy=policies.dots_saveable, mode="then")}, "plain"),
    "names": (stages(in_a_row, named), {"remat": NAMES}, "plain"),
    "offloaded names": (stages(in_a_row, named), {"remat": OFFLOADED_NAMES}, "plain"),
    "offloaded dots": (PLAIN, {"remat": ipu.remat(policy=OFFLOADED_DOTS, mode="then")}, "plain"),
    "scan": (SCANNED, {}, "scan"),
    "scan of offloaded dots": (
        stages(scanned, jax.checkpoint(unnamed, policy=OFFLOADED_DOTS)),
        {},
        "scan",
    ),
    "scan of checkpoints": (stages(scanned, jax.checkpoint(unnamed)), {"remat": True}, "scan"),
    "dropout": (DROPPED, {}, "dropout"),
    "dropout again": (DROPPED, {"remat": True}, "dropout"),
}


def main(schedule: str) -> None:
    kept: dict[str, Any] = {}
    for name, (given, options, like) in ROWS.items():
        loss = ipu.pipeline(
            given, micro_batches=MICRO_BATCHES, schedule=schedule, reduction="mean", **options
        )
        program = jax.jit(jax.value_and_grad(loss)).lower(WEIGHTS, BATCH).compile()
        results = jax.tree.leaves(program(WEIGHTS, BATCH))
        if name == like:
            kept[name] = results
        same = [bool((a == b).all()) for a, b in zip(results, kept[like], strict=True)]
        cost, memory = program.cost_analysis(), program.memory_analysis()
        row = {
            "name": name,
            "equal": all(same),
            "flops": cost["flops"],
            "cycles": cost["cycles"],
            "temporary bytes": memory.temp_size_in_bytes,
            "host bytes": memory.host_temp_size_in_bytes,
        }
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
