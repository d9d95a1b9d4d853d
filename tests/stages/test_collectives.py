"""Replicas of a pipeline exchange their gradients once a step, after the loop."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.api.pipeline.test_pipeline import BATCH, WEIGHTS, pipelined
from tests.stages.image import Compiled
from tests.stages.models import schedule_options

SCHEDULES = [
    f"{name}{remat}"
    for name in ("grouped", "interleaved", "sequential")
    for remat in ("", " remat")
]
BOTH = jnp.stack([BATCH, BATCH + 1])


def lowered(schedule: str, form: str) -> Any:
    gradient = jax.grad(pipelined(**schedule_options(schedule)))
    if form == "ipu.pmap":
        step = ipu.pmap(
            lambda w, x: ipu.cross_replica_sum(gradient(w, x)), in_axes=(None, 0), out_axes=None
        )
        return jax.jit(step).lower(WEIGHTS, BOTH)
    if form == "pmap":
        step = jax.pmap(
            lambda w, x: jax.lax.psum(gradient(w, x), "i"), axis_name="i", in_axes=(None, 0)
        )
        return step.lower(WEIGHTS, BOTH)
    spec = jax.sharding.PartitionSpec
    checks = form == "shard_map"

    def body(weights: Any, batch: jax.Array) -> Any:
        made = gradient(weights, batch[0])
        return made if checks else jax.lax.psum(made, "i")

    step = jax.shard_map(
        body,
        mesh=jax.sharding.Mesh(np.array(jax.devices()[:2]), ("i",)),
        in_specs=(spec(), spec("i")),
        out_specs=spec(),
        check_vma=checks,
    )
    return jax.jit(step).lower(WEIGHTS, BOTH)


@pytest.mark.parametrize("form", ["ipu.pmap", "pmap", "shard_map", "shard_map unchecked"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_each_gradient_is_reduced_once_a_step(schedule: str, form: str) -> None:
    compiled = Compiled(lowered(schedule, form), 3, num_replicas=2)
    assert compiled.turns_of("gcl.reduce") == [1] * len(WEIGHTS)
