"""Ops that JAX no longer writes: given as text, against JAX's CPU backend or plain NumPy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jaxlib import _jax

from ipujax import jax_compat
from tests.cases.case import array

MATRIX, OTHER = array((2, 3)), array((3, 4), low=-1)
IMAGE, VECTOR = array((2, 2, 3)), array((3,), low=0.5)
F = {"f4": "f32", "i4": "i32"}


def run(platform: str, text: str, *arguments: Any) -> list[np.ndarray]:
    device = jax.devices(platform)[0]
    options = _jax.CompileOptions()
    program = device.client.compile_and_load(text, _jax.DeviceList((device,)), options)
    results = program.execute_sharded([jax.device_put(a, device) for a in arguments])
    return [np.asarray(r[0]) for r in results.disassemble_into_single_device_arrays()]


def type_of(value: Any) -> str:
    value = np.asarray(value)
    return "tensor<" + "".join(f"{n}x" for n in value.shape) + F[value.dtype.str[1:]] + ">"


def module(body: str, arguments: tuple[Any, ...], results: str) -> str:
    """A program of one op on `arguments`, called %a, %b ...; `results` are the types of %0."""
    types = [type_of(a) for a in arguments]
    signature = ", ".join(f"%{'abcde'[i]}: {t}" for i, t in enumerate(types))
    count = len(results.split("|"))
    values = ", ".join(f"%0#{i}" for i in range(count)) if count > 1 else "%0"
    results = ", ".join(results.split("|"))
    body = body.format(args="(" + ", ".join(types) + ")", results=f"({results})")
    return (
        f"func.func @main({signature}) -> ({results}) {{\n{body}\nreturn {values} : {results}\n}}"
    )


def op(name: str, attributes: str, arguments: int, results: int = 1) -> str:
    operands = ", ".join(f"%{letter}" for letter in "abcde"[:arguments])
    left = "%0" if results == 1 else f"%0:{results}"
    return f'{left} = "stablehlo.{name}"({operands}) {{{{{attributes}}}}} : {{args}} -> {{results}}'


def einsum(config: str, *arguments: Any, shape: str) -> Any:
    name = "einsum" if len(arguments) == 2 else "unary_einsum"
    body = op(name, f'einsum_config = "{config}"', len(arguments))
    wanted = np.einsum(config, *arguments)
    return pytest.param(body, arguments, shape, [wanted], id=f"{name} {config}")


def constant(name: str, values: str, shape: str) -> str:
    return f"%{name} = stablehlo.constant dense<{values}> : tensor<{shape}xi64>\n"


BY_FORMULA = [
    einsum("ij->j", MATRIX, shape="tensor<3xf32>"),
    einsum("ij->ji", MATRIX, shape="tensor<3x2xf32>"),
    einsum("ii->i", MATRIX[:, :2], shape="tensor<2xf32>"),
    einsum("ii->", MATRIX[:, :2], shape="tensor<f32>"),
    einsum("ij,jk->ik", MATRIX, OTHER, shape="tensor<2x4xf32>"),
    einsum("ij,jk->ki", MATRIX, OTHER, shape="tensor<4x2xf32>"),
    einsum("bij,bik->kb", IMAGE, IMAGE, shape="tensor<3x2xf32>"),
    einsum("ij,kl->jl", MATRIX, OTHER, shape="tensor<3x4xf32>"),
    einsum("...ij,jk->...ik", IMAGE, OTHER, shape="tensor<2x2x4xf32>"),
    einsum(
        "...ij,...jk->...ik",
        np.stack([IMAGE, IMAGE + 1, IMAGE - 1]),
        np.stack([OTHER, OTHER + 1]),
        shape="tensor<3x2x2x4xf32>",
    ),
    pytest.param(
        constant("s", "[2, 3]", "2")
        + '%0 = "stablehlo.dynamic_iota"(%s) {{iota_dimension = 1 : i64}} '
        ": (tensor<2xi64>) -> tensor<?x?xf32>",
        (),
        "tensor<?x?xf32>",
        [np.array([[0, 1, 2], [0, 1, 2]], np.float32)],
        id="dynamic_iota",
    ),
    pytest.param(
        constant("s", "[3, 2]", "2") + '%0 = "stablehlo.dynamic_reshape"(%a, %s) '
        ": (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>",
        (MATRIX,),
        "tensor<?x?xf32>",
        [MATRIX.reshape(3, 2)],
        id="dynamic_reshape",
    ),
    pytest.param(
        constant("s", "[[1, 0], [0, 1]]", "2x2") + '%0 = "stablehlo.dynamic_conv"(%a, %b, %s) '
        "{{dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
        "feature_group_count = 1 : i64, batch_group_count = 1 : i64}} "
        ": (tensor<1x2x2x1xf32>, tensor<1x1x1x1xf32>, tensor<2x2xi64>) -> tensor<1x3x3x1xf32>",
        (np.array([[1, 2], [3, 4]], "f4").reshape(1, 2, 2, 1), np.full((1, 1, 1, 1), 2, "f4")),
        "tensor<1x3x3x1xf32>",
        [np.array([[0, 0, 0], [2, 4, 0], [6, 8, 0]], "f4").reshape(1, 3, 3, 1)],
        id="dynamic_conv",
    ),
]

STATISTICS = "epsilon = 0.001 : f32, feature_index = 2 : i64"
NORMAL = "tensor<2x2x3xf32>"
BY_CPU = {
    "broadcast": (
        op("broadcast", "broadcast_sizes = array<i64: 4, 1>", 1), (MATRIX,), "tensor<4x1x2x3xf32>",
    ),
    "dot": (op("dot", "", 2), (MATRIX, OTHER), "tensor<2x4xf32>"),
    "dot of vectors": (op("dot", "", 2), (VECTOR, VECTOR), "tensor<f32>"),
    "torch_index_select": (
        op("torch_index_select", "dim = 1 : i64, batch_dims = 1 : i64", 2),
        (IMAGE, np.array([[1], [0]], "i4")), "tensor<2x1x3xf32>",
    ),
    "map": (
        '%0 = "stablehlo.map"(%a, %b) ({{{{ ^bb0(%x: tensor<f32>, %y: tensor<f32>): '
        "%1 = stablehlo.multiply %x, %y : tensor<f32> %2 = stablehlo.tanh %1 : tensor<f32> "
        "stablehlo.return %2 : tensor<f32> }}}}) {{{{dimensions = array<i64: 0, 1>}}}} "
        ": {args} -> {results}".replace("{{{{", "{{").replace("}}}}", "}}"),
        (MATRIX, MATRIX + 1), "tensor<2x3xf32>",
    ),
    "tuple": (
        "%t = stablehlo.tuple %a, %b : tuple<tensor<2x3xf32>, tensor<3x4xf32>>\n"
        "%0 = stablehlo.get_tuple_element %t[1] "
        ": (tuple<tensor<2x3xf32>, tensor<3x4xf32>>) -> tensor<3x4xf32>",
        (MATRIX, OTHER), "tensor<3x4xf32>",
    ),
    "batch_norm_inference": (
        op("batch_norm_inference", STATISTICS, 5), (IMAGE, VECTOR, VECTOR, VECTOR, VECTOR), NORMAL,
    ),
    "batch_norm_training": (
        op("batch_norm_training", STATISTICS, 3, 3), (IMAGE, VECTOR, VECTOR),
        f"{NORMAL}|tensor<3xf32>|tensor<3xf32>",
    ),
    "batch_norm_grad": (
        op("batch_norm_grad", STATISTICS, 5, 3), (IMAGE, VECTOR, VECTOR, VECTOR, IMAGE + 1),
        f"{NORMAL}|tensor<3xf32>|tensor<3xf32>",
    ),
    "dynamic_broadcast_in_dim": (
        constant("s", "[4, 2, 3]", "3") + '%0 = "stablehlo.dynamic_broadcast_in_dim"(%a, %s) '
        "{{broadcast_dimensions = array<i64: 1, 2>}} "
        ": (tensor<2x3xf32>, tensor<3xi64>) -> tensor<4x2x3xf32>",
        (MATRIX,), "tensor<4x2x3xf32>",
    ),
    "dynamic_pad": (
        constant("l", "[0, 1]", "2") + constant("h", "[2, -1]", "2") + constant("i", "[1, 0]", "2")
        + "%p = stablehlo.constant dense<7.0> : tensor<f32>\n"
        '%0 = "stablehlo.dynamic_pad"(%a, %p, %l, %h, %i) : (tensor<2x3xf32>, tensor<f32>, '
        "tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<5x3xf32>",
        (MATRIX,), "tensor<5x3xf32>",
    ),
    "real_dynamic_slice": (
        constant("s", "[0, 1]", "2") + constant("l", "[2, 4]", "2") + constant("t", "[1, 2]", "2")
        + '%0 = "stablehlo.real_dynamic_slice"(%b, %s, %l, %t) : (tensor<3x4xf32>, '
        "tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x2xf32>",
        (MATRIX, OTHER), "tensor<2x2xf32>",
    ),
    "get_dimension_size": (op("get_dimension_size", "dimension = 1 : i64", 1), (MATRIX,),
                           "tensor<i32>"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "arguments", "results", "wanted"), BY_FORMULA)
def test_against_numpy(body: str, arguments: Any, results: str, wanted: Any) -> None:
    found = run("ipu", module(body, arguments, results), *arguments)
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BY_CPU)
def test_against_the_cpu(name: str) -> None:
    body, arguments, results = BY_CPU[name]
    text = module(body, arguments, results)
    found, wanted = (run(platform, text, *arguments) for platform in ("ipu", "cpu"))
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def random_numbers(distribution: str, dtype: str, low: str, high: str) -> np.ndarray:
    text = f"""func.func @main() -> tensor<100x100x{dtype}> {{
      %a = stablehlo.constant dense<{low}> : tensor<{dtype}>
      %b = stablehlo.constant dense<{high}> : tensor<{dtype}>
      %s = stablehlo.constant dense<[100, 100]> : tensor<2xi64>
      %0 = stablehlo.rng %a, %b, %s, distribution = {distribution}
        : (tensor<{dtype}>, tensor<{dtype}>, tensor<2xi64>) -> tensor<100x100x{dtype}>
      return %0 : tensor<100x100x{dtype}>
    }}"""
    return run("ipu", text)[0].astype(np.float64)


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_rng_of_floats_has_its_bounds_and_moments(dtype: str) -> None:
    numbers = random_numbers("UNIFORM", dtype, "-1.0", "3.0")
    assert -1 <= numbers.min() < -0.9
    assert 2.9 < numbers.max() < 3
    assert abs(numbers.mean() - 1) < 0.05
    assert abs(numbers.std() - 4 / 12**0.5) < 0.05
    numbers = random_numbers("NORMAL", dtype, "-1.0", "3.0")
    assert abs(numbers.mean() + 1) < 0.1
    assert abs(numbers.std() - 3) < 0.1


def test_rng_of_integers_reaches_all_but_the_upper_bound() -> None:
    numbers = random_numbers("UNIFORM", "i32", "-2", "3")
    values, counts = np.unique(numbers, return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert counts.min() > 1800


def test_shape_that_only_a_running_program_has_is_refused_by_name() -> None:
    text = """func.func @main(%a: tensor<6xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
      %0 = stablehlo.dynamic_reshape %a, %s : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
      return %0 : tensor<?x?xf32>
    }"""
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"UNIMPLEMENTED(.|\n)*dynamic_reshape"):
        run("ipu", text, array((6,)), np.array([2, 3], "i4"))


@pytest.mark.parametrize(("pairs", "factor"), [("[[0, 0]]", 1), ("", 0)])
def test_one_device_permutes_with_itself_or_receives_zeros(pairs: str, factor: float) -> None:
    count = 1 if pairs else 0
    dense = f"dense<{pairs}>" if pairs else "dense<>"
    text = f"""func.func @main(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {{
      %0 = "stablehlo.collective_permute"(%a) {{
        source_target_pairs = {dense} : tensor<{count}x2xi64>,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>
      }} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }}"""
    np.testing.assert_array_equal(run("ipu", text, MATRIX)[0], factor * MATRIX)


def test_scan_of_chlo_needs_no_refinement() -> None:
    """XLA's CPU backend ends the process over it (jaxlib 0.10.2): NumPy is the oracle."""
    text = """func.func @main(%a: tensor<5x3xf32>) -> tensor<5x3xf32> {
      %z = stablehlo.constant dense<0.0> : tensor<3xf32>
      %0:2 = chlo.scan (%a) inits (%z) dimension=0 attributes {is_associative=true} {
        ^bb0(%x: tensor<3xf32>, %c: tensor<3xf32>):
          %s = stablehlo.add %x, %c : tensor<3xf32>
          stablehlo.return %s, %s : tensor<3xf32>, tensor<3xf32>
      } : (tensor<5x3xf32>, tensor<3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>)
      return %0#0 : tensor<5x3xf32>
    }"""
    a = np.arange(15, dtype=np.float32).reshape(5, 3)
    (found,) = jax_compat.load_program(text, jax.devices("ipu")[0])([a])
    np.testing.assert_allclose(found, np.cumsum(a, 0))
