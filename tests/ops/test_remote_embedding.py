"""Tables in streaming memory, against a NumPy table."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu
from ipujax.errors import ConfigError

RATE, ROWS, COLUMNS = 0.1, 64, 8
START = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)
IDS = np.random.default_rng(2).integers(0, ROWS, (4, 6)).astype(np.int32)
IDS[0, :3] = IDS[1, 0] = 7
IDS[3, 4:] = -5, 99  # are clipped
GRADIENTS = np.random.default_rng(3).normal(size=(4, 6, COLUMNS)).astype(np.float32)
CLIPPED = np.clip(IDS, 0, ROWS - 1)


def updated() -> np.ndarray:
    wanted = START.astype(np.float64)
    for index, gradient in zip(CLIPPED.ravel(), GRADIENTS.reshape(-1, COLUMNS), strict=True):
        wanted[index] -= RATE * gradient
    return wanted


def test_rows_are_read_and_changed_where_they_are(device) -> None:
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    table = jax.device_put(START, host)
    lookup = jax.jit(ipu.ops.remote_embedding_lookup)
    rows = lookup(table, IDS)
    np.testing.assert_array_equal(rows, START[CLIPPED])
    assert rows.sharding.memory_kind == "device"
    update = jax.jit(ipu.ops.remote_embedding_update, donate_argnums=0, out_shardings=host)
    old = table.unsafe_buffer_pointer()
    table = update(table, IDS, GRADIENTS, RATE)
    assert table.unsafe_buffer_pointer() == old
    np.testing.assert_allclose(table, updated(), 1e-6, 1e-6)
    np.testing.assert_allclose(lookup(table, IDS), updated()[CLIPPED], 1e-6, 1e-6)


def test_a_step_holds_few_rows_on_the_tiles(device) -> None:
    host = SingleDeviceSharding(device, memory_kind="pinned_host")
    table = jax.device_put(np.zeros((100_000, 64), np.float32), host)

    @jax.jit
    def step(table: jax.Array, ids: jax.Array) -> Any:
        rows = ipu.ops.remote_embedding_lookup(table, ids)
        gradient = jax.grad(lambda rows: jnp.sum((rows - 1) ** 2))(rows)
        return ipu.ops.remote_embedding_update(table, ids, gradient, 0.5)

    ids = np.arange(0, 100_000, 1000, dtype=np.int32)
    step = jax.jit(step, donate_argnums=0, out_shardings=host)
    compiled = step.lower(table, ids).compile()
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < 400_000  # of a table of 25.6 MB
    found = np.asarray(compiled(table, ids))
    np.testing.assert_array_equal(found[:, 0].nonzero()[0], ids)
    np.testing.assert_array_equal(found[ids], 1)


@pytest.mark.parametrize("platform", ["ipu", "cpu"])
def test_tables_in_other_memories(platform) -> None:
    with jax.default_device(jax.devices(platform)[0]):
        table = jnp.asarray(START)
        found = jax.jit(ipu.ops.remote_embedding_lookup)(table, IDS)
        np.testing.assert_array_equal(found, START[CLIPPED])
        table = jax.jit(ipu.ops.remote_embedding_update)(table, IDS, GRADIENTS, RATE)
        np.testing.assert_allclose(table, updated(), 1e-6, 1e-6)


@pytest.mark.parametrize(("strategy", "spec"), [("token", P("r")), ("encoding", P(None, "r"))])
@pytest.mark.parametrize("kind", ["pinned_host", "device"])
def test_parts_of_replicas(strategy, spec, kind) -> None:
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("r",))
    where = NamedSharding(mesh, spec, memory_kind=kind)
    table = jax.device_put(START, where)
    options = {"axis_name": "r", "partition_strategy": strategy}

    def lookup(table: jax.Array, ids: jax.Array) -> jax.Array:
        return ipu.ops.remote_embedding_lookup(table, ids, **options)

    def update(table: jax.Array, ids: jax.Array, gradients: jax.Array) -> jax.Array:
        return ipu.ops.remote_embedding_update(table, ids, gradients, RATE, **options)

    batch = P("r")
    mapped = jax.jit(jax.shard_map(lookup, mesh=mesh, in_specs=(spec, batch), out_specs=batch))
    np.testing.assert_array_equal(mapped(table, IDS), START[CLIPPED])
    change = jax.shard_map(update, mesh=mesh, in_specs=(spec, batch, batch), out_specs=spec)
    table = jax.jit(change, donate_argnums=0, out_shardings=where)(table, IDS, GRADIENTS)
    np.testing.assert_allclose(table, updated(), 1e-6, 1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ipu.ops.remote_embedding_lookup(START[0], IDS), r"got float32 \[8\]"),
        (lambda: ipu.ops.remote_embedding_lookup(IDS, IDS), r"got int32 \[4, 6\]"),
        (lambda: ipu.ops.remote_embedding_lookup(START, START), "integer dtype; got float32"),
        (
            lambda: ipu.ops.remote_embedding_lookup(START, IDS, partition_strategy="rows"),
            "got 'rows'",
        ),
        (
            lambda: ipu.ops.remote_embedding_update(START, CLIPPED, START, RATE),
            r"gradients \[4, 6, 8\]; got \[64, 8\]",
        ),
        (
            lambda: jax.grad(lambda t: ipu.ops.remote_embedding_lookup(t, CLIPPED).sum())(START),
            "not differentiated; got a derivative",
        ),
    ],
)
def test_wrong_arguments(call, message) -> None:
    with pytest.raises(ConfigError, match=message):
        call()


@pytest.mark.parametrize("wrong", [-1, 4, 2**31 - 1])
def test_known_ids_that_are_no_rows_are_refused(wrong: int) -> None:
    table, ids = jnp.zeros((4, 2)), jnp.array([0, wrong])
    with pytest.raises(ipu.ConfigError, match=f"needs ids from 0 to 3; got {wrong}"):
        ipu.ops.remote_embedding_lookup(table, ids)
    with pytest.raises(ipu.ConfigError, match=f"needs ids from 0 to 3; got {wrong}"):
        ipu.ops.remote_embedding_update(table, ids, jnp.zeros((2, 2)), 0.1)
