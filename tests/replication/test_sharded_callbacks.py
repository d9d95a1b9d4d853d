"""Python that programs over several devices call: once for what all have, else on each device."""

from __future__ import annotations

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
