"""Every op of CHLO in jaxlib's dialect: it has a rule, a checked decomposition, or a reason."""

from __future__ import annotations

import re
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, stablehlo

import ipujax.compiler.rules  # noqa: F401  (registers every rule)
from ipujax import jax_compat
from ipujax.compiler.composites import DECOMPOSED
from ipujax.compiler.rules.registry import RULES
from tests.compiler.chlo_programs import PROGRAMS, Program

RUN = [program for program in PROGRAMS if program.wanted is not None]
IDS = [f"{program.op} {program.label}" for program in RUN]


def composites_in(text: str) -> set[str]:
    """The composites of CHLO that are left once jaxlib has serialised the program."""
    module = jax_compat.deserialize_artifact(jax_compat.artifact_of(text))
    return set(re.findall(r'composite "(chlo\.[^"]+)"', str(module)))


def test_each_op_of_the_dialect_has_a_program() -> None:
    classes = [getattr(chlo, name) for name in dir(chlo) if name.endswith("Op")]
    names = {c.OPERATION_NAME for c in classes if hasattr(c, "OPERATION_NAME")}
    assert names == {program.op for program in PROGRAMS}


def test_each_composite_has_a_rule_or_a_checked_decomposition() -> None:
    arrived = {name for program in RUN for name in composites_in(program.text)}
    rules = {name for name in RULES if name.startswith("chlo.")} - {"chlo.erfc"}  # JAX's: keep_erfc
    assert arrived == rules | DECOMPOSED


@pytest.mark.parametrize("program", [p for p in PROGRAMS if p.wanted is None], ids=lambda p: p.op)
def test_jaxlib_itself_refuses(program: Program) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="failed to legalize"):
        jax_compat.artifact_of(program.text)


@pytest.mark.parametrize("program", RUN, ids=IDS)
def test_it_gives_what_numpy_gives(program: Program) -> None:
    loaded = jax_compat.load_program(program.text, jax.devices("ipu")[0])
    with jax.enable_x64(True):
        found = loaded(program.arguments)
    for result, wanted in zip(found, program.wanted or [], strict=True):
        assert result.dtype == wanted.dtype
        if wanted.dtype.kind in "biu":
            np.testing.assert_array_equal(result, wanted)
        else:
            kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(
                result.astype(kind), wanted.astype(kind), program.rtol, program.atol
            )


# Over several devices ----------------------------------------------------------------------------


def _reversed_sum(dimension: int) -> Primitive:
    """Sums from the end along a dimension of a float32 matrix, as chlo.scan."""
    primitive = Primitive(f"reversed_sum_{dimension}")
    primitive.def_abstract_eval(lambda x: x)

    def lower(ctx: Any, x: Any) -> list[Any]:
        kind = ir.RankedTensorType.get([x.type.shape[1 - dimension]], x.type.element_type)
        zeros = mlir.ir_constant(np.zeros(kind.shape, np.float32))
        scan = chlo.ScanOp([x.type], [kind], [x], [zeros], dimension=dimension, is_reverse=True)
        with ir.InsertionPoint(scan.body.blocks.append(kind, kind)) as place:
            total = stablehlo.add(*place.block.arguments)
            stablehlo.return_([total, total])
        return [scan.results[0]]

    mlir.register_lowering(primitive, lower, platform="ipu")
    return primitive


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("spec", [P("a"), P(None, "a")])
def test_scans_from_the_end_of_sharded_arrays(dimension: int, spec: P) -> None:
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("a",))
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    f = jax.jit(lambda x: _reversed_sum(dimension).bind(x * 2))
    found = f(jax.device_put(x, NamedSharding(mesh, spec)))
    np.testing.assert_array_equal(
        found, np.flip(np.cumsum(np.flip(2 * x, dimension), dimension), dimension)
    )


def test_unknown_ops_are_refused_by_name() -> None:
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = stablehlo.composite "chlo.new" %x {decomposition = @new} : (tensor<3xf32>) -> tensor<3xf32>
      return %0 : tensor<3xf32>
    }
    func.func private @new(%x: tensor<3xf32>) -> tensor<3xf32> { return %x : tensor<3xf32> }"""  # noqa: E501
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"chlo\.new: it is newer than the ops of"):
        jax_compat.load_program(text, jax.devices("ipu")[0])


@pytest.mark.parametrize(
    ("function", "x"),
    [(lax.erfc, np.float32([0.5])), (lax.sin, np.complex64([1 + 2j])), (lax.erf, np.float32([1]))],
)
def test_programs_exported_for_several_platforms(function: Any, x: np.ndarray) -> None:
    exported = jax.export.export(jax.jit(function), platforms=["ipu", "cpu"])(x)
    for platform in ("ipu", "cpu"):
        found = exported.call(jax.device_put(x, jax.devices(platform)[0]))
        np.testing.assert_allclose(found, jax.jit(function)(x), rtol=1e-5)


@pytest.mark.parametrize("function", [lax.sin, lax.cosh, lax.logistic, lambda z: z**-3, lax.atan])
def test_complex_functions_of_sharded_arrays(function: Any) -> None:
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("a",))
    z = (np.linspace(-2, 2, 8) + 1j * np.linspace(1, 3, 8)).astype(np.complex64)
    found = jax.jit(function)(jax.device_put(z, NamedSharding(mesh, P("a"))))
    assert found.sharding.spec == P("a")
    wanted = jax.jit(function)(jax.device_put(z, jax.devices("cpu")[0]))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
