"""The memories of a device: arrays in tile memory and in streaming memory ("pinned_host")."""

from __future__ import annotations

import gc
import io
import re
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax.experimental.serialize_executable import deserialize_and_load, serialize
from jax.sharding import Mesh, NamedSharding, Sharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import ipujax
from ipujax.errors import PlacementError

X = np.arange(6, dtype=np.float32)
KINDS = ("device", "pinned_host")
SPACES = {"device": jax.memory.Space.Device, "pinned_host": jax.memory.Space.Host}
DTYPES = (np.bool_, np.int8, np.float16, np.float32, np.complex64, ml_dtypes.int4)


def memory(kind: str, index: int = 0) -> SingleDeviceSharding:
    return SingleDeviceSharding(jax.devices("ipu")[index], memory_kind=kind)


def over_four(kind: str, *axes: str | None) -> NamedSharding:
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("x",))
    return NamedSharding(mesh, P(*axes), memory_kind=kind)


HOST = "pinned_host"
on_host: Callable[[], Sharding] = lambda: memory(HOST)  # noqa: E731


def bytes_in(kind: str) -> int:
    gc.collect()
    return ipujax.memory_stats()[kind]["bytes_in_use"]


def test_each_device_has_both_memories():
    devices = jax.devices("ipu")
    for device in devices:
        assert [m.kind for m in device.addressable_memories()] == list(KINDS)
        assert device.default_memory().kind == "device"
        assert device.memory(HOST).addressable_by_devices() == [device]
    names = {repr(m) for device in devices for m in device.addressable_memories()}
    assert len(names) == 2 * len(devices)
    with pytest.raises(ValueError, match="unpinned_host"):
        memory("unpinned_host")


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_arrays_go_in_and_come_back(dtype: Any):
    for array in (np.zeros((), dtype), np.zeros((0, 3), dtype), np.ones((40, 70), dtype).T[::-2]):
        placed = jax.device_put(array, on_host())
        assert placed.sharding.memory_kind == HOST
        back = np.asarray(placed)
        assert (back.dtype, back.tobytes()) == (array.dtype, array.tobytes())


def test_copies_between_all_memories_are_independent():
    for source, target in product(product(KINDS, (0, 1)), repeat=2):
        array = jax.device_put(X, memory(*source))
        copy = jax.device_put(array, memory(*target), may_alias=False)
        array.delete()
        assert copy.sharding == memory(*target)
        np.testing.assert_array_equal(copy, X)


def test_a_copy_of_a_result_in_flight_waits_for_it():
    slow = jax.jit(
        lambda x: jax.pure_callback(lambda v: v + np.float32(1), jax.typeof(x), x, vmap_method=None)
    )
    np.testing.assert_array_equal(jax.device_put(slow(X), memory(HOST, 2)), X + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_spaces_name_the_memories(kind: str):
    for source in KINDS:
        placed = jax.device_put(jax.device_put(X, memory(source)), SPACES[kind])
        assert placed.sharding.memory_kind == kind
        np.testing.assert_array_equal(placed, X)


@pytest.mark.parametrize("arguments", list(product(KINDS, KINDS)), ids=str)
@pytest.mark.parametrize("result", KINDS)
def test_programs_take_and_give_arrays_of_both(arguments: tuple[str, str], result: str):
    def f(a: Any, b: Any) -> Any:
        device = jax.memory.Space.Device
        return jax.device_put(a, device) * 2 + jax.device_put(b, device), jnp.float32(7)

    where = tuple(map(memory, arguments))
    g = jax.jit(f, in_shardings=where, out_shardings=(memory(result), memory("device")))
    y, seven = g(*map(jax.device_put, (X, X + 1), where))
    assert (y.sharding.memory_kind, seven.sharding.memory_kind) == (result, "device")
    np.testing.assert_array_equal(y, X * 3 + 1)
    assert seven == 7


MOVES = {
    "result": lambda a: jax.device_put(a * 2, SPACES[HOST]),
    "between": lambda a: jax.device_put(jax.device_put(a, SPACES[HOST]), SPACES["device"]) * 2,
    "vmap": lambda a: jax.vmap(lambda r: jax.device_put(r * 2, SPACES[HOST]))(a),
    "scan": lambda a: jax.lax.scan(lambda c, r: (c, jax.device_put(r * 2, SPACES[HOST])), 0, a)[1],
}


@pytest.mark.parametrize("name", MOVES)
def test_values_move_inside_programs(name: str):
    """On one device and on several; the numbers are those of a program without moves."""
    for array in (X, jax.device_put(np.arange(8, dtype=np.float32), over_four("device", "x"))):
        y = jax.jit(MOVES[name])(array)
        assert y.sharding.memory_kind == ("device" if name == "between" else HOST)
        np.testing.assert_array_equal(y, np.asarray(array) * 2)


def test_results_of_a_failed_program_fail_in_both_memories():
    options = {"ipu_floating_point_exceptions": "div0"}
    y = jax.jit(lambda x: 1 / x, out_shardings=on_host(), compiler_options=options)(X)
    for use in (lambda: np.asarray(y), lambda: np.asarray(jax.device_put(y, memory("device")))):
        with pytest.raises(jax.errors.JaxRuntimeError, match="division by zero"):
            use()


def test_arguments_lie_where_they_were_compiled_for():
    compiled = jax.jit(lambda x: x + 1).lower(jax.device_put(X, memory("device"))).compile()
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="memory"):
        compiled(jax.device_put(X, on_host()))
    with pytest.raises(ValueError, match=r"[Mm]emory kind"):
        jax.jit(lambda x: x, in_shardings=on_host())(jax.device_put(X, memory("device")))


def test_saved_programs_keep_the_memories():
    f = jax.jit(lambda x, y: x + 1, in_shardings=(on_host(), on_host()), out_shardings=on_host())
    x = jax.device_put(X, on_host())
    loaded = deserialize_and_load(*serialize(f.lower(x, x).compile()), execution_devices=[x.device])
    y = loaded(x, x)
    assert y.sharding.memory_kind == HOST
    np.testing.assert_array_equal(y, X + 1)


def test_donated_arrays_are_updated_in_place():
    step = jax.jit(lambda x: x + 1, donate_argnums=0, out_shardings=on_host())
    x = step(jax.device_put(X, on_host()))
    place = x.unsafe_buffer_pointer()
    for _ in range(3):
        old, x = x, step(x)
        assert old.is_deleted()
        assert x.unsafe_buffer_pointer() == place
    np.testing.assert_array_equal(x, X + 4)


def test_donation_stays_inside_a_memory():
    for source, result in (KINDS, KINDS[::-1]):
        x = jax.device_put(X, memory(source))
        f = jax.jit(lambda x: x + 1, donate_argnums=0, out_shardings=memory(result))
        with pytest.warns(UserWarning, match="donated buffers were not usable"):
            y = f(x)
        assert y.sharding.memory_kind == result
        np.testing.assert_array_equal(y, X + 1)


@pytest.mark.parametrize("axes", [("x",), ()], ids=["sharded", "replicated"])
def test_arrays_are_sharded_over_devices(axes: tuple[str, ...]):
    x = np.arange(8, dtype=np.float32)
    placed = jax.device_put(x, over_four(HOST, *axes))
    assert {shard.data.sharding.memory_kind for shard in placed.addressable_shards} == {HOST}
    step = jax.jit(lambda x: x * 2, donate_argnums=0, out_shardings=over_four(HOST, *axes))
    y = step(placed)
    assert placed.is_deleted()
    assert y.sharding == over_four(HOST, *axes)
    np.testing.assert_array_equal(y, x * 2)
    np.testing.assert_array_equal(jax.device_put(y, over_four("device")), x * 2)
    np.testing.assert_array_equal(y, x * 2)


def test_pmap_takes_and_gives_arrays_of_the_host():
    """`jax.pmap` itself refuses them as arguments, on every platform."""
    x = np.arange(8, dtype=np.float32).reshape(4, 2)

    def centred(a: Any) -> Any:
        a = jax.device_put(a, jax.memory.Space.Device)
        return jax.device_put(a - ipujax.cross_replica_mean(a), jax.memory.Space.Host)

    f = ipujax.pmap(centred, devices=jax.devices("ipu")[:4])
    y = f(jax.device_put(x, over_four(HOST, "x")))
    assert y.sharding.memory_kind == HOST
    np.testing.assert_allclose(y, x - x.mean(0))


def test_each_memory_counts_its_arrays():
    before = {kind: bytes_in(kind) for kind in KINDS}
    x = jax.device_put(np.zeros(1000, np.float32), on_host())
    y = jax.jit(lambda x: x + 1, out_shardings=on_host())(x)
    assert bytes_in(HOST) == before[HOST] + 8000
    assert bytes_in("device") == before["device"]
    assert {a.unsafe_buffer_pointer() for a in jax.live_arrays("ipu")} >= {
        a.unsafe_buffer_pointer() for a in (x, y)
    }
    compiled = jax.jit(lambda x: x + 1, out_shardings=on_host()).lower(x).compile()
    analysis = compiled.memory_analysis()
    assert (analysis.argument_size_in_bytes, analysis.output_size_in_bytes) == (0, 0)
    assert analysis.host_argument_size_in_bytes == analysis.host_output_size_in_bytes == 4000
    x.delete()
    del y
    assert bytes_in(HOST) == before[HOST]
    stats = ipujax.memory_stats(jax.devices("ipu")[1])
    assert stats["device"]["bytes_limit"] == jax.devices("ipu")[1].memory_stats()["bytes_limit"]
    assert stats[HOST]["bytes_limit"] == 16_000_000_000  # a fourth of an IPU-M2000's
    with pytest.raises(PlacementError, match="needs an IPU device"):
        ipujax.memory_stats(jax.devices("cpu")[0])


def test_a_thousand_calls_leave_nothing_behind():
    step = jax.jit(lambda x: x + 1, out_shardings=on_host())
    x = jax.device_put(X, on_host())
    before = {kind: bytes_in(kind) for kind in KINDS}
    for _ in range(1000):
        x = step(x)
        jax.device_put(jax.device_put(x, memory("device", 0)), memory(HOST, 0))
    np.testing.assert_array_equal(x, X + 1000)
    assert {kind: bytes_in(kind) for kind in KINDS} == before


FULL = """
import jax, numpy as np, ipujax
device = jax.devices()[0]
host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
limit = ipujax.memory_stats()["pinned_host"]["bytes_limit"]
state = jax.device_put(np.zeros(limit // 8 * 3 // 4, np.float32), host)  # three eighths
small = jax.device_put(np.zeros(4, np.float32), host)
donate = jax.jit(lambda small, state: (small + 1, state + 1, state + 2), donate_argnums=0,
                 out_shardings=host)
big = np.broadcast_to(np.float32(0), limit // 4)
for f in (lambda: jax.device_put(big, host), lambda: donate(small, state),
          lambda: jax.device_put(jax.device_put(big, device), host)):
    try:
        f()
    except jax.errors.JaxRuntimeError as error:
        print(error)
print(limit, state.nbytes, small.is_deleted(), float(small[0]))
state.delete()
print(jax.device_put(small, host)[0])
lowered = jax.jit(lambda x: x + 1, in_shardings=host, out_shardings=host).lower(big)
try:
    lowered.compile({"ipu_out_of_memory": "error"})
except jax.errors.JaxRuntimeError as error:
    print(error)
"""


def test_more_than_the_memory_holds_is_refused(run_python):
    """A quarter of one GB a device: small enough to allocate. Programs have the same limit."""
    done = run_python("-c", FULL, env={"IPUJAX_STREAMING_GIGABYTES": "1"})
    assert done.returncode == 0, done.stderr
    *errors, facts, last, refused = done.stdout.splitlines()
    limit, used = 250_000_000, 93_750_000
    needs = [limit, 2 * used, limit]
    for error, need in zip(errors, needs, strict=True):
        assert re.search(
            rf"RESOURCE_EXHAUSTED.* needs {need} bytes of pinned_host memory of IpuDevice\(id=0\); "
            rf"got {limit - used - 16} bytes free of {limit}\. ",
            error,
        ), error
    assert facts == f"{limit} {used} False 0.0"
    assert last == "0.0"
    assert f"needs {2 * limit} bytes of streaming memory; a device has {limit}." in refused


def test_checkpoints_hold_arrays_of_the_host(tmp_path: Any):
    import orbax.checkpoint as ocp

    file = io.BytesIO()
    x = jax.device_put(np.arange(8, dtype=np.float32), over_four(HOST, "x"))
    np.save(file, x)
    file.seek(0)
    np.testing.assert_array_equal(np.load(file), x)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "state", {"x": x})
        checkpointer.wait_until_finished()
        like = {"x": jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding)}
        restored = checkpointer.restore(tmp_path / "state", like)["x"]
    assert restored.sharding == x.sharding
    np.testing.assert_array_equal(restored, x)
