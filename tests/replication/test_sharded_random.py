"""Random programs whose arguments are dealt at random, against the same programs on one IPU."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.compiler.sharded_oracle import LocalProgram
from tests.fuzz.check import on_platform, unequal
from tests.fuzz.dealt import deal, run_on_ipus
from tests.fuzz.generator import from_seed


@pytest.mark.parametrize("seed", range(40_000, 40_016))
def test_blocks_are_those_of_one_ipu(seed: int):
    program = from_seed(seed)
    code, _ = deal(program, random.Random(seed))
    local = LocalProgram.of(code)
    got = run_on_ipus(code, local, program.arguments)
    wanted = on_platform("ipu")(program.code, program.arguments)
    assert len(got) == len(wanted)
    rows = zip(got, wanted, local.results, program.errors, strict=True)
    for blocks, whole, sharding, error in rows:
        for block, part in zip(blocks, local.blocks(sharding, np.asarray(whole)), strict=True):
            # Sums over devices are rounded in another order than those of one.
            assert not unequal(block, part, max(2 * error, 1e-6))
