"""Where stages run again in a pipeline, and what waits for them in FIFOs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.compiler import ir
from ipujax.compiler.ingest import ingest
from ipujax.compiler.normalise import normalise
from ipujax.compiler.pipelines import Run
from ipujax.compiler.place import place
from tests.compiler.programs import artifact, find

STAGES, LAYERS, MICRO_BATCHES = 4, 3, 8
WEIGHTS = [jnp.ones((LAYERS, 16, 16))] * STAGES
BATCH = jnp.ones((MICRO_BATCHES, 4, 16))
INPUT_BYTES = BATCH[0].nbytes


def layers(weights: jax.Array, x: jax.Array) -> jax.Array:
    for w in weights:
        x = jnp.tanh(x @ w)
    return x


def head(weights: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(layers(weights, x))


FUNCTIONS = [layers] * (STAGES - 1) + [head]


def pipeline_op(stages: Any, schedule: str, **options: Any) -> ir.Op:
    loss = ipu.pipeline(
        stages, micro_batches=MICRO_BATCHES, schedule=schedule, reduction="sum", **options
    )
    code = artifact(jax.grad(loss), WEIGHTS, BATCH)
    request = ingest(code, b"", {"ipus_per_device": STAGES})
    return find(place(normalise(request), request), "pipeline")


def fifo_bytes(op: ir.Op) -> list[int]:
    """What waits on each IPU; a value from another one waits where it lands first."""
    runs: list[Run] = op.attrs["runs"]
    found = [0] * STAGES
    for run, region in zip(runs, op.regions, strict=True):
        for edge, value in zip(run.edges, region.args[len(run.slots) :], strict=True):
            lands = runs[edge.producer].ipu != run.ipu
            found[run.ipu] += max(0, edge.capacity - lands) * value.size_bytes
    return found


def matmuls(op: ir.Op) -> dict[tuple[int, int], int]:
    """How many each run has, by its IPU and its first slot."""
    return {
        (run.ipu, run.place): sum(inner.name == "dot_general" for inner in ir.walk_ops(region))
        for run, region in zip(op.attrs["runs"], op.regions, strict=True)
    }


def checkpoints_around_stages(weights: Any, x: jax.Array) -> jax.Array:
    for i, (f, own) in enumerate(zip(FUNCTIONS, weights, strict=True)):
        x = jax.checkpoint(ipu.stage(f, ipu=i))(own, x)
    return x


#: Inputs of its stage that wait on each IPU, by schedule and by when the stage runs again.
WAITING = {
    ("grouped", "interleaved"): [0, 4, 2, 0],
    ("grouped", "then"): [0, 3, 1, 0],
    ("interleaved", "interleaved"): [0, 1, 0, 0],
    ("interleaved", "then"): [0, 1, 0, 0],
}


@pytest.mark.parametrize("schedule", ["grouped", "interleaved"])
@pytest.mark.parametrize("mode", ["interleaved", "then", "auto", "jax.checkpoint"])
def test_stages_run_again_where_the_mode_says(schedule: str, mode: str) -> None:
    if mode == "jax.checkpoint":
        op = pipeline_op(checkpoints_around_stages, schedule)
    else:
        op = pipeline_op(FUNCTIONS, schedule, remat=mode)
    by_itself = mode in ("then", "jax.checkpoint") or (mode, schedule) == ("auto", "interleaved")
    mode = "then" if by_itself else "interleaved"
    expected = {(i, i): LAYERS for i in range(STAGES - 1)}
    for i in range(STAGES):
        own = 2 * LAYERS - (i == 0)  # nobody needs the gradient of the batch
        again = (i, 2 * STAGES - 2 - i)
        if by_itself and i < STAGES - 1:
            expected[again] = LAYERS
        else:
            own += LAYERS
        expected[i, 2 * STAGES - 1 - i] = own
    assert matmuls(op) == expected
    assert fifo_bytes(op) == [count * INPUT_BYTES for count in WAITING[schedule, mode]]


def test_a_checkpoint_around_everything_is_divided_among_stages() -> None:
    stages = [ipu.stage(f, ipu=i) for i, f in enumerate(FUNCTIONS)]

    def whole(weights: Any, x: jax.Array) -> jax.Array:
        for stage, own in zip(stages, weights, strict=True):
            x = stage(own, x)
        return x

    found = matmuls(pipeline_op(jax.checkpoint(whole), "grouped"))
    assert {run: found[run] for run in found if run[1] < STAGES} == {
        (i, i + 1): LAYERS for i in range(STAGES - 1)
    }
    assert sum(found.values()) == STAGES * 3 * LAYERS - 1
