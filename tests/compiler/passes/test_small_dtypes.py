"""8-bit floats and 2- and 4-bit numbers: every number of each format, against ml_dtypes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

FLOATS = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
]
INTS = ["int4", "uint4", "int2", "uint2"]
OTHERS = ["float32", "float16", "bfloat16", "int32", "int8", "uint8", "bool"]


def _dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def _all_numbers(name: str) -> np.ndarray:
    dtype = _dtype(name)
    bits = 4 if name.startswith("float4") else 8
    if name in INTS:
        bits = ml_dtypes.iinfo(dtype).bits
    return np.arange(1 << bits, dtype=np.uint8).view(dtype)


def _same(ours, theirs) -> None:
    """Equal dtypes, numbers, NaNs and signs of zeros."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    a, b = ours.astype(np.float32), theirs.astype(np.float32)
    np.testing.assert_array_equal(a, b)
    known = ~np.isnan(a)
    np.testing.assert_array_equal(np.signbit(a[known]), np.signbit(b[known]))


def _float32s() -> np.ndarray:
    rng = np.random.default_rng(0)
    sizes = np.ldexp(rng.uniform(1, 2, 4000), rng.integers(-30, 20, 4000))
    ties = np.arange(-64, 65) / 32
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1e38, 464, 448, 57344, 61440, 15.75]
    return np.concatenate([sizes, -sizes, ties, special]).astype(np.float32)


@pytest.mark.parametrize("name", FLOATS)
def test_conversion_to_a_small_float_rounds_to_nearest_even(name):
    x, dtype = _float32s(), _dtype(name)
    _same(jax.jit(lambda x: x.astype(dtype))(x), x.astype(dtype))


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", FLOATS + INTS)
def test_conversion_from_each_number(name, other):
    x = _all_numbers(name)
    if np.dtype(_dtype(other)).kind in "iu":  # NaN and infinity have no one integer in NumPy
        x = x[np.abs(x.astype(np.float32)) <= 100]
        if other == "uint8":
            x = x[x.astype(np.float32) >= 0]
    _same(jax.jit(lambda x: x.astype(_dtype(other)))(x), x.astype(_dtype(other)))


@pytest.mark.parametrize("name", FLOATS + INTS)
def test_numbers_pass_through_and_move(name):
    x = _all_numbers(name)
    same, turned = jax.jit(lambda x: (x, x[::-1]))(x)
    assert np.asarray(same).tobytes() == x.tobytes()
    _same(turned, x[::-1])


# float8_e8m0fnu: its sums are not exact in float64, its products leave float32.
@pytest.mark.parametrize("op", ["add", "sub", "mul"])
@pytest.mark.parametrize("name", [name for name in FLOATS if name != "float8_e8m0fnu"])
def test_arithmetic_is_exact_and_rounded_once(name, op):
    """Sums and products of these formats are exact in float64, so ml_dtypes rounds once too."""
    x = _all_numbers(name)
    y = np.random.default_rng(1).permutation(x)
    wide = {"add": np.add, "sub": np.subtract, "mul": np.multiply}[op]
    with np.errstate(all="ignore"):
        exact = wide(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    _same(jax.jit(getattr(lax, op))(x, y), exact.astype(x.dtype))


@pytest.mark.parametrize("name", FLOATS)
def test_bits_of_each_number(name):
    x = _all_numbers(name)
    if name.startswith("float4"):
        return
    good = ~np.isnan(x.astype(np.float32))  # a NaN has many bits
    bits = np.asarray(jax.jit(lambda x: lax.bitcast_convert_type(x, np.uint8))(x))
    np.testing.assert_array_equal(bits[good], x.view(np.uint8)[good])
    back = jax.jit(lambda b: lax.bitcast_convert_type(b, x.dtype))(x.view(np.uint8))
    _same(back, x)


def test_a_product_of_small_floats_sums_in_float32():
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((5, 5)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    f = jax.jit(lambda a, b: lax.dot(a, b, preferred_element_type=np.float32))
    np.testing.assert_allclose(f(a, b), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-6)


@pytest.mark.parametrize("name", INTS)
def test_conversion_to_a_small_integer_wraps_integers_and_saturates_floats(name):
    dtype = _dtype(name)
    info = ml_dtypes.iinfo(dtype)
    convert = jax.jit(lambda x: x.astype(dtype))
    whole = np.arange(-300, 300, dtype=np.int32)
    _same(convert(whole), whole.astype(dtype))
    x = np.array([-300, -8.5, -1.5, -0.5, 0.5, 1.5, 7.9, 15.9, 300, np.inf, -np.inf], np.float32)
    expected = np.clip(np.trunc(x), int(info.min), int(info.max)).astype(np.int32).astype(dtype)
    _same(convert(x), expected)
    assert int(np.asarray(convert(np.float32(np.nan)))) == 0


_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "lt": np.less,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
}


@pytest.mark.parametrize("op", _BINARY)
@pytest.mark.parametrize("name", INTS)
def test_integer_arithmetic_wraps(name, op):
    every = _all_numbers(name)
    a, b = np.repeat(every, every.size), np.tile(every, every.size)
    if "shift" in op:
        if name.startswith("u") and "arithmetic" in op:
            return
        keep = (b.astype(int) >= 0) & (b.astype(int) < ml_dtypes.iinfo(every.dtype).bits)
        a, b = a[keep], b[keep]
    expected = _BINARY[op](a.astype(np.int32), b.astype(np.int32))
    expected = expected if op == "lt" else expected.astype(every.dtype)
    _same(jax.jit(getattr(lax, op))(a, b), expected)


@pytest.mark.parametrize("name", ["int4", "uint4"])
def test_integers_see_their_own_bits(name):
    x = _all_numbers(name)
    bits = np.arange(16)
    ones = np.array([bin(b).count("1") for b in bits])
    zeros = np.array([4 - int(b).bit_length() for b in bits])
    _same(jax.jit(lax.population_count)(x), ones.astype(x.dtype))
    _same(jax.jit(lax.clz)(x), zeros.astype(x.dtype))
    _same(
        jax.jit(lambda x: lax.shift_right_logical(x, jnp.ones_like(x)))(x),
        (bits >> 1).astype(x.dtype),
    )
    _same(jax.jit(lax.bitwise_not)(x), (~bits).astype(x.dtype))


def test_small_integers_in_loops_products_sorts_and_callbacks():
    x = _all_numbers("int4").reshape(4, 4)
    whole = x.astype(np.int32)

    def f(x):
        last, steps = lax.scan(lambda c, row: (c + row, c * row), x[0], x)
        product = lax.dot(x, x, preferred_element_type=np.int32)
        back = jax.pure_callback(lambda v: np.asarray(v)[::-1], x, x)
        return last, steps, product, jnp.sort(x, 1), back, x.T, lax.cumsum(x, 0)

    last, steps, product, ordered, back, turned, sums = map(np.asarray, jax.jit(f)(x))
    _same(last, (whole[0] + whole.sum(0)).astype(x.dtype))
    _same(steps, ((whole[0] + np.cumsum(whole, 0) - whole) * whole).astype(x.dtype))
    np.testing.assert_array_equal(product, whole @ whole)
    _same(ordered, np.sort(whole, 1).astype(x.dtype))
    _same(back, x[::-1])
    _same(turned, x.T)
    _same(sums, np.cumsum(whole, 0).astype(x.dtype))


def test_constants_of_small_types():
    numbers = np.array([0.5, -1.75, np.inf, 300], ml_dtypes.float8_e5m2)
    many = np.arange(200).astype(ml_dtypes.int4)
    f = jax.jit(lambda x: (jnp.asarray(numbers).astype(x.dtype) + x, jnp.asarray(many)))
    total, back = f(np.float32(1))
    _same(total, numbers.astype(np.float32) + 1)
    _same(back, many)


@pytest.mark.parametrize("name", [*FLOATS, "float16", "bfloat16"])
def test_conversion_from_float64_rounds_once(name):
    """Numbers beside the middle of two neighbours, which float32 takes for the middle itself."""
    if name in FLOATS:
        numbers = _all_numbers(name).astype(np.float64)
    else:
        numbers = np.arange(1, 0x7B00, dtype=np.uint16).view(_dtype(name)).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers) & (numbers > 0)])
    lower, upper = numbers[:-1], numbers[1:]
    middle = (lower + upper) / 2
    wanted = np.concatenate([lower, upper, -lower, -upper])
    x = np.concatenate([middle * (1 - 2.0**-50), middle * (1 + 2.0**-50)])
    x = np.concatenate([x, -x])
    if name == "float8_e8m0fnu":
        x, wanted = x[: x.size // 2], wanted[: x.size // 2]
    with jax.enable_x64(True):
        cast = jax.jit(lambda x: x.astype(name), compiler_options={"ipu_x64": "emulate"})
        found = np.asarray(cast(x)).astype(np.float64)
    np.testing.assert_array_equal(found, wanted)
