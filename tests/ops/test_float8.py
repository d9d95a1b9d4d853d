"""Floats of 8 bits against ml_dtypes and the formats' definition, and products on each machine."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError

BIAS, FRACTION = {"F143": 8, "F152": 16}, {"F143": 3, "F152": 2}


def numbers(name, scale):
    """What all 256 bytes stand for, by the definition of the format."""
    found = []
    for byte in range(256):
        bits = FRACTION[name]
        exponent, fraction = (byte & 0x7F) >> bits, byte & ((1 << bits) - 1)
        significand = fraction / 2**bits + (exponent > 0)
        value = significand * 2.0 ** (max(exponent, 1) - BIAS[name] + scale)
        found.append(np.nan if byte == 0x80 else -value if byte > 0x80 else value)
    return np.array(found)


@pytest.mark.parametrize("name", ["F143", "F152"])
@pytest.mark.parametrize("scale", [0, -3, 7])
def test_all_bytes(name, scale):
    bits = np.arange(256, dtype=np.uint8)
    want = numbers(name, scale)
    x = ipu.ops.Float8(jnp.asarray(bits), name, scale)
    decoded = jax.jit(ipu.ops.cast_from_float8)(x)
    np.testing.assert_array_equal(decoded, want)
    again = jax.jit(lambda x: ipu.ops.cast_to_float8(x, name, scale))(decoded)
    assert (again.format, again.scale, again.bits.dtype) == (name, scale, jnp.uint8)
    np.testing.assert_array_equal(again.bits, bits)


@pytest.mark.parametrize("name", ["F143", "F152"])
def test_rounding_and_overflow(name):
    known = numbers(name, 2)
    known = np.sort(known[np.isfinite(known)])
    x = np.random.default_rng(0).normal(size=2000).astype(np.float32) * known[-1] / 2
    x = np.concatenate([x, x / 1e4, [np.inf, -np.inf, np.nan, 1e30, -1e30]])
    got = ipu.ops.cast_from_float8(jax.jit(lambda x: ipu.ops.cast_to_float8(x, name, 2))(x))
    finite = np.clip(x[:4000], known[0], known[-1])
    nearest = np.abs(known[:, None] - finite).min(0)
    np.testing.assert_array_equal(np.abs(np.asarray(got[:4000], np.float64) - finite), nearest)
    np.testing.assert_array_equal(got[4000:], [np.nan, np.nan, np.nan, known[-1], known[0]])
    halves = ipu.ops.cast_to_float8(np.float16([1.0625, 3.1]), name)
    assert ipu.ops.cast_from_float8(halves, jnp.float16).dtype == jnp.float16


def test_ties_go_to_even():
    x = np.float32([1.0625, 1.1875, -1.0625])
    got = ipu.ops.cast_from_float8(ipu.ops.cast_to_float8(x))
    np.testing.assert_array_equal(got, [1, 1.25, -1])


def test_storage_and_transformations():
    x = np.random.default_rng(0).normal(size=(4, 100)).astype(np.float32)
    stored = jax.jit(jax.vmap(ipu.ops.cast_to_float8))(x)
    assert stored.shape == (4, 100)
    assert stored.bits.nbytes == 400
    assert jax.tree.structure(stored) == jax.tree.structure(ipu.ops.cast_to_float8(x))
    _, sums = jax.lax.scan(lambda c, row: (c, ipu.ops.cast_from_float8(row).sum()), 0, stored)
    np.testing.assert_allclose(sums, np.asarray(ipu.ops.cast_from_float8(stored)).sum(1), rtol=1e-5)


def test_products():
    random = np.random.default_rng(0)
    a = ipu.ops.cast_to_float8(random.normal(size=(2, 5, 40)).astype(np.float32), "F143", -2)
    b = ipu.ops.cast_to_float8(random.normal(size=(2, 40, 7)).astype(np.float32), "F152", 3)
    want = np.asarray(ipu.ops.cast_from_float8(a), np.float64) @ np.float64(
        ipu.ops.cast_from_float8(b)
    )
    product = jax.jit(lambda a, b: ipu.ops.float8_matmul(a, b, emulate=True))
    assert product(a, b).dtype == jnp.float16
    np.testing.assert_allclose(product(a, b), want, rtol=1e-3, atol=1e-2)
    wide = ipu.ops.float8_matmul(a, b, jnp.float32, emulate=True)
    np.testing.assert_allclose(wide, want, rtol=1e-5, atol=1e-4)


_PROGRAM = """
import jax, jax.numpy as jnp, ipujax as ipu
x = ipu.ops.cast_to_float8(jnp.eye(4))
print(ipu.ops.float8_matmul(x, x).tolist() == jnp.eye(4).tolist())

def cycles(dtype, emulate):
    x = ipu.ops.Float8(jnp.zeros((4096, 2048), jnp.uint8), "F143", 0)
    w = ipu.ops.Float8(jnp.zeros((2048, 4096), jnp.uint8), "F143", 0)
    product = jax.jit(lambda x, w: ipu.ops.float8_matmul(x, w, dtype, emulate=emulate))
    with ipu.precision(partials_type="half"):
        steps = ipu.report(product, x, w).steps
    kernels = ("poplin.matmul", "popops.cast_from_quarter")
    return [sum(step.cycles for step in steps if step.kernel == name) for name in kernels]

(halves, casts), (quarters, none) = cycles(jnp.float16, True), cycles(jnp.float16, False)
print(halves - quarters, casts, none)
print(4096 * 2048 * 4096 / 1472 / 128)
"""


@pytest.mark.parametrize("machine", ["gc200", "c600"])
def test_machines(machine):
    env = {**os.environ, "IPUJAX_MACHINE": machine}
    done = subprocess.run([sys.executable, "-c", _PROGRAM], env=env, capture_output=True, text=True)
    if machine == "c600":
        right, *counted = done.stdout.split()
        assert right == "True", done.stderr
        saved, casts, none, ideal = map(float, counted)
        # Halves take twice the ideal cycles of quarters, and only they are cast.
        assert 0.7 * ideal < saved < 1.6 * ideal
        assert none == 0 < casts
    else:
        assert "needs a C600 (ipu21)" in done.stderr
        assert "got a machine of architecture ipu2. Pass emulate=True" in done.stderr


X = ipu.ops.Float8(np.zeros((4, 4), np.uint8), "F143", 0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ipu.ops.cast_to_float8(np.zeros(3, np.int32)), "float16 or float32; got int32"),
        (lambda: ipu.ops.cast_to_float8(np.zeros(3, np.float32), "F134"), "F143, F152; got 'F134'"),
        (lambda: ipu.ops.cast_to_float8(np.zeros(3, np.float32), scale=32), "-32 to 31; got 32"),
        (lambda: ipu.ops.cast_from_float8(np.zeros(3, np.uint8)), "needs a Float8; got ndarray"),
        (lambda: ipu.ops.cast_from_float8(X, jnp.int32), "float16 or float32 as dtype"),
        (lambda: ipu.ops.float8_matmul(X, ipu.ops.Float8(X.bits[:3], "F143", 0)), "\\[3, 4\\]"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ConfigError, match=words):
        call()
