"""dot_general's algorithm attribute: what it rounds, and which are refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

from ipujax.compiler.passes.refuse import refuse_unsupported
from ipujax.compiler.reader import read_program
from ipujax.errors import UnsupportedOpError
from tests.compiler.test_old_ops import run

A = np.float32([[1 + 2**-9, 1]])
B = np.float32([[1], [2**-13]])


def program(multiplied: str, summed: str, operations: int = 1) -> str:
    algorithm = (
        f"<lhs_precision_type = {multiplied}, rhs_precision_type = {multiplied}, "
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
        ("f32", "f32", 1, 1 + 2**-9 + 2**-13),
        ("tf32", "f32", 1, 1 + 2**-9 + 2**-13),
        ("bf16", "f32", 1, 1 + 2**-13),
        ("bf16", "f32", 6, 1 + 2**-9 + 2**-13),
        ("bf16", "bf16", 1, 1),
    ],
)
def test_operands_and_sums_are_rounded_as_asked(
    multiplied: str, summed: str, operations: int, wanted: float
) -> None:
    (found,) = run("ipu", program(multiplied, summed, operations), A, B)
    assert found[0, 0] == np.float32(wanted)


def test_others_are_refused_by_name() -> None:
    with mlir.make_ir_context():
        module = ir.Module.parse(program("f64", "f64"))
        read = read_program(module, "test", lambda name: False)
    with pytest.raises(UnsupportedOpError, match="dot_general: no algorithm multiplies f64"):
        refuse_unsupported(read)
