"""Stages round at random by the seed, whatever the schedule is and whatever is recomputed."""

from __future__ import annotations

import json

from tests.conftest import RunPython
from tests.stages import rounded


def test_schedules_and_recomputation_change_no_random_bit(run_python: RunPython) -> None:
    env = {"JAX_PLATFORMS": "ipu", "JAX_IPU_IPUS_PER_DEVICE": "2"}
    done = run_python("-m", rounded.__name__, env=env)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 8
    for row in rows:
        first, again, other = row["digests"]
        assert first == again, row
        assert first != other, row
    assert len({row["digests"][0][0] for row in rows}) == 1, rows
    for is_kept in (True, False):  # the backward passes of the two are simplified in two ways
        gradients = {row["digests"][0][1] for row in rows if (row["remat"] is False) == is_kept}
        assert len(gradients) == 1, rows
