"""Batches whose checksums the device compares with those of what was made."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import ipujax as ipu
from ipujax.api.feed import checksums

RNG = np.random.default_rng(0)
DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32",
    "complex64", "float8_e4m3fn",
]  # fmt: skip


def _array(dtype, shape=(6, 5)):
    """Random bits, of bool 0 and 1, of floats anything finite."""
    if dtype == "bool":
        return RNG.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        bounds = np.iinfo(dtype)
        return RNG.integers(bounds.min, bounds.max, shape, dtype, endpoint=True)
    return RNG.normal(size=shape).astype(dtype)


def _words(x):
    """The words of an array as the definition has them: little-endian, of at most four bytes."""
    width = min(x.dtype.itemsize, 4)
    return np.frombuffer(np.ascontiguousarray(x).tobytes(), f"<u{width}")


def _flip(arrays, index=0):
    """As if a bit had changed on the way."""
    bits = lax.bitcast_convert_type(arrays[index], jnp.uint32)
    first = jnp.zeros(bits.size, bool).at[0].set(True).reshape(bits.shape)
    changed = lax.bitcast_convert_type(jnp.where(first, bits ^ 4, bits), arrays[index].dtype)
    return [*arrays[:index], changed, *arrays[index + 1 :]]


@pytest.fixture
def a_bit_changes(monkeypatch):
    """Of the first array of each batch, on the device."""
    right = checksums.of_arrays
    monkeypatch.setattr(checksums, "of_arrays", lambda arrays: right(_flip(list(arrays))))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_devices_checksum_is_that_of_a_plain_loop(dtype):
    x = _array(dtype)
    sums = [0, 0]
    for position, word in enumerate(_words(x).tolist(), start=1):
        sums = [(sums[0] + word) % 2**32, (sums[1] + position * word) % 2**32]
    assert jax.jit(lambda x: checksums.of_arrays([x]))(x).tolist() == [sums]


def test_verified_batches_arrive_as_they_are():
    batches = [{dtype: _array(dtype) for dtype in DTYPES} for _ in range(4)]
    infeed, outfeed = ipu.Infeed(batches, verify=True), ipu.Outfeed()

    def program():
        return ipu.repeat(4, lambda c, b: (c, b), 0, infeed=infeed, outfeed=outfeed)

    jax.block_until_ready(jax.jit(program)())
    got = outfeed.dequeue()
    for dtype in DTYPES:
        for i, batch in enumerate(batches):
            np.testing.assert_array_equal(_words(got[dtype][i]), _words(batch[dtype]), dtype)


@pytest.mark.usefixtures("a_bit_changes")
@pytest.mark.parametrize("stops", [False, True])
def test_a_changed_bit_is_an_error(stops):
    infeed = ipu.Infeed([np.ones(3, np.float32)] * 2, verify=True)
    program = jax.jit(
        lambda: ipu.repeat(2, jnp.add, jnp.zeros(3), infeed=infeed, stop_at_end=stops)
    )
    with pytest.raises(jax.errors.JaxRuntimeError, match="other bytes of array 0 of batch 0 on"):
        jax.block_until_ready(program())


@pytest.mark.usefixtures("a_bit_changes")
def test_without_verification_nothing_is_compared():
    infeed = ipu.Infeed([np.ones(3, np.float32)])
    loop = jax.jit(lambda: ipu.repeat(1, jnp.add, jnp.zeros(3), infeed=infeed))
    assert loop().tolist() == [1, 1, 1]


@pytest.mark.usefixtures("a_bit_changes")
def test_the_option_verifies_all_feeds():
    ipu.configure(verified_transfers=True)
    try:
        infeed = ipu.Infeed([np.ones(3, np.float32)])
    finally:
        ipu.reset_config(keep_devices=True)
    with pytest.raises(jax.errors.JaxRuntimeError, match="arrive as they were sent"):
        jax.block_until_ready(
            jax.jit(lambda: ipu.repeat(1, jnp.add, jnp.zeros(3), infeed=infeed))()
        )


def test_the_end_of_the_data_and_empty_arrays_are_no_error():
    batch = {"x": np.float32(2), "none": np.zeros((0, 3), np.float32)}
    infeed = ipu.Infeed([batch] * 3, verify=True)

    def loop():
        return ipu.repeat(
            5, lambda c, b: c + b["x"] + b["none"].sum(), 0.0, infeed=infeed, stop_at_end=True
        )

    assert tuple(map(float, jax.jit(loop)())) == (6, 3)


def test_each_replica_verifies_its_part():
    x = RNG.normal(size=(5, 4, 3)).astype(np.float32)
    infeed = ipu.Infeed(x, verify=True)

    @ipu.pmap(devices=jax.devices()[:2])
    def sums(carry):
        return ipu.repeat(5, lambda c, batch: c + batch.sum(0), carry, infeed=infeed)

    found = sums(np.zeros((2, 3), np.float32))
    np.testing.assert_allclose(found, x.reshape(5, 2, 2, 3).sum((0, 2)), rtol=1e-5, atol=1e-5)


def test_elements_of_less_than_a_byte_are_refused():
    infeed = ipu.Infeed([np.zeros(4, ml_dtypes.int4)], verify=True)
    with pytest.raises(ipu.FeedError, match="whole bytes to verify them; got int4"):
        _ = infeed.spec
