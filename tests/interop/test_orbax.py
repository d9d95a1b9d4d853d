"""Orbax with every kind of sharding and memory; into the same, and into others."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from tests.interop.packages import needed

ocp = needed("orbax.checkpoint")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

X = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
DTYPES = ["bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64"]
MEMORIES = ["device", "pinned_host"]
PLACES = {
    "one": lambda kind: SingleDeviceSharding(jax.devices("ipu")[3], memory_kind=kind),
    "replicated": lambda kind: _named(P(), kind),
    "rows": lambda kind: _named(P("a"), kind),
    "columns": lambda kind: _named(P(None, "b"), kind),
    "both": lambda kind: _named(P("a", "b"), kind),
    "rows over both": lambda kind: _named(P(("a", "b")), kind),
}


def _named(spec: P, kind: str) -> NamedSharding:
    mesh = Mesh(np.array(jax.devices("ipu")[:8]).reshape(4, 2), ("a", "b"))
    return NamedSharding(mesh, spec, memory_kind=kind)


def _restored(path: Path, state, like):
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(path, state)
        checkpointer.wait_until_finished()
        return checkpointer.restore(path, like)


def _like(x: jax.Array, sharding: jax.sharding.Sharding) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.parametrize("place", PLACES)
def test_arrays_come_back_where_they_were(place: str, kind: str, tmp_path: Path):
    sharding = PLACES[place](kind)
    state = {dtype: jax.device_put(X.astype(jnp.dtype(dtype)), sharding) for dtype in DTYPES}
    found = _restored(tmp_path / "s", state, jax.tree.map(lambda x: _like(x, x.sharding), state))
    for dtype, x in state.items():
        assert found[dtype].sharding == x.sharding
        assert found[dtype].sharding.memory_kind == kind
        np.testing.assert_array_equal(found[dtype], X.astype(jnp.dtype(dtype)))


@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.parametrize(("place", "other"), [("one", "both"), ("both", "rows"), ("rows", "one")])
def test_arrays_come_back_elsewhere(place: str, other: str, kind: str, tmp_path: Path):
    """Shards are cut anew, and go into the other memory."""
    wanted = PLACES[other]("device" if kind == "pinned_host" else "pinned_host")
    state = [jax.device_put(X, PLACES[place](kind))]
    (found,) = _restored(tmp_path / "s", state, [_like(state[0], wanted)])
    assert found.sharding == wanted
    np.testing.assert_array_equal(found, X)
    for shard in found.addressable_shards:
        np.testing.assert_array_equal(shard.data, X[shard.index])


def test_a_state_on_ipus_can_be_restored_on_the_cpu(tmp_path: Path):
    state = [jax.device_put(X, PLACES["both"]("device"))]
    cpu = SingleDeviceSharding(jax.devices("cpu")[0])
    (found,) = _restored(tmp_path / "s", state, [_like(state[0], cpu)])
    assert found.sharding == cpu
    np.testing.assert_array_equal(found, X)
