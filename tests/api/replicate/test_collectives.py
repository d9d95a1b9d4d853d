"""Every collective, dtype and group against NumPy; derivatives, `vmap`, pytrees and bad input."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jax.test_util import check_grads

import ipujax as ipu
from tests.cases.case import dtype_of
from tests.cases.collectives import (
    AXIS,
    OF_IPUJAX,
    OF_LAX,
    Collective,
    Groups,
    groupings,
    values,
)

NUM_REPLICAS = 4
TOLERANCE = {"float32": 1e-6, "complex64": 1e-6, "float16": 4e-3, "bfloat16": 3e-2}
ROWS = [(row, dtype) for row in (*OF_LAX, *OF_IPUJAX) for dtype in row.dtypes]


def compare(got: Any, want: np.ndarray, dtype: str) -> None:
    """Floats within rounding of a few sums; whole numbers exactly, wrapped as the dtype does."""
    got = np.asarray(got)
    if np.issubdtype(got.dtype, np.integer):
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    wide = np.complex128 if np.iscomplexobj(got) else np.float64
    bound = TOLERANCE.get(dtype, 1e-6)
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=bound, atol=bound)


@pytest.mark.parametrize(
    ("row", "dtype"), ROWS, ids=[f"{row.name}-{dtype}".replace(" ", "_") for row, dtype in ROWS]
)
def test_numbers(row: Collective, dtype: str):
    check_numbers(row, dtype, jax.devices("ipu")[:NUM_REPLICAS])


def check_numbers(row: Collective, dtype: str, devices: list[jax.Device]) -> None:
    """All groups of a row in one program."""
    x = values(dtype, len(devices))
    all_groups = groupings(row, len(devices))

    @ipu.pmap(devices=devices)
    def call(x):
        return [row.call(x, groups) for groups in all_groups]

    for groups, got in zip(all_groups, call(x), strict=True):
        assert got.dtype == result_dtype(row, dtype), (row.name, groups)
        compare(got, row.want(x, groups), dtype)


@pytest.mark.parametrize("row", [*OF_LAX, *OF_IPUJAX], ids=lambda row: row.name)
def test_numbers_on_eight(replicas, row: Collective):
    """The dtype that each row names first."""
    check_numbers(row, row.dtypes[0], replicas(8))


def result_dtype(row: Collective, dtype: str) -> Any:
    """Means of whole numbers are floats, sums of bools are counts; all else stays."""
    sums = row.name == "ipu.cross_replica_sum"
    means = row.name.endswith("mean")
    if dtype == "bool" and (sums or means):
        return jnp.float32 if means else jnp.int32
    if means and np.issubdtype(dtype_of(dtype), np.integer):
        return jnp.float32
    return dtype_of(dtype)


def spread(f: Any, way: str, devices: list[jax.Device]) -> Any:
    """f on each replica, by each of the ways that JAX has."""
    mesh = Mesh(np.array(devices), (AXIS,))
    along = PartitionSpec(AXIS)

    def one(x):
        return jax.tree.map(lambda leaf: leaf[None], f(jax.tree.map(lambda leaf: leaf[0], x)))

    if way == "ipu.pmap":
        return ipu.pmap(f, devices=devices)
    if way == "jax.pmap":
        return jax.pmap(f, AXIS, devices=devices)
    check = way == "shard_map, checked"
    return jax.jit(
        jax.shard_map(one, mesh=mesh, in_specs=along, out_specs=along, check_vma=check),
        in_shardings=NamedSharding(mesh, along),
    )


@pytest.mark.parametrize("way", ["ipu.pmap", "jax.pmap", "shard_map", "shard_map, checked"])
@pytest.mark.parametrize("row", OF_IPUJAX, ids=lambda row: row.name)
def test_every_way_to_replicate(replicas, row: Collective, way: str):
    dtype = "bool" if "logical" in row.name else "float32"
    x = values(dtype, NUM_REPLICAS)
    for groups in groupings(row, NUM_REPLICAS)[:2]:
        call = spread(partial(_call, row, groups), way, replicas(NUM_REPLICAS))
        compare(call(x), row.want(x, groups), dtype)


def _call(row: Collective, groups: Groups | None, x: Any) -> Any:
    return row.call(x, groups)


@pytest.mark.parametrize("row", OF_IPUJAX, ids=lambda row: row.name)
def test_vmap_is_a_loop(replicas, row: Collective):
    dtype = "bool" if "logical" in row.name else "float32"
    x = np.stack([values(dtype, NUM_REPLICAS, seed) for seed in range(3)], 2)  # [R, 8, batch, 3]
    devices = replicas(NUM_REPLICAS)
    for groups in groupings(row, NUM_REPLICAS)[:2]:
        call = partial(_call, row, groups)
        got = ipu.pmap(jax.vmap(call, in_axes=1), devices=devices)(x)
        for i in range(3):
            compare(got[:, i], row.want(x[:, :, i], groups), dtype)


@pytest.mark.parametrize(
    "row", [row for row in OF_IPUJAX if "logical" not in row.name], ids=lambda row: row.name
)
def test_derivatives(replicas, row: Collective):
    """Forward and reverse derivatives of the whole, against differences."""
    devices = replicas(NUM_REPLICAS)
    weight = np.random.default_rng(2).uniform(-1, 1, 1000).astype(np.float32)
    for groups in groupings(row, NUM_REPLICAS)[:2]:
        call = ipu.pmap(partial(_call, row, groups), devices=devices)

        def whole(x, call=call):
            result = call(x)
            return (result * jnp.resize(weight, result.shape)).sum()

        x = jnp.asarray(values("float32", NUM_REPLICAS))
        check_grads(whole, (x,), order=1, modes=("fwd", "rev"), atol=5e-2, rtol=5e-2, eps=1e-2)


def test_pytrees(replicas):
    tree = {"a": np.arange(8.0, dtype=np.float32).reshape(4, 2), "b": (np.arange(4),)}

    @ipu.pmap(devices=replicas(4))
    def call(x):
        return (
            ipu.cross_replica_sum(x),
            ipu.all_gather(x),
            ipu.reduce_scatter(x),
            ipu.assume_equal_across_replicas(x),
        )

    total, gathered, parts, first = call(tree)
    np.testing.assert_array_equal(total["a"], np.tile(tree["a"].sum(0), (4, 1)))
    np.testing.assert_array_equal(gathered["b"][0][2], np.arange(4))
    np.testing.assert_array_equal(parts["b"][0].ravel(), [6, 0, 0, 0])
    np.testing.assert_array_equal(first["a"], np.tile(tree["a"][0], (4, 1)))


def test_index_and_factor(replicas):
    @ipu.pmap(devices=replicas(4))
    def call(x):
        assert ipu.replication_factor() == 4
        return x + ipu.replication_index()

    np.testing.assert_array_equal(call(np.zeros(4, np.int32)), [0, 1, 2, 3])


def test_equal_bit_for_bit(replicas):
    odd = np.array([-0.0, np.nan, np.inf, -np.inf, 1e-45], np.float32)
    odd[1:2].view(np.uint32)[0] |= 0x123  # a NaN with a payload
    x = np.stack([odd, *np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)])
    got = ipu.pmap(ipu.assume_equal_across_replicas, devices=replicas(4))(x)
    np.testing.assert_array_equal(
        np.asarray(got).view(np.uint32), np.tile(odd.view(np.uint32), (4, 1))
    )


def test_equal_keys(replicas):
    @ipu.pmap(devices=replicas(4))
    def call(seed):
        key = ipu.assume_equal_across_replicas(jax.random.key(seed))
        return jax.random.key_data(key)

    got = np.asarray(call(np.arange(5, 9)))
    np.testing.assert_array_equal(got, np.tile(jax.random.key_data(jax.random.key(5)), (4, 1)))


def test_equal_conditions_lead_all_replicas_one_way(replicas):
    @ipu.pmap(devices=replicas(4))
    def call(x):
        positive = ipu.assume_equal_across_replicas(x > 0)
        return jax.lax.cond(positive, ipu.cross_replica_sum, lambda x: x, x)

    np.testing.assert_array_equal(call(np.array([1.0, -2.0, 3.0, -4.0])), [-2.0] * 4)
    np.testing.assert_array_equal(call(np.array([-1.0, 2.0, 3.0, 4.0])), [-1.0, 2.0, 3.0, 4.0])


def test_axes_of_a_mesh_must_be_named(replicas):
    mesh = Mesh(np.array(replicas(4)).reshape(2, 2), ("data", "model"))
    both = PartitionSpec(("data", "model"))

    def run(f):
        return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=both, out_specs=both))(np.arange(4.0))

    np.testing.assert_array_equal(
        run(lambda x: ipu.cross_replica_sum(x, axis_name="model")), [1, 1, 5, 5]
    )
    np.testing.assert_array_equal(
        run(lambda x: ipu.cross_replica_sum(x, axis_name=("data", "model"))), [6] * 4
    )
    with pytest.raises(ipu.ReplicationError, match=r"needs axis_name where several axes.*'data'"):
        run(ipu.cross_replica_sum)


def test_vmap_alone_is_an_axis_too():
    x = np.arange(8.0).reshape(4, 2)
    got = jax.vmap(ipu.cross_replica_sum, axis_name="batch")(x)
    np.testing.assert_array_equal(got, np.tile(x.sum(0), (4, 1)))


@pytest.mark.parametrize(
    "op", ["add", "mean", "square_add", "mul", "min", "max"], ids=lambda op: f"reduce_scatter_{op}"
)
def test_vmap_over_the_replicas_themselves(replicas, op: str):
    """What devices compute, and one device for all."""
    x = values("float32", 4)

    def both(x):
        return ipu.reduce_scatter(x, op), ipu.assume_equal_across_replicas(x)

    on_devices = ipu.pmap(both, devices=replicas(4))(x)
    on_one = jax.vmap(both, axis_name=AXIS)(x)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6), on_one, on_devices)


#: What each binds, and what that becomes on IPUs.
PRIMITIVES = {
    "cross_replica_sum": (ipu.cross_replica_sum, "psum", "all_reduce"),
    "cross_replica_mean": (ipu.cross_replica_mean, "psum", "all_reduce"),
    "all_gather": (ipu.all_gather, "all_gather", "all_gather"),
    "all_to_all": (lambda x: ipu.all_to_all(x, 0, 0), "all_to_all", "all_to_all"),
    "reduce_scatter": (ipu.reduce_scatter, "reduce_scatter", "reduce_scatter"),
    "reduce_scatter_max": (
        lambda x: ipu.reduce_scatter(x, "max"),
        "ipu_reduce_scatter",
        "reduce_scatter",
    ),
    "assume_equal_across_replicas": (
        ipu.assume_equal_across_replicas,
        "ipu_broadcast",
        "collective_broadcast",
    ),
    "replication_index": (lambda x: x + ipu.replication_index(), "axis_index", "partition_id"),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_each_is_one_collective(name: str):
    f, primitive, op = PRIMITIVES[name]
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), (AXIS,))
    along = PartitionSpec(AXIS)
    mapped = jax.shard_map(f, mesh=mesh, in_specs=along, out_specs=along, check_vma=False)
    x = np.ones(16, np.float32)
    assert f" {primitive}[" in str(jax.make_jaxpr(mapped)(x))
    text = jax.jit(mapped).lower(x).as_text()
    collectives = [line for line in text.splitlines() if "replica_groups" in line]
    assert f"stablehlo.{op}" in text
    assert len(collectives) == (0 if op == "partition_id" else 1)
    np.testing.assert_array_equal(mapped(x), jax.jit(mapped)(x))  # eager too


OUTSIDE = {
    "ipu.cross_replica_sum": ipu.cross_replica_sum,
    "ipu.cross_replica_mean": ipu.cross_replica_mean,
    "ipu.all_gather": ipu.all_gather,
    "ipu.all_to_all": lambda x: ipu.all_to_all(x, 0, 0),
    "ipu.reduce_scatter": ipu.reduce_scatter,
    "ipu.assume_equal_across_replicas": ipu.assume_equal_across_replicas,
    "ipu.replication_index": lambda x: ipu.replication_index(),
    "ipu.replication_factor": lambda x: ipu.replication_factor(),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_outside_of_a_mapped_axis(name: str):
    for call in (OUTSIDE[name], jax.jit(OUTSIDE[name])):
        with pytest.raises(
            ipu.ReplicationError, match=rf"\[{name}\] needs a mapped axis; got none"
        ):
            call(jnp.zeros(4))


WRONG = [
    (lambda x: ipu.cross_replica_sum(x, 3), "replica_group_size to divide the 4 .*got 3.*1, 2, 4"),
    (lambda x: ipu.all_gather(x, 0), "replica_group_size to divide the 4 replicas; got 0"),
    (lambda x: ipu.reduce_scatter(x, "add", 8), "to divide the 4 replicas; got 8"),
    (lambda x: ipu.reduce_scatter(x, "sum"), "needs op to be one of add, mean.*got 'sum'"),
    (lambda x: ipu.reduce_scatter(x, "logical_or"), "needs bools for op='logical_or'.*float32"),
    (lambda x: ipu.reduce_scatter(x > 0, "add"), "needs numbers for op='add'; got bool"),
    (lambda x: ipu.reduce_scatter(x * 1j, "max"), "real numbers for op='max'; got complex64"),
    (lambda x: ipu.all_to_all(x, 0, 0), r"the 4 replicas divide; got 6 in shape \(6,\)"),
    (lambda x: ipu.all_to_all(x, 1, 0), "split_dimension within the array's 1 dimensions; got 1"),
    (lambda x: ipu.all_to_all(x, "0", 0), "split_dimension within the array's .*; got '0'"),
    (lambda x: ipu.all_gather(x, axis_name="model"), "mapped axis; got 'model' where 'replica'"),
]


@pytest.mark.parametrize(
    "name",
    [
        "cross_replica_sum",
        "cross_replica_mean",
        "all_gather",
        "reduce_scatter",
        "assume_equal_across_replicas",
    ],
)
def test_what_is_no_array(name: str):
    for value in ("x", {"a": {1}}, np.array(["a"]), 10**400, lambda x: x):
        with pytest.raises(ipu.ConfigError, match=rf"\[ipu.{name}\] needs x to be an array"):
            ipu.pmap(lambda x, value=value: getattr(ipu, name)(value))(np.zeros(2))


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_bad_input(replicas, call: Any, message: str):
    devices = replicas(4)
    with pytest.raises(ipu.ReplicationError, match=message):
        ipu.pmap(call, devices=devices)(np.zeros((4, 6), np.float32))
    total = ipu.pmap(ipu.cross_replica_sum, devices=devices)(np.ones(4))
    assert total[0] == 4  # the next call works
