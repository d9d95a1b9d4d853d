"""Programs over several devices, end to end: IPUs against as many devices of JAX's CPU backend."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.cases.sharded import CASES, ShardedCase
from tests.cases.sharded_ops import ROWS, OpGroup, jitted, name_of, on_one_device


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


@pytest.mark.parametrize(("group", "shape", "specs"), ROWS, ids=name_of)
def test_single_ops(group: OpGroup, shape: Any, specs: Any):
    got = jax.device_get(jitted(group, shape, specs, jax.devices("ipu"))(*group.args))
    wanted = on_one_device(group)
    for (path, g), w in zip(
        jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(wanted), strict=True
    ):
        np.testing.assert_allclose(g, w, rtol=1e-3, atol=1e-4, err_msg=jax.tree_util.keystr(path))
