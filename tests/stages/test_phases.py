"""Phases whose values leave the tiles: the same bits, less tile memory, more streaming memory."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import RunPython
from tests.stages.phased import PHASES, ROWS, WIDTH

ENVIRONMENT = {"JAX_IPU_IPUS_PER_DEVICE": "4", "JAX_PLATFORMS": "ipu,cpu"}
ACTIVATION, WEIGHT = 4 * ROWS * WIDTH, 4 * WIDTH * WIDTH
KEPT = 2  #: activations that each phase keeps for its backward pass
#: Activations in streaming memory; each phase but the last hands one on, in both directions.
WAITING = {
    "always_live": 0,
    "off_chip_after_forward": KEPT * (PHASES - 1),
    "off_chip_after_forward_no_overlap": KEPT * PHASES,
    "off_chip_after_each_phase": KEPT * PHASES + 2 * (PHASES - 1),
    "nothing that large": 0,
    "weights": KEPT * PHASES + 2 * (PHASES - 1),
}


@pytest.mark.parametrize("strategy", ["SerialPhasedExecution", "ParallelPhasedExecution"])
def test_liveness_changes_where_values_wait_and_no_bit(
    run_python: RunPython, strategy: str
) -> None:
    done = run_python("-m", "tests.stages.phased", strategy, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    rows: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        rows[row["kind"]] = row
    assert all(row["equal"] for row in rows.values())
    assert {kind: row["host"] for kind, row in rows.items()} == {
        kind: count * ACTIVATION for kind, count in WAITING.items()
    }
    live = rows["always_live"]
    for kind, row in rows.items():
        costs = row["costs"]
        if not WAITING[kind]:
            assert row["device"] == live["device"]
            assert costs["host cycles"] == 0
            continue
        assert live["device"] - row["device"] >= (PHASES - 1) * ACTIVATION
        assert costs["worst tile bytes"] < live["costs"]["worst tile bytes"]
        assert costs["cycles"] > live["costs"]["cycles"]  # a phase waits for what it brings
        transfers = 2 * WAITING[kind] * ACTIVATION
        assert costs["host cycles"] / 1.33e9 >= transfers / 32e9
    # Weights on the host come for each pass of their own phase, not before.
    each = rows["off_chip_after_each_phase"]
    assert each["device"] - rows["weights"]["device"] >= (PHASES - 2) * WEIGHT
