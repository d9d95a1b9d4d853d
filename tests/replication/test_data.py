"""Arrays that lie over several devices: made, moved, donated, saved."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
SHAPE = (8, 12)


def grid(devices: list[jax.Device]) -> Mesh:
    return Mesh(np.array(devices).reshape(2, 2), ("x", "y"))


def whole(shape: tuple[int, ...] = SHAPE, dtype: str = "float32") -> np.ndarray:
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


def check(array: jax.Array, want: np.ndarray, sharding: NamedSharding) -> None:
    """The whole, and each device's piece, are what they should be."""
    assert array.sharding.is_equivalent_to(sharding, array.ndim)
    np.testing.assert_array_equal(np.asarray(array), want)
    places = sharding.devices_indices_map(want.shape)
    assert len(array.addressable_shards) == len(places)
    for shard in array.addressable_shards:
        assert shard.data.devices() == {shard.device}
        np.testing.assert_array_equal(np.asarray(shard.data), want[places[shard.device]])


SPECS = [P("x"), P(None, "y"), P("x", "y"), P("y", "x"), P(("x", "y")), P(None, ("y", "x")), P()]


@pytest.mark.parametrize("spec", SPECS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "bool", "complex64"])
def test_device_put(replicas, spec, dtype):
    sharding = NamedSharding(grid(replicas(4)), spec)
    check(jax.device_put(whole(dtype=dtype), sharding), whole(dtype=dtype), sharding)


@pytest.mark.parametrize("target", SPECS, ids=str)
@pytest.mark.parametrize("source", SPECS[:5], ids=str)
def test_from_one_sharding_to_another(replicas, source, target):
    mesh = grid(replicas(4))
    array = jax.device_put(whole(), NamedSharding(mesh, source))
    check(jax.device_put(array, NamedSharding(mesh, target)), whole(), NamedSharding(mesh, target))


def test_from_device_to_device(replicas):
    array = jax.device_put(whole(), replicas(1)[0])
    for device in replicas(4):
        array = jax.device_put(array, device)
        assert array.devices() == {device}
        np.testing.assert_array_equal(array, whole())


def test_to_another_set_of_devices_and_back(replicas):
    devices = replicas(4)
    four = NamedSharding(Mesh(np.array(devices), ("x",)), P("x"))
    two = NamedSharding(Mesh(np.array(devices[:1:-1]), ("x",)), P(None, "x"))
    array = jax.device_put(jax.device_put(whole(), four), two)
    check(array, whole(), two)
    check(jax.device_put(array, four), whole(), four)


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_make_array_from_callback(replicas, spec):
    sharding = NamedSharding(grid(replicas(4)), spec)
    asked = []

    def piece(index):
        asked.append(index)
        return whole()[index]

    check(jax.make_array_from_callback(SHAPE, sharding, piece), whole(), sharding)
    assert asked


def test_make_array_from_single_device_arrays(replicas):
    devices = replicas(4)
    sharding = NamedSharding(Mesh(np.array(devices), ("x",)), P("x"))
    pieces = [jax.device_put(whole()[i * 2 : i * 2 + 2], d) for i, d in enumerate(devices)]
    array = jax.make_array_from_single_device_arrays(SHAPE, sharding, pieces)
    check(array, whole(), sharding)


def test_jit_results_lie_as_asked(replicas):
    mesh = grid(replicas(4))
    sharding = NamedSharding(mesh, P("y", "x"))
    array = jax.device_put(whole(), NamedSharding(mesh, P("x", "y")))
    check(jax.jit(lambda x: x * 2, out_shardings=sharding)(array), whole() * 2, sharding)


def test_sharded_state_is_donated(replicas):
    sharding = NamedSharding(grid(replicas(4)), P("x", "y"))
    step = jax.jit(lambda s, x: jax.tree.map(lambda a: a + x, s), donate_argnums=0)
    state = {k: jax.device_put(whole(), sharding) for k in "ab"}
    for _ in range(3):
        before, state = state, step(state, jnp.float32(1))
        assert all(leaf.is_deleted() for leaf in before.values())
    check(state["b"], whole() + 3, sharding)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(before["a"])


def test_checkpoint_of_sharded_state(replicas, tmp_path):
    """Saved from one sharding, restored to another, and to fewer devices."""
    checkpoint = pytest.importorskip("orbax.checkpoint")
    mesh = grid(replicas(4))
    state = {
        "w": jax.device_put(whole(), NamedSharding(mesh, P("x", "y"))),
        "m": jax.device_put(whole(dtype="float16"), NamedSharding(mesh, P(("x", "y")))),
        "step": jax.device_put(np.int32(7), NamedSharding(mesh, P())),
    }
    two = Mesh(np.array(replicas(2)), ("x",))
    with checkpoint.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", state)
        checkpointer.wait_until_finished()
        for wanted in ({k: v.sharding for k, v in state.items()}, _on(two)):
            target = {
                k: jax.ShapeDtypeStruct(v.shape, v.dtype, sharding=wanted[k])
                for k, v in state.items()
            }
            restored = checkpointer.restore(tmp_path / "state", target)
            for name, array in restored.items():
                check(array, np.asarray(state[name]), wanted[name])


def _on(mesh: Mesh) -> dict[str, NamedSharding]:
    return {
        "w": NamedSharding(mesh, P(None, "x")),
        "m": NamedSharding(mesh, P()),
        "step": NamedSharding(mesh, P()),
    }


@pytest.mark.parametrize("shape", [(7, 12), (8, 5)])
def test_dimensions_that_do_not_divide_are_refused(replicas, shape):
    mesh = grid(replicas(4))
    with pytest.raises(ValueError, match="evenly divide the shape"):
        jax.device_put(whole(shape), NamedSharding(mesh, P("x", "y")))
    jax.device_put(whole(), NamedSharding(mesh, P("x", "y")))


def test_more_devices_than_exist(replicas):
    with pytest.raises(ValueError, match=r"\d+ devices|Number of devices"):
        jax.make_mesh((1024,), ("x",), devices=replicas(4))


def test_pieces_of_wrong_shapes_are_refused(replicas):
    devices = replicas(4)
    sharding = NamedSharding(Mesh(np.array(devices), ("x",)), P("x"))
    sizes = (2, 2, 2, 3)
    pieces = [jax.device_put(whole((n, 12)), d) for n, d in zip(sizes, devices, strict=True)]
    with pytest.raises(ValueError, match="shape"):
        jax.make_array_from_single_device_arrays(SHAPE, sharding, pieces)
    with pytest.raises(ValueError, match="shape"):
        jax.make_array_from_callback(SHAPE, sharding, lambda index: whole()[:3])
    check(jax.device_put(whole(), sharding), whole(), sharding)


@pytest.mark.parametrize("spec", [P("x", "y"), P(None, "x"), P()], ids=str)
def test_between_platforms(spec):
    on_ipu, on_cpu = (
        NamedSharding(grid(jax.devices(platform)[:4]), spec) for platform in ("ipu", "cpu")
    )
    array = jax.device_put(jax.device_put(whole(), on_cpu), on_ipu)
    check(array, whole(), on_ipu)
    check(jax.device_put(array * 2, on_cpu), whole() * 2, on_cpu)


def test_copies_outlive_what_was_deleted(replicas):
    sharding = NamedSharding(grid(replicas(4)), P("x", "y"))
    array = jax.device_put(whole(), sharding)
    copy = array.copy()
    array.copy_to_host_async()
    array.delete()
    check(copy, whole(), sharding)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(array)


def test_arrays_of_two_device_sets_do_not_mix(replicas):
    first, second = (
        NamedSharding(Mesh(np.array(devices), ("x",)), P("x"))
        for devices in (replicas(4)[:2], replicas(4)[2:])
    )
    a, b = (jax.device_put(whole(), sharding) for sharding in (first, second))
    with pytest.raises(ValueError, match="incompatible devices"):
        jax.jit(jnp.add)(a, b)
    check(jax.jit(jnp.add)(a, jax.device_put(b, first)), whole() * 2, first)
