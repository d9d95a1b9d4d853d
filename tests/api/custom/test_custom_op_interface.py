"""The C++ interface of custom ops, as sources that others wrote for TensorFlow use it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError
from tests.api.deploy.precompiled import compiler_with

HEADERS = """
#include <map>
#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Tensor.hpp>
#include <poputil/Util.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>
"""
TENSORS = "const std::vector<poplar::Tensor>&"
INDICES = "std::vector<std::int64_t>&"
ALIASES = "std::map<std::int64_t, std::int64_t>& aliases"


def function(name: str, body: str, attributes: bool = True) -> str:
    text = "const std::string& attributes, " if attributes else ""
    return f"""
extern "C" poplar::program::Program {name}(
    poplar::Graph& graph, {TENSORS} inputs, std::vector<poplar::Tensor>& outputs,
    {text}const std::string& debug_prefix) {{
  poplar::program::Sequence prog;
  {body}
  return prog;
}}
"""


def gradient(name: str, body: str, attributes: bool = True) -> str:
    text = "const std::string& attributes, " if attributes else ""
    return f"""
extern "C" poplar::program::Program {name}(
    poplar::Graph& graph, int input, {TENSORS} gradients, {TENSORS} fwd_inputs,
    {TENSORS} fwd_outputs, std::vector<poplar::Tensor>& outputs, {text}const std::string& prefix) {{
  poplar::program::Sequence prog;
  {body}
  return prog;
}}
"""


def metadata(level: int, name: str, allocating: str = "{}", in_place: int = 0) -> str:
    """What a library of this level says: the first inputs are overwritten."""
    flags = ["elementwise"] + ["stateless"] * (level >= 1) + ["hashable"] * (level >= 3)
    identical = f"{INDICES} identical, " if level >= 5 else ""
    if level < 3:
        said, body = "std::uint32_t& num_inplace", f"num_inplace = {in_place};"
    else:
        said = ALIASES
        body = "".join(f"aliases[{i}] = {i};" for i in range(in_place))
    booleans = "".join(f", bool& {flag}" for flag in flags)
    return f"""
extern "C" void {name}_metadata({INDICES} allocating, {identical}{said}{booleans},
                                std::uint32_t num_inputs) {{
  if (num_inputs > 64) throw poputil::poplibs_error("no such number of inputs");
  allocating = {allocating};
  {body}
}}
"""


def level_of(level: int) -> str:
    return f'extern "C" {{\nint32_t custom_op_api_level = {level};\n}}\n'


@pytest.fixture(scope="module", autouse=True)
def precompiled_headers() -> Iterator[None]:
    yield from compiler_with(HEADERS)


@pytest.fixture
def pair() -> tuple[jax.Array, jax.Array]:
    return tuple(jax.random.normal(jax.random.key(i), (5, 7)) for i in range(2))


@pytest.mark.parametrize("level", [0, 1, 2, 3, 4, 5])
def test_every_level_says_what_it_overwrites(level: int, pair) -> None:
    body = "popops::addInPlace(graph, inputs[0], inputs[1], prog); outputs.push_back(inputs[0]);"
    has_attributes = level >= 2
    source = HEADERS + (level_of(level) if level else "")
    source += function("Build", body, has_attributes) + metadata(level, "Build", in_place=1)
    add = ipu.custom_op(source, outputs=lambda x, y: x)
    x, y = pair

    def f(x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        h = jnp.sort(x)
        return add(h, y), jnp.cumsum(h, 0)

    found, kept = jax.jit(f)(x, y)
    np.testing.assert_allclose(found, np.sort(x) + y, rtol=1e-6)
    np.testing.assert_allclose(kept, np.cumsum(np.sort(x), 0), rtol=1e-5)
    np.testing.assert_array_equal(add(x, y), x + y)


@pytest.mark.parametrize("level", [0, 1, 2, 5])
def test_every_level_allocates_and_has_gradients(level: int, pair) -> None:
    has_attributes = level >= 2
    more = ", const std::string&, const std::string&" if has_attributes else ""
    source = (
        HEADERS
        + level_of(level)
        + function(
            "Build",
            "if (graph.getTileMapping(inputs[1]).at(7).empty())"
            '  throw poputil::poplibs_error("not there");'
            "outputs.push_back(popops::mul(graph, inputs[0], inputs[1], prog));",
            has_attributes,
        )
        + metadata(level, "Build", allocating="{1}")
        + gradient(
            "Build_grad",
            "outputs.push_back(popops::mul(graph, gradients[0], fwd_inputs[1 - input], prog));",
            has_attributes,
        )
        + f"""
extern "C" poplar::Tensor Build_allocator(poplar::Graph& graph, std::uint32_t operand,
                                          const std::vector<size_t>& shape,
                                          poplar::Type type{more}) {{
  auto t = graph.addVariable(type, shape);
  graph.setTileMapping(t, 6 + operand);
  return t;
}}
"""
    )
    multiply = ipu.custom_op(source, outputs=lambda x, y: x, gradients="separate")
    np.testing.assert_array_equal(multiply(*pair), pair[0] * pair[1])
    found = jax.grad(lambda x, y: multiply(x, y).sum(), (0, 1))(*pair)
    np.testing.assert_array_equal(found, pair[::-1])


def test_a_gradient_may_overwrite_what_its_metadata_names(pair) -> None:
    source = (
        HEADERS
        + level_of(5)
        + function("Build", "outputs.push_back(popops::neg(graph, inputs[0], prog));")
        + gradient(
            "Build_grad",
            "popops::negInPlace(graph, gradients[0], prog); outputs.push_back(gradients[0]);",
        )
        + metadata(5, "Build_grad", in_place=1)
    )
    negate = ipu.custom_op(source, outputs=lambda x: x, gradients="separate")

    def f(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        _, pull = jax.vjp(negate, x)
        seed = jnp.sort(x)
        return pull(seed)[0], jnp.cumsum(seed, 0)

    found, kept = jax.jit(f)(pair[0])
    np.testing.assert_array_equal(found, -np.sort(pair[0]))
    np.testing.assert_allclose(kept, np.cumsum(np.sort(pair[0]), 0), rtol=1e-5)


def test_gradients_of_all_inputs_may_be_empty(pair) -> None:
    """Of integers, which have none, and of inputs that the op does not depend on."""
    source = (
        HEADERS
        + level_of(5)
        + function(
            "Build",
            "auto times = popops::cast(graph, inputs[1], poplar::FLOAT, prog);"
            "outputs.push_back(popops::mul(graph, inputs[0], times, prog));",
        )
        + gradient(
            "Build_grad",
            "outputs.resize(3);"
            "auto times = popops::cast(graph, fwd_inputs[1], poplar::FLOAT, prog);"
            "outputs[0] = popops::mul(graph, gradients[0], times, prog);",
        )
    )
    op = ipu.custom_op(source, outputs=lambda x, n, y: x, gradients="joint")
    n = jnp.full((5, 7), 3)
    of_x, of_y = jax.jit(jax.grad(lambda x, y: op(x, n, y).sum(), (0, 1)))(*pair)
    np.testing.assert_array_equal(of_x, np.full((5, 7), 3.0))
    np.testing.assert_array_equal(of_y, np.zeros((5, 7)))


CODELETS = """
#include "two.hpp"
#include <poplar/Vertex.hpp>
using namespace poplar;

template <typename T>
class AddTwice : public Vertex {
 public:
  Vector<Output<Vector<T>>> z;
  Vector<Input<Vector<T>>> x;
  Vector<Input<Vector<T>>> y;

  bool compute() {
    for (unsigned i = 0; i < z.size(); ++i)
      for (unsigned j = 0; j < z[i].size(); ++j) z[i][j] = x[i][j] + kTwo * y[i][j];
    return true;
  }
};
template class AddTwice<float>;
template class AddTwice<int>;
"""
#: Vertices on the tiles of the first input, one for each worker: the form of Graphcore's tutorials.
USES_CODELETS = function(
    "Build",
    """
  if (inputs[0].numElements() == 0) return poplar::program::Sequence();
  const auto type = inputs[0].elementType();
  auto cs = graph.addComputeSet(debug_prefix + "/AddTwice");
  const auto mapping = graph.getTileMapping(inputs[0]);
  const auto target = graph.getTarget();
  const auto width = target.getVectorWidth(type);
  outputs.push_back(graph.clone(inputs[0]));
  const auto x = inputs[0].flatten(), y = inputs[1].flatten(), z = outputs[0].flatten();
  for (unsigned tile = 0; tile != mapping.size(); ++tile) {
    if (mapping[tile].empty()) continue;
    const auto divided = poputil::splitRegionsBetweenWorkers(target, mapping[tile], width,
                                                             2 * width);
    for (const auto& regions : divided) {
      auto v = graph.addVertex(cs, poputil::templateVertex("AddTwice", type),
                               {{"z", z.slices(regions)}, {"x", x.slices(regions)},
                                {"y", y.slices(regions)}});
      graph.setTileMapping(v, tile);
      graph.setPerfEstimate(v, 1);
    }
  }
  prog.add(poplar::program::Execute(cs));
""",
)


def test_codelets_come_with_the_library(tmp_path: Path, pair) -> None:
    (tmp_path / "two.hpp").write_text("#pragma once\nconstexpr int kTwo = 2;\n")
    file = tmp_path / "codelets.cpp"
    file.write_text(CODELETS)
    source = HEADERS + level_of(5) + USES_CODELETS
    text = CODELETS.replace('#include "two.hpp"', "constexpr int kTwo = 2;")
    for codelets in (file, str(file), text, [file, "#include <poplar/Vertex.hpp>\n"]):
        add = ipu.custom_op(source, outputs=lambda x, y: x, codelets=codelets)
        np.testing.assert_allclose(jax.jit(add)(*pair), pair[0] + 2 * pair[1], rtol=1e-6)
    n = jnp.arange(35).reshape(5, 7)
    two_calls = jax.jit(lambda n: add(add(n, n), n))
    np.testing.assert_array_equal(two_calls(n), 5 * n)
    assert add(jnp.zeros((0, 3)), jnp.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(ConfigError, match=r"codelets as C\+\+ with line ends.*absent.gp"):
        ipu.custom_op(source, outputs=lambda x, y: x, codelets=tmp_path / "absent.gp")
    (tmp_path / "bad.gp").write_bytes(b"IPU code of another compiler")
    add = ipu.custom_op(source, outputs=lambda x, y: x, codelets=tmp_path / "bad.gp")
    with pytest.raises(Exception, match=r"needs a \.gp file of the IPU Model's popc"):
        add(*pair)
    with pytest.raises(Exception, match="needs a vertex type that addCodelets added"):
        ipu.custom_op(source, outputs=lambda x, y: x)(*pair)


def test_changed_headers_make_another_library(tmp_path: Path) -> None:
    """The digest covers them, by which JAX's cache knows a program."""
    (tmp_path / "factor.hpp").write_text("constexpr float kFactor = 3;\n")
    file = tmp_path / "op.cpp"
    multiply = "outputs.push_back(popops::mul(graph, inputs[0], kFactor, prog));"
    file.write_text('#include "factor.hpp"\n' + HEADERS + function("Build", multiply))
    x = jnp.arange(4.0)
    made = [ipu.custom_op(file, outputs=lambda x: x)(x)]
    declared = ipu.custom_op(file, outputs=lambda x: x, flags="-DLATER")
    (tmp_path / "factor.hpp").write_text("constexpr float kFactor = 5;\n")
    made.append(ipu.custom_op(file, outputs=lambda x: x)(x))
    np.testing.assert_array_equal(made, [3 * x, 5 * x])
    with pytest.raises(Exception, match=r"as it was declared; got changed files\. Call"):
        declared(x)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "size.hpp").write_text("constexpr float kFactor = 7;\n")
    text = '#include "size.hpp"\n' + HEADERS + function("Build", multiply)
    flags = f'-I "{tmp_path / "more"}"'
    np.testing.assert_array_equal(ipu.custom_op(text, outputs=lambda x: x, flags=flags)(x), 7 * x)
    (tmp_path / "more" / "size.hpp").write_text("constexpr float kFactor = 9;\n")
    np.testing.assert_array_equal(ipu.custom_op(text, outputs=lambda x: x, flags=flags)(x), 9 * x)


def test_libraries_for_other_layouts_are_refused(tmp_path: Path, pair) -> None:
    body = "outputs.push_back(popops::add(graph, inputs[0], inputs[1], prog, debug_prefix));"
    source = HEADERS + level_of(5) + function("Build", body)
    old = ipu.custom_op(source, outputs=lambda x, y: x, flags="-D_GLIBCXX_USE_CXX11_ABI=0")
    with pytest.raises(Exception, match=r"(?s)needs a library that can be loaded.*undefined"):
        old(*pair)
    (tmp_path / "op.c").write_text("int custom_op_api_level = 5;\n")
    small = tmp_path / "small.so"
    command = ["cc", "-shared", "-fPIC", "-o", str(small), str(tmp_path / "op.c")]
    subprocess.run(command, check=True)
    content = bytearray(small.read_bytes())
    content[18:20] = (40).to_bytes(2, "little")  # for ARM
    small.write_bytes(content)
    with pytest.raises(Exception, match="needs a library that can be loaded"):
        ipu.custom_op(small, outputs=lambda x, y: x)(*pair)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "popops::addInPlace(graph, inputs[0], inputs[1], prog);"
            "outputs.push_back(popops::neg(graph, inputs[1], prog));",
            r"needs Build to leave inputs alone .* got a program that writes to one\. Name it in",
        ),
        (
            "prog.add(poplar::program::Sequence({poplar::program::Repeat(3,"
            " poplar::program::Copy(inputs[1], inputs[0]))})); outputs.push_back(inputs[1]);",
            "needs Build to leave inputs alone",
        ),
        (
            "outputs.push_back(graph.addVariable(poplar::FLOAT, {5, 7}));"
            "prog.add(poplar::program::Copy(inputs[0], outputs[0]));",
            "output 0 of Build on tiles; got elements on no tile. Call setTileMapping",
        ),
        (
            "static poplar::Graph other(graph.getTarget());"
            "outputs.push_back(other.addVariable(poplar::FLOAT, {5, 7}));"
            "other.setTileMapping(outputs[0], 0);",
            "output 0 of Build to be a tensor of the graph that the function was given",
        ),
        (
            "outputs.push_back(inputs[0].reinterpret(poplar::UNSIGNED_INT));",
            r"output 0 of Build to be float \[5, 7\].*got unsigned int \[5, 7\]",
        ),
        ("outputs.push_back(inputs.at(7));", "Build threw: .*range"),
    ],
)
def test_what_functions_must_not_do(body: str, message: str, pair) -> None:
    wrong = ipu.custom_op(HEADERS + level_of(5) + function("Build", body), outputs=lambda x, y: x)
    with pytest.raises(Exception, match=message) as caught:
        jax.jit(lambda x, y: wrong(x + 1, y))(*pair)
    assert "INVALID_ARGUMENT" in str(caught.value)


def test_a_program_may_be_empty(pair) -> None:
    source = HEADERS + level_of(5) + function("Build", "outputs.push_back(inputs[0]); return {};")
    same = ipu.custom_op(source, outputs=lambda x, y: x)
    np.testing.assert_array_equal(same(*pair), pair[0])


def test_unsigned_tensors_are_allocated_for_signed_operands(pair) -> None:
    source = (
        HEADERS
        + level_of(5)
        + function(
            "Build",
            "if (graph.getTileMapping(inputs[1]).at(5).empty())"
            '  throw poputil::poplibs_error("not there");'
            "outputs.push_back(popops::add(graph, inputs[1], inputs[1], prog));",
        )
        + f"""
extern "C" void Build_metadata({INDICES} allocating, {INDICES}, {ALIASES}, bool&, bool&, bool&,
                               std::uint32_t) {{ allocating = {{1}}; }}
extern "C" poplar::Tensor Build_allocator(poplar::Graph& graph, std::uint32_t,
                                          const std::vector<std::size_t>& shape, poplar::Type,
                                          const std::string&, const std::string&) {{
  auto t = graph.addVariable(poplar::UNSIGNED_INT, shape);
  graph.setTileMapping(t, 5);
  return t;
}}
"""
    )
    values = jnp.asarray([3, -7, 2**31 - 1], jnp.int32)
    twice = ipu.custom_op(source, outputs=lambda x, y: y)(pair[0], values)
    np.testing.assert_array_equal(twice, np.asarray(values) * np.int32(2))


@pytest.mark.parametrize(
    ("said", "made", "message"),
    [
        ("aliases[0] = 4;", "graph.addVariable(type, shape)", r"outputs from 0 to 1 - 1 in Build_"),
        ("aliases[9] = 0;", "graph.addVariable(type, shape)", r"inputs from 0 to 2 - 1 in Build_"),
        ("allocating = {-1};", "graph.addVariable(type, shape)", "inputs from 0 to 2 - 1"),
        (
            "allocating = {0};",
            "graph.addVariable(type, {shape[1]}, poplar::VariableMappingMethod::LINEAR)",
            r"tensor of Build_allocator for input 0 to be float \{5,7\}; got float \{7\}",
        ),
        (
            "allocating = {0};",
            "graph.addVariable(poplar::INT, shape, poplar::VariableMappingMethod::LINEAR)",
            r"to be float \{5,7\}; got int \{5,7\}",
        ),
        ("allocating = {0};", "graph.addVariable(type, shape)", "got elements on no tile"),
    ],
)
def test_metadata_that_is_wrong(said: str, made: str, message: str, pair) -> None:
    body = "outputs.push_back(popops::add(graph, inputs[0], inputs[1], prog));"
    source = (
        HEADERS
        + level_of(5)
        + function("Build", body)
        + f"""
extern "C" void Build_metadata({INDICES} allocating, {INDICES}, {ALIASES}, bool&, bool&, bool&,
                               std::uint32_t) {{ {said} }}
extern "C" poplar::Tensor Build_allocator(poplar::Graph& graph, std::uint32_t,
                                          const std::vector<std::size_t>& shape, poplar::Type type,
                                          const std::string&, const std::string&) {{
  return {made};
}}
"""
    )
    with pytest.raises(Exception, match=message):
        ipu.custom_op(source, outputs=lambda x, y: x)(*pair)


TYPED = """
#include <popx/JsonAttributes.hpp>
"""


def test_attributes_are_typed_values() -> None:
    given: dict[str, Any] = {
        "float": np.float32(0.1),
        "floats": [1.0, -2.5, 1e-30],
        "int": -5,
        "ints": np.arange(3),
        "large": 2**63 - 1,
        "text": "string with quotes and slash \" ' \\ end",
        "texts": ["abc", "é", "\U0001f600"],
        "bool": True,
    }
    body = """
  const popx::JsonAttributes given(attributes);
  bool ok = given.get<float>("float") == 0.1f && given.get<int>("int") == -5;
  ok &= given.get<std::vector<double>>("floats") == std::vector<double>{1.0, -2.5, 1e-30};
  ok &= given.get<std::vector<unsigned>>("ints") == std::vector<unsigned>{0, 1, 2};
  ok &= given.get<std::int64_t>("large") == INT64_MAX && given.get<bool>("bool");
  ok &= given.get<std::string>("text") == "string with quotes and slash \\" ' \\\\ end";
  ok &= given.get<std::vector<std::string>>("texts") ==
        std::vector<std::string>{"abc", "\\u00e9", "\\U0001f600"};
  ok &= given.get<float>("absent", 2.5f) == 2.5f && !given.has("absent");
  if (!ok) throw poputil::poplibs_error("wrong values");
  given.get<int>(debug_prefix.empty() ? "int" : "text");
"""
    source = HEADERS + TYPED + level_of(5) + function("Build", body)
    one = jax.ShapeDtypeStruct((1,), jnp.float32)
    with pytest.raises(Exception, match=r"needs an integer for 'text'; got the text 'string"):
        ipu.custom_op(source, outputs=one, attributes=given)()
    for value in (float("nan"), float("inf")):
        with pytest.raises(ConfigError, match="finite numbers, text and lists"):
            ipu.custom_op(source, outputs=one, attributes={"x": value})


def test_results_that_are_not_hashable_are_not_confused(pair) -> None:
    """Calls that differ in their attributes alone are two operations."""
    body = """
  auto factor = graph.addConstant(poplar::FLOAT, {}, std::stof(attributes));
  graph.setTileMapping(factor, 0);
  outputs.push_back(popops::mul(graph, inputs[0], factor, prog));
"""
    source = HEADERS + level_of(5) + function("Build", body)
    double, triple = (
        ipu.custom_op(source, outputs=lambda x: x, attributes=text) for text in ("2", "3")
    )
    found = jax.jit(lambda x: (double(x), triple(x), double(x) + triple(x)))(pair[0])
    for made, factor in zip(found, (2, 3, 5), strict=True):
        np.testing.assert_allclose(made, factor * pair[0], rtol=1e-6)
