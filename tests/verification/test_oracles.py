"""Oracles run in processes that may die; arrays of every dtype return from them unchanged."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ipujax.errors import OracleError
from ipujax.verification.compare import difference, tolerance_of
from ipujax.verification.oracles import Oracle
from ipujax.verification.reproduce import pack, unpack

DTYPES = {
    "bool": "i1",
    "int4": "i4",
    "uint4": "ui4",
    "int8": "i8",
    "uint16": "ui16",
    "int32": "i32",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "complex64": "complex<f32>",
    "float8_e4m3fn": "f8E4M3FN",
    "float8_e5m2": "f8E5M2",
}


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def copy_of(shape: str, name: str) -> str:
    kind = f"tensor<{shape}{DTYPES[name]}>"
    return f"func.func @main(%a: {kind}) -> {kind} {{ return %a : {kind} }}"


@pytest.fixture(scope="module")
def interpreter():
    oracle = Oracle("interpreter")
    yield oracle
    oracle.close()


@pytest.mark.parametrize("name", DTYPES)
def test_the_interpreter_hands_back_every_dtype(name: str, interpreter: Oracle):
    x = np.array([[1, 0, 3], [4, 5, 1]]).astype(dtype_of(name))
    same = np.full_like(x, x[0, 0])
    for shape, array in (("2x3x", x), ("", x[0, 0]), ("0x3x", x[:0]), ("2x3x", same)):
        (result,) = interpreter.run(copy_of(shape, name), [array])
        assert result.dtype == array.dtype
        np.testing.assert_array_equal(result, array)


def test_special_numbers_come_back(interpreter: Oracle):
    for name in ("float32", "float16", "bfloat16"):
        x = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-5, 3.140625]).astype(dtype_of(name))
        (result,) = interpreter.run(copy_of("6x", name), [x])
        np.testing.assert_array_equal(result.astype("f8"), x.astype("f8"))
        assert np.signbit(result[3])


def test_an_oracle_that_dies_is_started_again():
    oracle = Oracle("interpreter")
    kind = "tensor<4xui32>"
    beyond = f"""func.func @main(%a: {kind}) -> {kind} {{
      %0 = stablehlo.custom_call @nobody(%a) : ({kind}) -> {kind}
      return %0 : {kind}
    }}"""
    x = np.arange(4, dtype=np.uint32)
    with pytest.raises(OracleError, match=r"interpreter.*nobody|interpreter.*failed"):
        oracle.run(beyond, [x])
    (result,) = oracle.run(f"func.func @main(%a: {kind}) -> {kind} {{ return %a : {kind} }}", [x])
    np.testing.assert_array_equal(result, x)
    oracle.close()


def test_what_is_no_program_is_an_error(interpreter: Oracle):
    with pytest.raises(OracleError, match="needs a program that interpreter can run"):
        interpreter.run("this is no program", [])


def test_a_program_that_takes_too_long_is_given_up():
    kind = "tensor<i32>"
    forever = f"""func.func @main(%a: {kind}) -> {kind} {{
      %0 = stablehlo.while(%b = %a) : {kind}
        cond {{
          %c = stablehlo.compare EQ, %b, %b : ({kind}, {kind}) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }} do {{ stablehlo.return %b : {kind} }}
      return %0 : {kind}
    }}"""
    oracle = Oracle("interpreter", timeout=10)
    with pytest.raises(OracleError, match="within 10 s"):
        oracle.run(forever, [np.int32(0)])
    oracle.close()


@pytest.mark.parametrize("name", DTYPES)
def test_arrays_survive_packing(name: str):
    x = np.array([[1, 0, 3], [4, 5, 1]]).astype(dtype_of(name))
    for array in (x, x[0, 0], x[:0]):
        back = unpack(pack(array))
        assert (back.dtype, back.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(back, array)


def test_comparison():
    one = np.array([1.0, np.nan, np.inf], np.float32)
    rtol = tolerance_of(one.dtype, whole_program=True)
    assert difference(one, one, rtol) is None
    assert difference(one * np.float32(1 + 1e-5), one, rtol) is None
    found = difference(np.array([1.5, np.nan, np.inf], np.float32), one, rtol)
    assert found is not None
    assert (found.index, found.max_error) == ((0,), 0.5)
    assert "1 of 3 elements" in found.what
    assert difference(one.astype(np.float16), one, rtol) is not None
    assert difference(np.array([np.inf]), np.array([1.0]), 0.1).max_error == np.inf
    big = np.array([2**24 + 1], np.int32)
    assert difference(big, big - 1, tolerance_of(big.dtype, whole_program=True)) is not None
