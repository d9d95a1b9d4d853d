"""Pipelines that keep activations, accumulators or weights in the host's memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import RunPython
from tests.stages.models import SERIALIZED
from tests.stages.offloaded import LOOPS, MICRO_BATCHES, ROWS, STAGES, WIDTH

ACTIVATION, WEIGHT = 4 * ROWS * WIDTH, 4 * WIDTH * WIDTH
SERIAL = SERIALIZED["batch_serialization_iterations"]
SMALL = 64  #: bytes of counters
ENVIRONMENT = {"JAX_IPU_IPUS_PER_DEVICE": "4", "JAX_PLATFORMS": "ipu,cpu"}
#: Micro-batches that wait in the FIFOs of all stages: the inputs of all but the first, whose inputs
#: are slices of the batch. One more waits where it came from the other IPU.
WAITING = {
    "grouped": sum(2 * (STAGES - 1 - i) for i in range(1, STAGES)),
    "interleaved": sum(STAGES - 2 - i for i in range(1, STAGES - 1)),
    "sequential": 0,
    "serialized": SERIAL * 2 * (STAGES - 1),  # stacks of what stages hand on, forward and backward
}


@pytest.mark.parametrize(
    ("schedule", "form"), [*((name, "derived") for name in WAITING), ("interleaved", "explicit")]
)
def test_offloading_changes_where_values_lie_and_no_bit(
    run_python: RunPython, schedule: str, form: str
) -> None:
    done = run_python("-m", "tests.stages.offloaded", schedule, form, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    rows: dict[str, Any] = {}
    loops: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        if "loop" in row:
            loops[row["loop"]] = row
        else:
            rows[row["kind"]] = row
    _check_loops(loops)
    assert all(row["equal"] for row in rows.values())
    host = {kind: row["host"] for kind, row in rows.items()}
    stash = WAITING[schedule] * ACTIVATION
    assert host["nothing"] == host["nothing that large"] == 0
    assert host["activations"] == stash
    assert host["weights"] == 0
    assert host["accumulators"] == STAGES * WEIGHT
    assert host["all"] == stash + STAGES * WEIGHT
    assert rows["weights"]["host arguments"] == STAGES * WEIGHT
    saved = {kind: rows["nothing"]["device"] - row["device"] for kind, row in rows.items()}
    assert saved["nothing that large"] == 0
    if schedule != "serialized":  # whose stacks share memory with other temporaries
        assert saved["activations"] >= stash
    if schedule == "sequential":  # less what one stage works with: the old sum and the new one
        assert saved["accumulators"] >= (STAGES - 2) * WEIGHT - SMALL
        assert saved["weights"] >= WEIGHT
        assert saved["all"] >= STAGES * WEIGHT
    _check_time(rows)
    # For each micro-batch a stage brings and stores its sum, and brings its weight twice: once for
    # as many as it runs in turn.
    cycles = {kind: row["costs"]["host cycles"] for kind, row in rows.items()}
    in_turn = SERIAL if schedule == "serialized" else 1
    assert cycles["weights"] < 1.2 / in_turn * cycles["accumulators"]


def _check_loops(rows: dict[str, Any]) -> None:
    """State of Adam and weights stay in their buffers on the host from step to step."""
    assert rows.keys() == LOOPS.keys()
    assert all(row["equal"] for row in rows.values())
    held = {"nothing": 0, "state": 2 * STAGES * WEIGHT, "all": 3 * STAGES * WEIGHT}
    assert {kind: row["host arguments"] for kind, row in rows.items()} == held
    assert {kind: row["host results in place"] for kind, row in rows.items()} == held
    assert rows["nothing"]["host"] == rows["state"]["host"] == 0
    assert rows["all"]["host"] >= STAGES * WEIGHT


def _check_time(rows: dict[str, Any]) -> None:
    """Each clock shows the whole, and each transfer has its time."""
    for row in rows.values():
        costs = row["costs"]
        parts = ("compute", "exchange", "link", "host", "idle")
        for i in range(4):
            total = sum(costs[f"ipu {i} {part} cycles"] for part in parts)
            assert total == pytest.approx(costs["cycles"], rel=1e-5)
        assert (costs["host cycles"] > 0) == (row["host"] + row["host arguments"] > 0)
    transfers = 2 * MICRO_BATCHES * STAGES
    seconds = rows["accumulators"]["costs"]["host cycles"] / 1.33e9
    assert seconds >= transfers * WEIGHT / 32e9
