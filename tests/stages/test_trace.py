"""The published trace of two IPUs: how long a slot takes, how many there are, what waits."""

from __future__ import annotations

import json

import pytest

from tests.conftest import RunPython
from tests.stages.image import Compiled
from tests.stages.trace import MICRO_BATCHES, lowered

#: Cycles of one slot in which both IPUs work: of the IPUs, and of the copies between them.
PUBLISHED = {"ipu 0": 34_700, "ipu 1": 22_400, "copies": 1_450}
BOUND = 0.2


def test_a_slot_takes_as_long_as_published(run_python: RunPython) -> None:
    env = {"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_PLATFORMS": "ipu"}
    done = run_python("-m", "tests.stages.trace", env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found == {key: pytest.approx(value, rel=BOUND) for key, value in PUBLISHED.items()}


def test_slots_and_stash_are_counted_exactly() -> None:
    """20 slots, the last with FIFOs and copies only; two micro-batches wait on IPU 0."""
    compiled = Compiled(lowered(MICRO_BATCHES), 2)
    assert {(fifo.depth, fifo.num_turns) for fifo in compiled.fifos} == {(2, 20)}
    (expected,) = compiled.expected
    assert sorted(f.num_bytes for f in compiled.fifos) == sorted(f.num_bytes for f in expected)
