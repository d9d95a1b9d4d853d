"""Arrays on their way in, out and between devices."""

from __future__ import annotations

import gc
import weakref

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

DTYPES = [
    *(np.dtype(t) for t in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32")),
    *(np.dtype(t) for t in ("float16", "float32", "complex64")),
    *(np.dtype(getattr(ml_dtypes, t)) for t in ("bfloat16", "int4", "uint4")),
    *(np.dtype(getattr(ml_dtypes, t)) for t in ("float8_e4m3fn", "float8_e5m2")),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3, 5), (2, 0, 3), (70, 40)], ids=str)
def test_every_dtype_and_shape_comes_back(device, dtype, shape):
    array = (np.arange(np.prod(shape, dtype=int)) % 7).astype(dtype).reshape(shape)
    back = np.asarray(jax.device_put(array, device))
    assert back.dtype == array.dtype
    assert back.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::-1],
        lambda a: a[:, ::2],
        lambda a: a[:, ::-3, 1:],
        lambda a: a[..., :1],
        lambda a: np.swapaxes(a, 0, 2)[1:],
        lambda a: np.broadcast_to(a[0, 0], (3, 5, 6)),
        np.asfortranarray,
    ],
)
def test_any_strides_are_read(device, view):
    array = view(np.arange(4 * 5 * 6, dtype=np.int32).reshape(4, 5, 6))
    np.testing.assert_array_equal(jax.device_put(array, device), array)


def test_strides_of_every_element_size(device):
    for dtype in (np.uint8, np.uint16, np.uint32, np.complex64):
        array = np.arange(35).astype(dtype).reshape(5, 7)[::-2, ::3]
        np.testing.assert_array_equal(jax.device_put(array, device), array)


def test_strides_that_are_no_multiple_of_the_element(device):
    records = np.zeros((6, 4), [("flag", np.uint8), ("value", np.float32)])
    records["value"] = np.arange(24).reshape(6, 4)
    np.testing.assert_array_equal(jax.device_put(records["value"], device), records["value"])


def test_the_host_array_is_let_go_at_once(device, aligned):
    host = aligned(4096)
    owner = weakref.ref(host.base if host.base is not None else host)
    array = jax.device_put(host, device)
    del host
    jax.device_put(np.zeros(1), device)  # jaxlib releases Python objects at its next entry
    gc.collect()
    assert owner() is None
    np.testing.assert_array_equal(array, np.arange(4096))


@pytest.mark.parametrize("offset", [0, 4, 16, 32])
def test_an_array_of_any_alignment_is_copied(device, aligned, offset):
    host = aligned(4096, offset)
    array = jax.device_put(host, device)
    host[:] = -1
    np.testing.assert_array_equal(array, np.arange(4096))


def test_reading_makes_no_copy_and_keeps_the_memory(device):
    array = jax.jit(lambda x: x * 2)(jax.device_put(np.arange(8, dtype=np.float32), device))
    view = np.asarray(array)
    assert view.ctypes.data == array.unsafe_buffer_pointer()
    assert not view.flags.writeable
    array.delete()
    del array
    gc.collect()
    churn = [jax.device_put(np.full(8, 9, np.float32), device) for _ in range(20)]
    np.testing.assert_array_equal(view, np.arange(8) * 2)
    del churn


def test_copies_between_devices_are_independent(device):
    other = jax.devices("ipu")[1]
    source = jax.device_put(np.arange(6, dtype=np.float32), device)
    copy = jax.device_put(source, other)
    assert copy.devices() == {other}
    assert copy.unsafe_buffer_pointer() != source.unsafe_buffer_pointer()
    source.delete()
    np.testing.assert_array_equal(copy, np.arange(6))


def test_a_copy_of_a_result_in_flight_waits_for_it(device):
    slow = jax.jit(_slowly)
    copy = jax.device_put(slow(jax.device_put(jnp.arange(3.0), device)), jax.devices("ipu")[2])
    np.testing.assert_array_equal(copy, [1, 2, 3])


def _slowly(x):
    import time

    def wait(value):
        time.sleep(0.1)
        return value + np.float32(1)

    return jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def test_memory_stats_count_arrays(device):
    gc.collect()
    before = device.memory_stats()
    array = jax.device_put(np.zeros((256, 1024), np.float32), device)
    during = device.memory_stats()
    assert during["bytes_in_use"] == before["bytes_in_use"] + 1024 * 1024
    assert during["peak_bytes_in_use"] >= during["bytes_in_use"]
    assert during["bytes_limit"] == device.num_tiles * device.bytes_per_tile
    assert during["bytes_reservable_limit"] == during["bytes_limit"]
    array.delete()
    assert device.memory_stats()["bytes_in_use"] == before["bytes_in_use"]
