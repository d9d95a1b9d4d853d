"""Programs over several devices, end to end: IPUs against as many devices of JAX's CPU backend."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.cases.sharded import CASES, ShardedCase


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_are_those_of_the_cpu_backend(case: ShardedCase):
    """Values, and how they are dealt: JAX's own choice may differ where none was asked for."""
    ours, theirs = (
        jax.tree.leaves(program.f(*program.args))
        for program in (case.program(jax.devices(platform)) for platform in ("ipu", "cpu"))
    )
    assert len(ours) == len(theirs)
    for got, wanted in zip(ours, theirs, strict=True):
        assert got.shape == wanted.shape
        assert got.dtype == wanted.dtype
        whole = np.asarray(wanted)
        for shard in got.addressable_shards:
            block, wanted_block = np.asarray(shard.data), whole[shard.index]
            np.testing.assert_allclose(block, wanted_block, rtol=case.rtol, atol=case.atol)
