"""Typed PRNG keys in batches and results of loops."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

import ipujax as ipu
from ipujax.errors import FeedError

IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")


def _draw(x, batch):
    return x + jax.random.uniform(batch["key"], x.shape), (jax.random.split(batch["key"]), x)


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_arrive_and_leave_as_they_are(impl: str):
    keys = jax.random.split(jax.random.key(3, impl=impl), 4)
    infeed, outfeed = ipu.Infeed([{"key": key} for key in keys]), ipu.Outfeed()
    assert infeed.spec["key"].dtype == keys.dtype
    run = jax.jit(lambda x: ipu.repeat(4, _draw, x, infeed=infeed, outfeed=outfeed))
    last = run(jnp.zeros(3))
    jax.block_until_ready(last)
    made, _ = outfeed.dequeue()
    assert made.dtype == keys.dtype
    assert made.shape == (4, 2)
    wanted = [jax.random.split(key) for key in keys]
    for found, want in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(jax.random.key_data(found), jax.random.key_data(want))
    drawn = sum(jax.random.uniform(key, (3,)) for key in keys)
    np.testing.assert_allclose(last, drawn, rtol=1e-6)


@pytest.mark.parametrize("mode", ["last", "final"])
def test_modes_that_keep_one(mode: str):
    outfeed = ipu.Outfeed(mode)
    step = lambda key: (jax.random.fold_in(key, 1), key)  # noqa: E731
    last = jax.jit(lambda key: ipu.repeat(2, step, key, outfeed=outfeed))(jax.random.key(0))
    jax.block_until_ready(last)
    wanted = jax.random.fold_in(jax.random.key(0), 1)
    assert outfeed.dequeue() == wanted
    assert last == jax.random.fold_in(wanted, 1)


def test_each_replica_gets_its_keys():
    mesh = jax.make_mesh(
        (2,), ("r",), devices=jax.devices("ipu")[:2], axis_types=(jax.sharding.AxisType.Auto,)
    )
    keys = jax.random.split(jax.random.key(1), 4)
    infeed = ipu.Infeed([keys])

    def program():
        zeros = jax.lax.pcast(jnp.zeros((2, 2), jnp.uint32), "r", to="varying")
        return ipu.repeat(1, lambda x, key: x + jax.random.key_data(key), zeros, infeed=infeed)

    mapped = jax.shard_map(program, mesh=mesh, in_specs=(), out_specs=PartitionSpec("r"))
    np.testing.assert_array_equal(jax.jit(mapped)(), jax.random.key_data(keys))
    single = ipu.Infeed([jax.random.key(1)])
    with pytest.raises(FeedError, match=r"first dimension to split over 2 replicas.*split\("):
        jax.jit(
            jax.shard_map(
                lambda: ipu.repeat(1, lambda x, key: x, jnp.zeros(()), infeed=single),
                mesh=mesh,
                in_specs=(),
                out_specs=PartitionSpec(),
            )
        )()


def test_keys_of_another_implementation_are_another_structure():
    batches = [jax.random.key(0), jax.random.key(0, impl="rbg")]
    infeed = ipu.Infeed(batches)
    step = lambda x, key: x + jax.random.key_data(key)[0]  # noqa: E731
    run = jax.jit(lambda: ipu.repeat(2, step, jnp.uint32(0), infeed=infeed))
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs batches of one structure"):
        run().block_until_ready()


def test_where_only_numbers_will_do(tmp_path: Path):
    key = jax.random.key(0)
    with pytest.raises(FeedError, match="numbers to add them up; got keys of threefry"):
        ipu.repeat(2, lambda x: (x, x), key, outfeed=ipu.Outfeed("sum"))
    with pytest.raises(FeedError, match="numbers to write them; got key<fry>"):
        ipu.data.export_dataset(tmp_path / "d", [key])
    with pytest.raises(FeedError, match="numbers to make them; got key<fry>"):
        ipu.data.Synthetic(key).begin()
