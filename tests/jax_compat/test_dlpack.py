"""Exchange of arrays on IPUs with other libraries by DLPack."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X = np.arange(12, dtype=np.float32).reshape(3, 4)
DTYPES = ["bool", "int8", "int16", "int32", "uint8", "uint32", "float16", "float32", "complex64"]


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_takes_an_array_without_a_copy(device: jax.Device, dtype: str):
    x = jax.jit(lambda a: a)(jax.device_put(X.astype(dtype), device))
    seen = np.from_dlpack(x)
    assert (seen.dtype, seen.shape, seen.flags.writeable) == (np.dtype(dtype), X.shape, False)
    np.testing.assert_array_equal(seen, X.astype(dtype))
    assert address(seen) == address(np.asarray(x)) == x.unsafe_buffer_pointer()


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (2, 3, 5)])
def test_shapes(device: jax.Device, shape: tuple[int, ...]):
    x = jax.device_put(np.ones(shape, np.float32), device)
    assert np.from_dlpack(x).shape == shape


@pytest.mark.parametrize("copy", [None, False])
def test_the_consumer_may_ask_for_the_host(device: jax.Device, copy: bool | None):
    x = jax.device_put(X, device) + 1
    seen = np.from_dlpack(x, device="cpu", copy=copy)
    assert address(seen) == x.unsafe_buffer_pointer()


def test_a_copy_is_one(device: jax.Device):
    x = jax.device_put(X, device) + 1
    copied = np.from_dlpack(x, copy=True)
    np.testing.assert_array_equal(copied, X + 1)
    assert address(copied) != address(np.asarray(x))


def test_the_view_keeps_the_memory(device: jax.Device, stats: Callable[..., int]):
    gc.collect()
    before = stats("bytes_in_use")
    x = jax.device_put(np.ones(1 << 20, np.float32), device) * 2
    seen = np.from_dlpack(x)
    x.delete()
    del x
    gc.collect()
    assert stats("bytes_in_use") >= before + seen.nbytes
    np.testing.assert_array_equal(seen, 2)
    del seen
    gc.collect()
    assert stats("bytes_in_use") <= before


def test_a_donated_array_leaves_the_view_as_it_is(device: jax.Device):
    x = jax.device_put(X, device) + 0
    seen = np.from_dlpack(x)
    jax.jit(lambda a: a * 5, donate_argnums=0)(x).block_until_ready()
    np.testing.assert_array_equal(seen, X)


def test_results_that_are_not_ready_are_waited_for(device: jax.Device):
    x = jax.jit(lambda a: jax.lax.fori_loop(0, 200, lambda _, b: jnp.sin(b @ b), a))(
        jax.device_put(np.eye(200, dtype=np.float32), device)
    )
    np.testing.assert_array_equal(np.from_dlpack(x), np.asarray(x))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "int8"])
def test_jax_takes_an_array_onto_its_cpu_backend(device: jax.Device, dtype: str):
    x = jax.device_put(X.astype(dtype), device) + 1
    taken = jax.dlpack.from_dlpack(x)
    assert taken.platform() == "cpu"
    assert taken.unsafe_buffer_pointer() == x.unsafe_buffer_pointer()
    np.testing.assert_array_equal(np.asarray(taken), np.asarray(x))


@pytest.mark.parametrize("take", [jax.dlpack.from_dlpack, jnp.from_dlpack])
def test_numpy_arrays_come_onto_an_ipu(device: jax.Device, take: Any):
    taken = take(X.copy(), device=device)
    assert taken.devices() == {device}
    np.testing.assert_array_equal(taken, X)


def test_sharded_arrays_are_refused_as_on_the_cpu_backend():
    for platform in ("ipu", "cpu"):
        mesh = Mesh(np.array(jax.devices(platform)[:2]), ("a",))
        x = jax.device_put(np.ones(4), NamedSharding(mesh, P("a")))
        with pytest.raises(BufferError, match="singular device"):
            np.from_dlpack(x)


def test_without_the_cpu_backend_the_error_says_what_to_do(run_python):
    code = """
import jax, numpy as np
x = jax.device_put(np.ones(3, np.float32))
try:
    np.from_dlpack(x)
except BufferError as error:
    print(error)
"""
    done = run_python("-c", code, env={"JAX_PLATFORMS": "ipu"})
    assert "Set JAX_PLATFORMS=ipu,cpu or use np.asarray." in done.stdout, done.stderr


def test_a_deleted_array_is_refused(device: jax.Device):
    x = jax.device_put(X, device)
    x.delete()
    with pytest.raises(RuntimeError, match="has been deleted"):
        x.__dlpack__()
