"""Pipelines whose weights lie partitioned over the replicas."""

from __future__ import annotations

import json

import pytest

from tests.conftest import RunPython
from tests.stages.weight_shards import FORMS, MICRO_BATCHES, STAGES, WIDTH

WEIGHT = 4 * WIDTH * WIDTH


@pytest.mark.parametrize(
    ("schedule", "serial", "replicas"),
    [("sequential", 1, 4), ("sequential", 4, 2), ("grouped", 1, 2), ("interleaved", 1, 4)],
)
def test_partitioned_weights_change_where_they_lie_and_no_bit(
    run_python: RunPython, schedule: str, serial: int, replicas: int
) -> None:
    env = {"JAX_IPU_IPUS_PER_DEVICE": "4", "JAX_IPU_DEVICE_COUNT": "4", "JAX_PLATFORMS": "ipu,cpu"}
    given = (schedule, str(serial), str(replicas))
    done = run_python("-m", "tests.stages.weight_shards", *given, env=env)
    assert done.returncode == 0, done.stderr
    rows = {row["form"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert rows.keys() == FORMS.keys()
    assert all(row["equal"] for row in rows.values())
    part = 4 * -(-WIDTH * WIDTH // replicas)
    saved = rows["whole"]["arguments"] - rows["gathered"]["arguments"]
    assert saved == STAGES * (WEIGHT - part)
    # Without it all weights are on the device at once, with it those of one stage.
    assert rows["gathered once"]["peak"] - rows["gathered"]["peak"] >= (STAGES - 1) * WEIGHT
    # A stage gathers its weight for its forward and its backward pass of `serial` micro-batches.
    gathers = 2 * STAGES * MICRO_BATCHES // serial
    links = {form: row["link bytes"] for form, row in rows.items()}
    more = links["gathered"] - links["gathered once"]
    assert more == pytest.approx((gathers - STAGES) * (replicas - 1) * part, rel=1e-3)  # rounded up
    like = "gathered" if serial > 1 else "gathered once"
    assert {**rows["by default"], "form": like} == rows[like]
    held = {form: row["host arguments"] for form, row in rows.items()}
    assert held == {**dict.fromkeys(FORMS, 0), "offloaded": STAGES * part}
    assert rows["offloaded"]["host cycles"] > 0
