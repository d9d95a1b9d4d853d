"""Callbacks of programs over several devices: once for replicated values, else on each device."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X = np.arange(16, dtype=np.float32).reshape(8, 2)


@pytest.fixture
def mesh() -> Mesh:
    return Mesh(np.array(jax.devices("ipu")[:4]), ("a",))


def rows(mesh: Mesh) -> NamedSharding:
    return NamedSharding(mesh, P("a"))


def test_a_pure_callback_sees_the_whole_array_once(mesh: Mesh):
    seen: list[Any] = []

    def double(x: Any) -> Any:
        seen.append(x.shape)
        return np.asarray(x) * 2

    def f(x: Any) -> Any:
        return jax.pure_callback(double, jax.ShapeDtypeStruct((8, 2), jnp.float32), x + 1) + 1

    np.testing.assert_allclose(jax.jit(f, in_shardings=rows(mesh))(X), (X + 1) * 2 + 1)
    assert seen == [(8, 2)]


def test_an_io_callback_runs_once_and_its_result_is_everywhere(mesh: Mesh):
    seen: list[float] = []

    def total(x: Any) -> Any:
        seen.append(float(x.sum()))
        return np.float32(x.sum())

    def f(x: Any) -> Any:
        return x * io_callback(total, jax.ShapeDtypeStruct((), jnp.float32), x)

    np.testing.assert_allclose(jax.jit(f, in_shardings=rows(mesh))(X), X * 120)
    assert seen == [120.0]


def test_debug_callbacks_in_a_loop_run_once_a_turn(mesh: Mesh):
    seen: list[float] = []

    def f(x: Any) -> Any:
        def turn(c: Any, _: Any) -> Any:
            jax.debug.callback(lambda s: seen.append(float(s)), c.sum())
            return c + 1, None

        return lax.scan(turn, x, None, length=3)[0]

    jax.jit(f, in_shardings=rows(mesh))(X).block_until_ready()
    jax.effects_barrier()
    assert seen == [120.0, 136.0, 152.0]


@pytest.mark.parametrize("explicit", [False, True])
def test_partitioned_callbacks_run_on_each_device_with_its_block(explicit: bool):
    kind = jax.sharding.AxisType.Explicit if explicit else jax.sharding.AxisType.Auto
    grid = jax.make_mesh((2, 2), ("a", "b"), (kind,) * 2, devices=jax.devices("ipu")[:4])
    seen: list[tuple[list[float], float]] = []

    def see(x: Any, total: Any) -> None:
        seen.append((np.asarray(x)[:, 0].tolist(), float(total)))

    def f(x: Any) -> None:
        jax.debug.callback(see, x + 1, x.sum(), partitioned=True)

    x = jax.device_put(X, NamedSharding(grid, P("a")))
    jax.block_until_ready(jax.jit(f)(x))
    jax.effects_barrier()
    halves = [([1.0, 3, 5, 7], 120.0), ([9.0, 11, 13, 15], 120.0)]
    assert sorted(seen) == [halves[0]] * 2 + [halves[1]] * 2


def test_partitioned_prints_show_each_block(mesh: Mesh, capfd: pytest.CaptureFixture[str]):
    x = jax.device_put(np.arange(8, dtype=np.float32), rows(mesh))
    jax.jit(lambda x: jax.debug.print("block {}", x, partitioned=True))(x)
    jax.effects_barrier()
    lines = sorted(capfd.readouterr().out.splitlines())
    assert lines == [f"block [{2 * d}. {2 * d + 1}.]" for d in range(4)]


def test_partitioned_callbacks_see_no_padding(mesh: Mesh):
    seen: list[Any] = []

    def f(x: Any) -> None:
        x = lax.with_sharding_constraint(x, rows(mesh))
        jax.debug.callback(lambda x: seen.append(np.asarray(x).tolist()), x, partitioned=True)

    jax.block_until_ready(jax.jit(f)(np.arange(3, dtype=np.float32)))
    jax.effects_barrier()
    assert seen == [[0.0, 1.0, 2.0]] * 4


def test_in_shard_map_each_device_calls_with_its_block(mesh: Mesh):
    seen: list[Any] = []

    def triple(x: Any) -> Any:
        seen.append(x.shape)
        return np.asarray(x) * 3

    def f(x: Any) -> Any:
        return jax.pure_callback(triple, jax.ShapeDtypeStruct((2, 2), jnp.float32), x)

    mapped = jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("a"), out_specs=P("a")))
    np.testing.assert_allclose(mapped(X), X * 3)
    assert seen == [(2, 2)] * 4


def on_each(count: int, host: Callable[..., Any], call: Any = jax.pure_callback) -> Any:
    """A jitted function that calls the host on each of `count` IPUs, with two numbers."""
    devices = Mesh(np.array(jax.devices("ipu")[:count]), ("a",))

    def f(x: Any) -> Any:
        return call(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    return jax.jit(jax.shard_map(f, mesh=devices, in_specs=P("a"), out_specs=P("a")))


@pytest.mark.parametrize("call", [jax.pure_callback, io_callback])
def test_callbacks_of_all_devices_meet(call: Any):
    barrier = threading.Barrier(8, timeout=60)

    def host(x: Any) -> Any:
        barrier.wait()
        return np.asarray(x) + 1

    x = np.arange(16, dtype=np.float32)
    np.testing.assert_array_equal(on_each(8, host, call)(x), x + 1)


def test_callbacks_meet_in_every_turn_of_a_loop_with_a_collective(mesh: Mesh):
    barrier = threading.Barrier(4, timeout=60)

    def host(x: Any) -> Any:
        barrier.wait()
        return np.asarray(x) + 1

    def turn(x: Any, _: Any) -> Any:
        x = jax.pure_callback(host, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return x, lax.psum(x.sum(), "a")

    f = jax.shard_map(
        lambda x: lax.scan(turn, x, None, length=3),
        mesh=mesh,
        in_specs=P("a"),
        out_specs=(P("a"), P()),
        check_vma=False,
    )
    last, sums = jax.jit(f)(X)
    np.testing.assert_array_equal(last, X + 3)
    np.testing.assert_array_equal(sums, [X.sum() + 16, X.sum() + 32, X.sum() + 48])


def test_jax_runs_inside_callbacks_that_wait_for_each_other():
    barrier = threading.Barrier(4, timeout=60)
    cos = jax.jit(jnp.cos)

    def host(x: Any) -> Any:
        barrier.wait()
        cosines = np.asarray(cos(jax.device_put(np.asarray(x), jax.devices("ipu")[1])))
        barrier.wait()
        return cosines

    x = np.arange(8, dtype=np.float32)
    np.testing.assert_allclose(on_each(4, host)(x), np.cos(x), rtol=1e-5)


def test_one_callback_that_raises_is_reported_and_ends_the_others():
    barrier = threading.Barrier(4, timeout=60)
    later: list[Any] = []

    def host(x: Any) -> Any:
        barrier.wait()
        if x[0] == 2:
            raise ValueError("the second device has had enough")
        return np.asarray(x)

    def second(x: Any) -> Any:
        later.append(x)
        return np.asarray(x)

    devices = Mesh(np.array(jax.devices("ipu")[:4]), ("a",))

    def f(x: Any) -> Any:
        kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
        once = jax.pure_callback(host, kind, x)
        return jax.pure_callback(second, kind, lax.psum(once, "a") + once)

    x = np.arange(8, dtype=np.float32)
    mapped = jax.jit(jax.shard_map(f, mesh=devices, in_specs=P("a"), out_specs=P("a")))
    with pytest.raises(jax.errors.JaxRuntimeError, match="ValueError: the second device"):
        mapped(x).block_until_ready()
    assert later == []
    barrier.reset()
    np.testing.assert_array_equal(on_each(4, lambda x: np.asarray(x) * 2)(x), x * 2)


def test_an_error_is_reported_while_others_wait_for_who_raised():
    barrier = threading.Barrier(4, timeout=120)

    def host(x: Any) -> Any:
        if x[0] == 4:
            while barrier.n_waiting < 3:
                time.sleep(0.01)
            raise ValueError("the third device does not come")
        barrier.wait()
        return np.asarray(x)

    x = np.arange(8, dtype=np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match="the third device does not come"):
        on_each(4, host)(x).block_until_ready()
    assert barrier.n_waiting == 3
    barrier.abort()
    np.testing.assert_array_equal(on_each(4, lambda x: np.asarray(x) * 2)(x), x * 2)


def test_a_thousand_calls_start_no_threads():
    """But for one of each device, if a callback ever takes long: it runs what overtakes."""
    f = on_each(8, lambda x: np.asarray(x) + 1)
    x = np.arange(16, dtype=np.float32)
    np.asarray(f(x))
    before = len(os.listdir("/proc/self/task"))
    for _ in range(1000):
        result = f(x)
    np.testing.assert_array_equal(result, x + 1)
    assert len(os.listdir("/proc/self/task")) <= before + 8


def test_pmap_is_a_program_over_several_devices():
    f = jax.pmap(lambda a: lax.psum(a * 2, "i"), axis_name="i", devices=jax.devices("ipu")[:4])
    x = X.reshape(4, 2, 2)
    np.testing.assert_allclose(f(x), np.broadcast_to(2 * x.sum(0), (4, 2, 2)))


def test_random_keys_are_split_over_devices(mesh: Mesh):
    key = jax.random.key(3)
    split = jax.jit(lambda k: jax.random.split(k, 8), out_shardings=rows(mesh))(key)
    assert split.sharding.spec == P("a")
    with jax.default_device(jax.devices("cpu")[0]):
        wanted = jax.random.key_data(jax.random.split(jax.random.key(3), 8))
    np.testing.assert_array_equal(np.asarray(jax.random.key_data(split)), np.asarray(wanted))
