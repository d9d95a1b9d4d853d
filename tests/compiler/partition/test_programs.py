"""Whole programs, partitioned and run on CPU devices, against JAX."""

from __future__ import annotations

import jax
import pytest

from tests.cases.sharded import CASES, ShardedCase
from tests.compiler.partition.sharded_oracle import compare


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_blocks_are_those_of_jax(case: ShardedCase):
    program = case.program(jax.devices("cpu"))
    made = compare(program.f, program.args, program.f, case.rtol, case.atol)
    assert "sdy." not in made.text
