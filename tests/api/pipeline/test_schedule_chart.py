"""The chart of a pipeline shows the slots that the schedule's rules give."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu

WIDTH = 4

#: By schedule: the slots of the forward and the backward pass of micro-batch k in stage i of s.
RULES = {
    "grouped": (lambda i, k, s: k + i, lambda i, k, s: k + 2 * s - 1 - i),
    "interleaved": (lambda i, k, s: 2 * k + i, lambda i, k, s: 2 * k + 2 * s - 1 - i),
    "sequential": (lambda i, k, s: 2 * s * k + i, lambda i, k, s: 2 * s * (k + 1) - 1 - i),
}


def _rows(chart: str) -> dict[str, dict[int, set[str]]]:
    """By stage: what it does in each slot."""
    heading, *lines = (line.split() for line in chart.splitlines())
    slots = [int(number) for number in heading[1:]]
    rows = {}
    for _, _, stage, *cells in lines:
        rows[stage] = {
            slot: set(cell.split("+"))
            for slot, cell in zip(slots, cells, strict=True)
            if cell != "-"
        }
    return rows


def test_stages_may_run_several_micro_batches_in_turn() -> None:
    """In a loop over batches."""
    layers = [ipu.stage(f, ipu=0) for f in (jnp.sin, jnp.cos)]
    run = ipu.pipeline(
        lambda x: layers[1](layers[0](x)),
        micro_batches=4,
        in_axes=0,
        schedule="sequential",
        batch_serialization_iterations=2,
        repeat_count=3,
    )
    rows = _rows(ipu.schedule_chart(run, jnp.ones((3, 4))))
    assert rows == {
        "sin": {0: {"F0"}, 1: {"F1"}, 4: {"F2"}, 5: {"F3"}},
        "cos": {2: {"F0"}, 3: {"F1"}, 6: {"F2"}, 7: {"F3"}},
    }


@pytest.mark.parametrize("schedule", RULES)
@pytest.mark.parametrize(("num_stages", "micro_batches"), [(2, 1), (3, 5), (4, 2)])
def test_training(monkeypatch, schedule: str, num_stages: int, micro_batches: int):
    monkeypatch.setenv("JAX_IPU_IPUS_PER_DEVICE", "4")
    layers = [
        ipu.stage(lambda w, x: jnp.tanh(x @ w), name=f"layer{i}") for i in range(num_stages - 1)
    ]
    last = ipu.stage(lambda w, x: jnp.mean(x @ w), name=f"layer{num_stages - 1}")
    loss = ipu.pipeline(
        [*layers, last], micro_batches=micro_batches, schedule=schedule, reduction="mean"
    )
    weights = [jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)] * num_stages
    batch = jax.ShapeDtypeStruct((micro_batches, 2, WIDTH), jnp.float32)
    chart = ipu.schedule_chart(jax.value_and_grad(loss), weights, batch, max_slots=1000)
    forward, backward = RULES[schedule]
    wanted: dict[str, dict[int, set[str]]] = {}
    for i in range(num_stages):
        row = wanted.setdefault(f"layer{i}", {})
        for k in range(micro_batches):
            row.setdefault(forward(i, k, num_stages), set()).add(f"F{k}")
            row.setdefault(backward(i, k, num_stages), set()).add(f"B{k}")
    assert _rows(chart) == wanted


def test_a_long_pipeline_is_cut_in_the_middle(monkeypatch):
    monkeypatch.setenv("JAX_IPU_IPUS_PER_DEVICE", "2")
    run = ipu.pipeline([jnp.multiply, jnp.add], micro_batches=50)
    chart = ipu.schedule_chart(run, [1.0, 2.0], jnp.ones(50), max_slots=6)
    assert chart.splitlines()[0].split() == ["slot", "0", "1", "2", "48", "49", "50"]
    assert "..." in chart


def test_a_function_without_a_pipeline():
    with pytest.raises(ipu.PipelineError, match="needs a function with a pipeline"):
        ipu.schedule_chart(jnp.sin, 1.0)
