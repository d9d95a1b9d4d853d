"""Programs over several devices, end to end: IPUs against as many devices of JAX's CPU backend."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import ipujax as ipu
from tests.cases.sharded import CASES, ShardedCase
from tests.cases.sharded_ops import ROWS, OpGroup, jitted, name_of, on_one_device


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_results_are_those_of_the_cpu_backend(case: ShardedCase):
    """Values and shardings; where no sharding was requested, JAX's own choice may differ."""
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


@pytest.mark.parametrize("number", [3, 4, 5])
def test_padding_does_not_count_and_raises_nothing(number: int):
    """Zeros in place of the padding would divide by zero; its values would be in the sums."""
    mesh = Mesh(np.array(jax.devices("ipu")[:number]), ("a",))
    x = np.arange(1, 8, dtype=np.float32)

    def f(x):
        x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec("a")))
        y = jnp.sqrt(1 / x) * jnp.arange(1.0, 8.0)
        return y.sum(), y.prod(), y.argmin(), x @ y

    exceptions = {"ipu_floating_point_exceptions": "inv,div0,oflo"}
    got = jax.device_get(jax.jit(f, compiler_options=exceptions)(x))
    y = np.sqrt(1 / x) * np.arange(1, 8)
    np.testing.assert_allclose(got, (y.sum(), y.prod(), y.argmin(), x @ y), rtol=1e-5)


def test_exceptions_of_collectives():
    """Infinities in the operands raise nothing; sums of finite numbers that overflow do."""

    def all_ways(x):
        total = ipu.cross_replica_sum(x)
        return total, ipu.all_gather(x), jax.lax.pmax(x, "replica"), ipu.reduce_scatter(x, "max")

    x = np.array([[1, 2], [np.inf, 3]], np.float32)
    exceptions = {"ipu_floating_point_exceptions": "inv,div0,oflo"}
    step = jax.jit(ipu.pmap(all_ways), compiler_options=exceptions)
    total, *_ = step(x)
    np.testing.assert_array_equal(total, np.tile(x.sum(0), (2, 1)))
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"oflo.*all_reduce"):
        jax.block_until_ready(step(np.full((2, 2), 3e38, np.float32)))


COMPOSITES = [
    *(getattr(jax.lax, name) for name in ("acos", "asinh", "cosh", "digamma", "erf", "erf_inv")),
    *(getattr(jax.lax, name) for name in ("erfc", "lgamma", "sinh", "tan")),
    lambda x: jax.lax.top_k(x, 2),
]


def test_programs_with_composites_have_a_text():
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("a",))
    x = jax.device_put(np.ones((8, 6), np.float32), NamedSharding(mesh, PartitionSpec("a")))
    text = jax.jit(lambda x: [f(x) for f in COMPOSITES]).lower(x).compile().as_text()
    assert "f32[2,6]" in text
    assert "all-gather" not in text
