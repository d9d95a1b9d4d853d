"""The option `verified_transfers` for arrays that are put on a device and results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

SIZE = 4096


@pytest.fixture
def verified() -> Iterator[None]:
    ipu.configure(verified_transfers=True)
    yield
    ipu.reset_config(keep_devices=True)


def numbers() -> np.ndarray:
    return np.arange(SIZE, dtype=np.float32)


def change_a_bit(array: jax.Array) -> None:
    address = jax.block_until_ready(array).unsafe_buffer_pointer()
    ctypes.c_uint8.from_address(address + 7).value ^= 4


def double() -> Callable[[jax.Array], jax.Array]:
    return jax.jit(lambda x: 2 * x)


@pytest.mark.usefixtures("verified")
def test_arrays_arrive_as_they_are():
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float16", "bfloat16", "int8", "bool", "complex64", "uint32"):
        x = (100 * rng.normal(size=(33, 65))).astype(jnp.dtype(dtype))
        for array in (x, x.T, x[::2, 1:], x[:0]):
            put = jax.device_put(array)
            np.testing.assert_array_equal(np.asarray(put), array)
            np.testing.assert_array_equal(np.asarray(jax.jit(jnp.flip)(put)), np.flip(array))


@pytest.mark.usefixtures("verified")
def test_arrays_that_programs_update_in_place():
    step = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jax.device_put(np.zeros(SIZE, np.float32))
    for n in range(1, 4):
        x = step(x)
        assert np.asarray(x)[0] == n


@pytest.mark.usefixtures("verified")
def test_an_array_that_changed_on_its_way_is_an_error():
    function, x = double(), numbers()
    put = jax.device_put(x)
    change_a_bit(put)
    with pytest.raises(jax.errors.JaxRuntimeError, match="other bytes of argument 0 of jit"):
        jax.block_until_ready(function(put))
    np.testing.assert_array_equal(np.asarray(function(jax.device_put(x))), 2 * x)


@pytest.mark.usefixtures("verified")
def test_a_result_that_changed_on_its_way_is_an_error():
    function, x = double(), numbers()
    result = function(jax.device_put(x))
    change_a_bit(result)
    with pytest.raises(jax.errors.JaxRuntimeError, match="than the device had of 16384"):
        np.asarray(result)
    np.testing.assert_array_equal(np.asarray(function(jax.device_put(x))), 2 * x)


def test_without_the_option_nothing_is_compared():
    function, x = double(), numbers()
    put = jax.device_put(x)
    change_a_bit(put)
    result = function(put)
    change_a_bit(result)
    assert np.asarray(result)[1] != 2 * x[1]
