"""Running programs over several devices: order, donation, failures, threads, callbacks."""

from __future__ import annotations

import threading
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback, serialize_executable
from jax.sharding import Mesh, NamedSharding, PartitionSpec

SPLIT = PartitionSpec("x")


def sharded(value, devices) -> jax.Array:
    return jax.device_put(value, NamedSharding(Mesh(np.array(devices), ("x",)), SPLIT))


def mapped(f, devices, out=SPLIT):
    mesh = Mesh(np.array(devices), ("x",))
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=SPLIT, out_specs=out, check_vma=False))


def slow_sum(x):
    """Waits in a callback on every device, then sums over them."""

    def wait(value):
        time.sleep(0.03)
        return value

    return lax.psum(jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x), "x")


@pytest.fixture
def devices() -> list[jax.Device]:
    return jax.devices("ipu")[:4]


@pytest.fixture
def x(devices) -> jax.Array:
    return sharded(np.arange(8, dtype=np.float32), devices)


def test_a_short_program_runs_in_the_caller(x, stats):
    add_one = jax.jit(lambda x: x + 1)
    add_one(x).block_until_ready()
    before = [stats("inline_runs", d) for d in range(4)]
    for _ in range(50):
        add_one(x)
    assert all(stats("inline_runs", d) >= before[d] + 10 for d in range(4))


def test_a_long_program_does_not_hold_the_caller(devices, x):
    f = mapped(slow_sum, devices)
    for _ in range(2):  # then it is known to take long
        f(x).block_until_ready()
    start = time.perf_counter()
    result = f(x)
    assert time.perf_counter() - start < 0.1
    assert not result.is_ready()
    np.testing.assert_array_equal(result, [12, 16] * 4)


def test_results_come_in_the_order_of_calls(devices, x):
    slow, fast = mapped(slow_sum, devices), mapped(lambda v: lax.ppermute(v, "x", RING), devices)
    value = slow(x) + x
    for _ in range(12):
        value = fast(value)
    np.testing.assert_array_equal(value, np.arange(8) + np.array([12, 16] * 4))


RING = [(i, (i + 1) % 4) for i in range(4)]


@partial(jax.jit, donate_argnums=0)
def add_in_place(x, y):
    return x + y


def test_donated_shards_are_written_in_place(x, stats):
    source = x * 2
    pointers = [s.data.unsafe_buffer_pointer() for s in source.addressable_shards]
    before = [stats("donated_in_place", d) for d in range(4)]
    result = add_in_place(source, 1.0)
    assert source.is_deleted()
    assert [s.data.unsafe_buffer_pointer() for s in result.addressable_shards] == pointers
    assert [stats("donated_in_place", d) for d in range(4)] == [n + 1 for n in before]
    np.testing.assert_array_equal(result, np.arange(8) * 2 + 1)


def test_a_donated_array_given_twice_is_refused(x):
    source = x * 2
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs donated arrays once"):
        add_in_place(source, source)
    np.testing.assert_array_equal(add_in_place(source, source.copy()), np.arange(8) * 4)


@pytest.mark.filterwarnings("ignore")
def test_a_failure_of_one_replica_is_the_failure_of_all_and_no_further(devices, x):
    def fail_on_two(value):
        if value[0] == 4:
            time.sleep(0.3)  # a failure that comes sooner is an error of the call
            raise ValueError("no such luck")
        return value

    def f(v):
        out = jax.pure_callback(fail_on_two, jax.ShapeDtypeStruct(v.shape, v.dtype), v)
        return lax.psum(out, "x"), out

    total, own = mapped(f, devices)(x)
    for result in (total, own):
        for shard in result.addressable_shards:
            with pytest.raises(jax.errors.JaxRuntimeError, match="no such luck"):
                np.asarray(shard.data)
    np.testing.assert_array_equal(mapped(lambda v: lax.psum(v, "x"), devices)(x), [12, 16] * 4)


def test_a_condition_that_differs_around_a_collective_is_an_error(devices, x):
    def f(v):
        return lax.cond(v[0] > 3, lambda: lax.psum(v, "x"), lambda: v)

    with pytest.raises(jax.errors.JaxRuntimeError, match="same way around a collective"):
        np.asarray(mapped(f, devices)(x))
    np.testing.assert_array_equal(mapped(f, devices)(x + 4), [28, 32] * 4)


def test_loops_that_differ_where_nobody_meets(devices, x):
    def f(v):
        count = lax.while_loop(lambda c: c < v[0], lambda c: c + 1, jnp.float32(0))
        return lax.psum(count, "x")

    np.testing.assert_array_equal(mapped(f, devices, PartitionSpec())(x), 12)


def test_two_threads_with_programs_over_the_same_devices(devices, x):
    """Each on its own order of devices, single devices in between: nothing waits for ever."""
    orders = [devices, devices[::-1], devices[1:3]]
    wrong: list[str] = []

    def work(order):
        own = sharded(np.arange(2 * len(order), dtype=np.float32), order)
        fast, slow = mapped(lambda v: lax.psum(v, "x"), order), mapped(slow_sum, order)
        expected = np.asarray(own).reshape(-1, 2).sum(0)
        for i in range(30):
            result = np.asarray((slow if i % 10 == 0 else fast)(own)).reshape(-1, 2)
            if not (result == expected).all():
                wrong.append(f"{result} instead of {expected}")
            np.asarray(jax.device_put(own, devices[i % 4]) + 1)

    threads = [threading.Thread(target=work, args=(order,)) for order in orders * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not any(thread.is_alive() for thread in threads)
    assert not wrong


def test_a_program_over_all_devices_inside_a_callback(devices, x, stats):
    inner = mapped(lambda v: lax.psum(v, "x"), devices)

    def host(value):
        return np.asarray(inner(sharded(value, devices)))

    f = jax.jit(lambda v: jax.pure_callback(host, jax.ShapeDtypeStruct((8,), v.dtype), v))
    before = stats("nested_runs", 3)
    one = jax.device_put(np.arange(8, dtype=np.float32), devices[0])
    np.testing.assert_array_equal(f(one), [12, 16] * 4)
    assert stats("nested_runs", 3) == before + 1


def test_a_callback_may_wait_for_a_program_over_all_devices(devices, x):
    event = threading.Event()
    inner = mapped(lambda v: lax.psum(v, "x"), devices)

    def wait(value):
        assert event.wait(20), "nobody set the event"
        return value

    f = jax.jit(lambda v: jax.pure_callback(wait, jax.ShapeDtypeStruct((8,), v.dtype), v))
    one = jax.device_put(np.arange(8, dtype=np.float32), devices[0])
    first = f(one)
    np.testing.assert_array_equal(inner(x), [12, 16] * 4)
    event.set()
    np.testing.assert_array_equal(first, np.arange(8))


def test_ordered_callbacks_of_a_sharded_program(x):
    seen = []

    @jax.jit
    def f(v):
        io_callback(lambda total: seen.append(float(total)), None, v.sum(), ordered=False)
        return v + 1

    for i in range(3):
        jax.block_until_ready(f(x + i))
    jax.effects_barrier()
    assert sorted(seen) == [28.0, 36.0, 44.0]


def test_memory_does_not_grow_over_calls(devices, x):
    from pathlib import Path

    f = mapped(lambda v: lax.psum(v, "x") + v, devices)

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    for _ in range(300):
        f(x)
    jax.block_until_ready(f(x))
    before = resident()
    for _ in range(2000):
        f(x)
    jax.block_until_ready(f(x))
    assert resident() - before < 1 << 20


def test_a_saved_program_runs_on_its_devices_again(devices, x):
    compiled = jax.jit(lambda v: v * 2 + v.sum()).lower(x).compile()
    saved = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(*saved, execution_devices=devices)
    result = loaded(x)
    assert result.sharding == compiled(x).sharding
    np.testing.assert_array_equal(result, np.arange(8) * 2 + 28)


def test_the_persistent_cache_holds_programs_over_several_devices(run_python, tmp_path):
    script = tmp_path / "cached.py"
    script.write_text(
        """
import jax, numpy as np, sys
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append("cache_hits" in name))
mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("x",))
x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
print(float(jax.jit(lambda v: (v * v).sum())(x)), sum(hits))
"""
    )
    first, second = (run_python(script, tmp_path / "cache") for _ in range(2))
    assert first.stdout == "140.0 0\n", first.stderr
    assert second.stdout.split()[0] == "140.0", second.stderr
    assert int(second.stdout.split()[1]) > 0


def test_more_devices_than_there_are():
    with pytest.raises(ValueError, match="devices"):
        jax.make_mesh((1024,), ("x",), devices=jax.devices("ipu"))


def test_exit_with_a_program_on_its_way(run_python, tmp_path):
    script = tmp_path / "leave.py"
    script.write_text(
        """
import jax, numpy as np, time
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("x",))
x = jax.device_put(np.arange(8, dtype=np.float32), NamedSharding(mesh, P("x")))
def forever(v):
    step = lambda s: jax.lax.psum(s, "x") * 0.25
    return jax.lax.while_loop(lambda s: s[0] > -1, step, v)
f = jax.jit(jax.shard_map(forever, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
result = f(x)
time.sleep(0.2)
print("leaving", result.is_ready())
"""
    )
    run = run_python(script, timeout=60)
    assert run.stdout == "leaving False\n", run.stderr
    assert run.returncode == 0, run.stderr
