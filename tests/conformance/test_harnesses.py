"""A fixed part of the conformance run: a few harnesses of every group, none of them wrong."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from tests.conformance.gradients import chosen_for_gradients
from tests.conformance.harnesses import all_harnesses, chosen
from tests.conformance.page import bad
from tests.conformance.runner import GRADIENT_WORKER, run_harnesses

#: Of each group; `make conformance` runs all.
PER_GROUP = 2


@pytest.mark.slow
def test_some_harnesses_of_every_group() -> None:
    harnesses = all_harnesses()
    positions = chosen(harnesses, limit=PER_GROUP)
    groups = {harness.group for harness in harnesses}
    assert {harnesses[position].group for position in positions} == groups
    records: list[dict[str, Any]] = run_harnesses(
        harnesses, positions, os.cpu_count() or 1, 120.0, lambda record: None
    )
    failures = [record for record in records if bad(record) or record["status"] == "refused"]
    assert failures == []
    states = Counter(record["status"] for record in records)
    assert states["works"] > 0.9 * len(records)


#: Cheap groups of several kinds; the run over all groups takes six minutes.
DIFFERENTIATED = ("atan2", "conv_general_dilated", "cumsum", "dot_general", "gather", "select_n")


@pytest.mark.slow
def test_second_derivatives_of_some_groups() -> None:
    harnesses = all_harnesses()
    positions = [
        position
        for position in chosen_for_gradients(harnesses, 1)
        if harnesses[position].group in DIFFERENTIATED
    ]
    records = run_harnesses(
        harnesses, positions, os.cpu_count() or 1, 120.0, lambda record: None, GRADIENT_WORKER
    )
    assert [record["status"] for record in records] == ["works"] * len(DIFFERENTIATED)
