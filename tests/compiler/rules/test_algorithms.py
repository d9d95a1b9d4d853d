"""dot_general's algorithm attribute: what is rounded, and every preset of JAX's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jax.lax import DotAlgorithmPreset
from jaxlib.mlir import ir

from ipujax.compiler.passes.refuse import refuse_unsupported
from ipujax.compiler.reader import read_program
from ipujax.errors import UnsupportedOpError
from tests.compiler.test_old_ops import run

A = np.float32([[1 + 2**-9, 1]])
B = np.float32([[1], [2**-13]])
RNG = np.random.default_rng(5)


def program(left: str, summed: str, operations: int = 1, right: str = "") -> str:
    algorithm = (
        f"<lhs_precision_type = {left}, rhs_precision_type = {right or left}, "
        f"accumulation_type = {summed}, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {operations}, allow_imprecise_accumulation = false>"
    )
    return f"""func.func @main(%a: tensor<1x2xf32>, %b: tensor<2x1xf32>) -> tensor<1x1xf32> {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = {algorithm}
        : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
      return %0 : tensor<1x1xf32>
    }}"""


@pytest.mark.parametrize(
    ("multiplied", "summed", "operations", "wanted"),
    [
        ("f64", "f64", 1, 1 + 2**-9 + 2**-13),
        ("f32", "f32", 1, 1 + 2**-9 + 2**-13),
        ("tf32", "f32", 1, 1 + 2**-9 + 2**-13),
        ("bf16", "f32", 1, 1 + 2**-13),
        ("bf16", "f32", 6, 1 + 2**-9 + 2**-13),
        ("bf16", "bf16", 1, 1),
        ("f8E5M2", "f32", 1, 1 + 2**-13),
    ],
)
def test_operands_and_sums_are_rounded_as_asked(
    multiplied: str, summed: str, operations: int, wanted: float
) -> None:
    (found,) = run("ipu", program(multiplied, summed, operations), A, B)
    assert found[0, 0] == np.float32(wanted)


def test_others_are_refused_by_name() -> None:
    """MLIR's verifier lets none through, so the program is changed after it was read."""
    with mlir.make_ir_context():
        module = ir.Module.parse(program("f32", "f32"))
        read = read_program(module, "test", lambda name: False)
    (op,) = read.main.ops
    op.attrs["algorithm"] = str(op.attrs["algorithm"]).replace("type = f32", "type = i8")
    with pytest.raises(UnsupportedOpError, match="dot_general: no algorithm multiplies i8"):
        refuse_unsupported(read)


#: What each preset loses of sums of 32 products of numbers around 1.
LOSS = {
    "DEFAULT": 1e-5,
    "F16_F16_F16": 3e-2,
    "F16_F16_F32": 2e-2,
    "BF16_BF16_BF16": 2e-1,
    "BF16_BF16_F32": 1e-1,
    "BF16_BF16_F32_X3": 1e-4,
    "BF16_BF16_F32_X6": 1e-5,
    "BF16_BF16_F32_X9": 1e-5,
    "TF32_TF32_F32": 1e-2,
    "TF32_TF32_F32_X3": 1e-5,
    "F32_F32_F32": 1e-5,
    "F64_F64_F64": 1e-5,
}
OF_FLOAT8 = [preset.name for preset in DotAlgorithmPreset if "F8" in preset.name]


def product(name: str, dtype: str, result: str = "", x64: bool = True):
    """The product on an IPU, and that of the same operands in float64."""
    with jax.enable_x64(x64):
        operands = [RNG.normal(size=shape).astype(jnp.dtype(dtype)) for shape in ((8, 32), (32, 4))]
        placed = [jax.device_put(each, jax.devices("ipu")[0]) for each in operands]
        preferred = jnp.dtype(result) if result else None
        f = jax.jit(
            lambda a, b: jax.lax.dot(
                a, b, precision=DotAlgorithmPreset[name], preferred_element_type=preferred
            )
        )
        left, right = (each.astype(np.complex128) for each in operands)
        return np.asarray(f(*placed)), left @ right


def test_the_tables_have_every_preset() -> None:
    assert {preset.name for preset in DotAlgorithmPreset} == {*LOSS, *OF_FLOAT8}


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", LOSS)
def test_presets_of_32_bits(name: str, dtype: str) -> None:
    found, exact = product(name, dtype)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=0, atol=LOSS[name])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", ["DEFAULT", "F64_F64_F64"])
def test_presets_of_64_bits(name: str, dtype: str) -> None:
    found, exact = product(name, dtype)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-13)


def test_products_in_float64_without_x64() -> None:
    found, exact = product("F64_F64_F64", "float32", x64=False)
    np.testing.assert_array_equal(found, exact.real.astype(np.float32))


def test_products_in_float64_are_demoted_as_float64_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPUJAX_X64", "demote")
    found, exact = product("F64_F64_F64", "float64")
    assert 1e-13 < np.abs(found - exact).max() < 1e-5


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"])
@pytest.mark.parametrize("name", OF_FLOAT8)
def test_presets_of_8_bits(name: str, dtype: str) -> None:
    found, exact = product(name, dtype, "float32")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact.real, rtol=1e-6, atol=1e-5)
