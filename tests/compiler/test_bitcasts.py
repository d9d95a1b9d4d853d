"""Bitcasts between all widths: each pair of dtypes that JAX takes gives the bits NumPy has."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax.types import ELEMENT_TYPES

#: Of fewer bits than ml_dtypes stores an element in.
NARROW = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}
WIDE = ["int64", "uint64", "float64"]
DTYPES = [
    each.name
    for each in ELEMENT_TYPES
    if each.name not in ("bool", "complex64", "complex128", *WIDE)
]
#: All bytes, then signalling NaNs of 16 and 32 bits.
BYTES = np.concatenate(
    [
        np.random.default_rng(3).permutation(256).astype(np.uint8),
        np.array([0x7C01, 0x7F81, 0xFE00, 0xFF81, 0xFC80, 0x7F80, 1, 0xFF80], np.uint16).view("u1"),
    ]
)


def bits_of(dtype: str) -> int:
    return NARROW.get(dtype, 8 * jnp.dtype(dtype).itemsize)


def from_bytes(raw: np.ndarray, dtype: str) -> np.ndarray:
    """The elements of that dtype in bytes, the lowest bits first."""
    width, kind = bits_of(dtype), np.dtype(jnp.dtype(dtype))
    if width >= 8:
        return raw.view(kind)
    parts = [(raw >> shift) & ((1 << width) - 1) for shift in range(0, 8, width)]
    held = np.stack(parts, -1).reshape(-1)
    if dtype.startswith("int"):
        held = (held << (8 - width)).astype(np.int8) >> (8 - width)
    return held.view(kind) if dtype.startswith("float") else held.astype(kind)


def to_bytes(array: Any, dtype: str) -> np.ndarray:
    width, flat = bits_of(dtype), np.asarray(array).reshape(-1)
    if width >= 8:
        return flat.view(np.uint8)
    held = flat.view(np.uint8) if dtype.startswith("float") else flat.astype(np.int8).view(np.uint8)
    parts = (held & ((1 << width) - 1)).reshape(-1, 8 // width)
    return np.bitwise_or.reduce(parts << np.arange(0, 8, width, dtype=np.uint8), axis=-1)


def grouped(x: Any, source: str, target: str) -> Any:
    """With a last dimension of the elements that become one."""
    ratio = bits_of(target) // bits_of(source)
    return x.reshape(*x.shape[:-1], -1, ratio) if ratio > 1 else x


def bitcasts(x: Any, source: str, targets: list[str]) -> list[Any]:
    return [lax.bitcast_convert_type(grouped(x, source, t), jnp.dtype(t)) for t in targets]


def check(found: list[Any], targets: list[str], raw: np.ndarray) -> None:
    for target, array in zip(targets, found, strict=True):
        assert array.dtype == jnp.dtype(target)
        np.testing.assert_array_equal(to_bytes(array, target), raw, err_msg=target)


@pytest.mark.parametrize("source", DTYPES)
def test_bits_stay_in_programs_and_loops(source: str, device: jax.Device) -> None:
    x = jax.device_put(from_bytes(BYTES, source), device)
    check(jax.jit(lambda x: bitcasts(x, source, DTYPES))(x), DTYPES, BYTES)

    def scanned(x: Any) -> list[Any]:
        return lax.scan(lambda c, row: (c, bitcasts(row, source, DTYPES)), 0, x.reshape(2, -1))[1]

    check(jax.jit(scanned)(x), DTYPES, BYTES)


@pytest.mark.parametrize("source", ["int2", "float8_e5m2", "bfloat16", *WIDE])
def test_bits_of_64_bit_elements(source: str, device: jax.Device) -> None:
    targets = ["uint2", "int4", "float8_e4m3", "uint8", "float16", "bfloat16", "float32", *WIDE]
    with jax.enable_x64(True):
        x = jax.device_put(from_bytes(BYTES, source), device)
        check(jax.jit(lambda x: bitcasts(x, source, targets))(x), targets, BYTES)


@pytest.mark.parametrize(
    ("source", "target"),
    [("int4", "float32"), ("float32", "uint2"), ("uint2", "float4_e2m1fn"), ("int16", "int4")],
)
def test_eager_bitcasts(source: str, target: str, device: jax.Device) -> None:
    x = grouped(jax.device_put(from_bytes(BYTES, source), device), source, target)
    check([lax.bitcast_convert_type(x, jnp.dtype(target))], [target], BYTES)


def test_empty_and_scalar_bitcasts(device: jax.Device) -> None:
    empty = jax.device_put(np.zeros((0, 4), np.uint8), device)
    assert lax.bitcast_convert_type(empty, jnp.int4).shape == (0, 4, 2)
    word = jax.device_put(np.uint16(0x1234), device)
    assert lax.bitcast_convert_type(word, jnp.uint4).tolist() == [4, 3, 2, 1]
    parts = jax.device_put(np.array([4, 3, 2, 1], jnp.uint4), device)
    assert int(lax.bitcast_convert_type(parts, jnp.uint16)) == 0x1234


@pytest.mark.parametrize("dtype", [jnp.bool_, jnp.complex64])
def test_types_that_jax_bitcasts_to_themselves_only(dtype: Any, device: jax.Device) -> None:
    x = jax.device_put(np.array([0, 1, 1, 0], dtype), device)
    np.testing.assert_array_equal(jax.jit(lambda x: lax.bitcast_convert_type(x, dtype))(x), x)
