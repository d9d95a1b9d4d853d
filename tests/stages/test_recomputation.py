"""Recomputed stages: the same bits with more work and less memory, in every schedule."""

from __future__ import annotations

import json

import pytest

from tests.conftest import RunPython
from tests.stages import recomputed
from tests.stages.recomputed import LAYERS, MICRO_BATCHES, ROWS, SAMPLES, STAGES, WIDTH

MATMUL_FLOPS = 2 * SAMPLES * WIDTH**2 * MICRO_BATCHES * STAGES

#: For each row the matmuls of a stage that run again. Checkpoints keep all products; of nested
#: ones the last layer is computed again once, the others twice.
AGAIN = dict.fromkeys(ROWS, LAYERS) | {
    "plain": 0,
    "checkpoints": 0,
    "nested": 2 * LAYERS - 1,
    "dots": 0,
    "names": 0,
    "offloaded names": 0,
    "offloaded dots": 0,
    "scan": 0,
    "scan of offloaded dots": 0,
    "scan of checkpoints": 2 * LAYERS,
    "dropout": 0,
}

#: What waits in their FIFOs is one array for each layer, as without recomputation.
KEEP_AS_MUCH = {"checkpoints", "dots", "names"}


@pytest.mark.parametrize("schedule", ["grouped", "interleaved", "sequential"])
def test_stages_are_recomputed(run_python: RunPython, schedule: str) -> None:
    env = {"JAX_PLATFORMS": "ipu", "JAX_IPU_IPUS_PER_DEVICE": str(STAGES)}
    done = run_python("-m", recomputed.__name__, schedule, env=env)
    assert done.returncode == 0, done.stderr
    assert "one stage at a time" not in done.stderr
    rows = {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert {name for name, row in rows.items() if row["equal"]} == ROWS.keys()
    kept = {name: rows[like] for name, (_, _, like) in ROWS.items()}
    again = {
        name: round((row["flops"] - kept[name]["flops"]) / MATMUL_FLOPS)
        for name, row in rows.items()
    }
    assert again == AGAIN
    key = "temporary bytes"
    takes_less = {name for name, row in rows.items() if row[key] < kept[name][key]}
    recomputed_rows = {name for name, (_, _, like) in ROWS.items() if name != like}
    assert takes_less == recomputed_rows - (set() if schedule == "sequential" else KEEP_AS_MUCH)
    on_host = {name for name, row in rows.items() if row["host bytes"] > 0}
    assert on_host == {name for name in ROWS if "offloaded" in name}
    if schedule == "interleaved":  # a forward and a recomputed stage take as long as a backward one
        assert rows["then"]["cycles"] < rows["interleaved"]["cycles"]
