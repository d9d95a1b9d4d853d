"""Operations whose graph the user's C++ builds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import ipujax as ipu
from ipujax.errors import ConfigError

BUILD = """
poplar::program::Program {name}(poplar::Graph& graph, const std::vector<poplar::Tensor>& inputs,
                                std::vector<poplar::Tensor>& outputs,
                                const std::string& attributes, const std::string& prefix) {{
  poplar::program::Sequence sequence;
  {body}
  return sequence;
}}
"""
SOURCE = (
    """
#include <map>
#include <poplar/Graph.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/ScaledAdd.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

extern "C" {
std::int32_t custom_op_api_level = 5;
"""
    + BUILD.format(
        name="Build",
        body="outputs.push_back(popops::mul(graph, inputs[0], inputs[1], sequence, prefix));",
    )
    + BUILD.format(
        name="InPlace",
        body="""
  popops::scaledAddTo(graph, inputs[0], inputs[1], std::stof(attributes), sequence, prefix);
  outputs.push_back(inputs[0]);""",
    )
    + BUILD.format(
        name="Views",  # of an input, twice: the same elements
        body="outputs = {inputs[0].flatten(), inputs[0].flatten()};",
    )
    + BUILD.format(
        name="Placed",
        body="""
  if (graph.getTileMapping(inputs[1]).at(7).empty()) throw poputil::poplibs_error("not there");
  outputs.push_back(popops::add(graph, inputs[0], inputs[1], sequence, prefix));""",
    )
    + BUILD.format(name="Throws", body='throw poputil::poplibs_error("no " + attributes);')
    + BUILD.format(name="ThrowsText", body="throw 3;")
    + BUILD.format(name="Empty", body="outputs.resize(1);")
    + """
void InPlace_metadata(std::vector<std::int64_t>&, std::vector<std::int64_t>&,
                      std::map<std::int64_t, std::int64_t>& aliases, bool&, bool&, bool&,
                      std::uint32_t) {
  aliases = {{0, 0}};
}
void Placed_metadata(std::vector<std::int64_t>& allocating, std::vector<std::int64_t>&,
                     std::map<std::int64_t, std::int64_t>&, bool&, bool&, bool&, std::uint32_t n) {
  allocating = {n - 1};
}
poplar::Tensor Placed_allocator(poplar::Graph& graph, std::uint32_t operand,
                                const std::vector<std::size_t>& shape, poplar::Type type,
                                const std::string&, const std::string& prefix) {
  if (operand != 1) throw poputil::poplibs_error("only the second");
  const poplar::Tensor t = graph.addVariable(type, shape, prefix);
  graph.setTileMapping(t, 7);
  return t;
}
poplar::program::Program Build_grad(
    poplar::Graph& graph, int input, const std::vector<poplar::Tensor>& gradients,
    const std::vector<poplar::Tensor>& inputs, const std::vector<poplar::Tensor>& results,
    std::vector<poplar::Tensor>& outputs, const std::string& attributes,
    const std::string& prefix) {
  poplar::program::Sequence sequence;
  if (results[0].shape() != inputs[0].shape()) throw poputil::poplibs_error("order");
  outputs.push_back(popops::mul(graph, gradients[0], inputs[1 - input], sequence, prefix));
  if (attributes == "joint")
    outputs.push_back(popops::mul(graph, gradients[0], inputs[0], sequence, prefix));
  return sequence;
}
}
"""
)


def op(name: str = "Build", outputs: Any = lambda x, *_: x, **options: Any) -> Any:
    return ipu.custom_op(SOURCE, name, outputs, **options)


@pytest.fixture
def pair() -> tuple[jax.Array, jax.Array]:
    return tuple(jax.random.normal(jax.random.key(i), (5, 7)) for i in range(2))


def test_a_function_adds_to_the_graph(pair) -> None:
    for call in (op(), jax.jit(op())):
        np.testing.assert_array_equal(call(*pair), pair[0] * pair[1])
    half = [x.astype(jnp.float16) for x in pair]
    np.testing.assert_array_equal(op()(*half), half[0] * half[1])


def test_what_is_in_place_leaves_the_arguments(pair) -> None:
    x, y = pair
    add = op("InPlace", attributes="2.0")
    found, kept = jax.jit(lambda x, y: (add(x, y), x + 0))(x, y)
    np.testing.assert_allclose(found, x + 2 * y, rtol=1e-6)
    np.testing.assert_array_equal(kept, x)
    sums = jax.jit(lambda x, y: jax.lax.fori_loop(0, 3, lambda _, x: add(x, y), x))(x, y)
    np.testing.assert_allclose(sums, x + 6 * y, rtol=1e-5)


def test_results_have_elements_of_their_own(pair) -> None:
    x, y = pair
    flat = jax.ShapeDtypeStruct((35,), jnp.float32)
    views = op("Views", (flat, flat))

    def f(x, y):
        a, b = views(x)
        return a.at[0].set(9.0), b.at[1].set(8.0), x + y

    a, b, total = jax.jit(f)(x, y)
    np.testing.assert_array_equal(a, x.ravel().at[0].set(9.0))
    np.testing.assert_array_equal(b, x.ravel().at[1].set(8.0))
    np.testing.assert_array_equal(total, x + y)


def test_an_allocator_places_an_input(pair) -> None:
    np.testing.assert_array_equal(op("Placed")(*pair), pair[0] + pair[1])


@pytest.mark.parametrize("kind", ["separate", "joint"])
def test_gradients(kind: str, pair) -> None:
    mul = op(gradients=kind, gradient_attributes=kind)
    loss = lambda f: lambda x, y: (jnp.sin(f(x, y)) ** 2).sum()  # noqa: E731
    wanted = jax.grad(loss(jnp.multiply), (0, 1))(*pair)
    for call in (jax.grad(loss(mul), (0, 1)), jax.jit(jax.grad(loss(mul), (0, 1)))):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), call(*pair), wanted)


def test_inputs_without_gradients_have_zeros(pair) -> None:
    mul = op(gradients="separate", inputs_with_gradients=[1])
    gradients = jax.grad(lambda x, y: mul(x, y).sum(), (0, 1))(*pair)
    np.testing.assert_array_equal(gradients[0], np.zeros((5, 7)))
    np.testing.assert_array_equal(gradients[1], pair[0])


def test_vmap_by_loop_and_by_rule(pair) -> None:
    x, y = pair
    mul = op(gradients="separate")
    np.testing.assert_array_equal(jax.vmap(mul)(x, y), x * y)
    np.testing.assert_array_equal(jax.vmap(mul, (0, None))(x, y[0]), x * y[0])
    gradient = jax.vmap(jax.grad(lambda x, y: mul(x, y).sum()), (0, None))(x, y[0])
    np.testing.assert_array_equal(gradient, jnp.broadcast_to(y[0], x.shape))
    seen = []

    def rule(axis_size: int, in_batched: Any, x: jax.Array, y: jax.Array) -> Any:
        seen.append((axis_size, in_batched))
        return op()(x, y), True

    np.testing.assert_array_equal(jax.vmap(op(vmap=rule))(x, y), x * y)
    assert seen[0][0] == 5


def test_attributes_are_text_or_json() -> None:
    body = """
  poplar::Tensor t = graph.addConstant(poplar::FLOAT, {1}, float(attributes.size()));
  graph.setTileMapping(t, 0);
  poplar::Tensor made = graph.clone(t);
  sequence.add(poplar::program::Copy(t, made));
  outputs.push_back(made);"""
    source = SOURCE.replace(
        'extern "C" {', 'extern "C" {' + BUILD.format(name="Size", body=body), 1
    )
    one = jax.ShapeDtypeStruct((1,), jnp.float32)
    given = {"floats": [1.0, -2.5], "int": -3, "text": 'a "quoted" \\ end', "list": ["a", "b"]}
    for attributes, wanted in (("abc", 3), (given, len(json.dumps(given))), (None, 0)):
        size = ipu.custom_op(source, "Size", one, attributes=attributes)
        assert size().tolist() == [wanted]
    with pytest.raises(ConfigError, match="numbers, text and lists"):
        op(attributes={"x": object()})


def test_files_and_compiled_libraries(tmp_path: Path, pair) -> None:
    (tmp_path / "factor.hpp").write_text("constexpr float kFactor = 3;\n")
    body = "outputs.push_back(popops::mul(graph, inputs[0], kFactor, sequence));"
    head = SOURCE[: SOURCE.index("std::int32_t")].replace(
        "#include <map>", '#include <map>\n#include "factor.hpp"'
    )
    file = tmp_path / "triple.cpp"
    file.write_text(head + BUILD.format(name="Triple", body=body) + "}\n")
    triple = ipu.custom_op(file, "Triple", lambda x: x)
    np.testing.assert_array_equal(triple(pair[0]), 3 * pair[0])
    built = tmp_path / "libtriple.so"
    command = ["c++", "-std=c++17", "-shared", "-fPIC", "-isystem", ipu.get_include()]
    subprocess.run([*command, str(file), "-o", str(built)], check=True)
    found = ipu.custom_op(str(built), "Triple", lambda x: x)(pair[0])
    np.testing.assert_array_equal(found, 3 * pair[0])
    whole = built.read_bytes()
    for size in (50, 100, len(whole) // 4, len(whole) // 2):
        (tmp_path / "libcut.so").write_bytes(whole[:size])
        with pytest.raises(Exception, match=r"needs a (whole )?library"):
            ipu.custom_op(tmp_path / "libcut.so", "Triple", lambda x: x)(pair[0])


def test_libraries_that_cannot_be_loaded(tmp_path: Path, pair) -> None:
    path = tmp_path / "lib.so"
    path.write_bytes(b"no library")
    with pytest.raises(
        Exception, match=r"\[custom_op\] needs a library that can be loaded.*header"
    ):
        ipu.custom_op(path, "Build", lambda x, y: x)(*pair)
    missing = (
        'extern "C" int absent_function();\nextern "C" int Build() { return absent_function(); }\n'
    )
    with pytest.raises(Exception, match="absent_function"):
        ipu.custom_op(missing, "Build", lambda x, y: x)(*pair)
    newer = SOURCE.replace("level = 5", "level = 6")
    with pytest.raises(Exception, match=r"custom_op_api_level from 0 to 5; got 6"):
        ipu.custom_op(newer, "Build", lambda x, y: x)(*pair)


@pytest.mark.parametrize(
    ("name", "outputs", "message"),
    [
        ("Nothing", (5, 7), "needs the function Nothing in the library; found none"),
        ("Throws", (5, 7), "Throws threw: no way"),
        ("ThrowsText", (5, 7), "ThrowsText threw what is no std::exception"),
        ("Empty", (5, 7), "needs tensors of a graph from Empty; got an empty"),
        ("Build", (7, 5), r"output 0 of Build to be float \[7, 5\].*got float \[5, 7\]"),
        ("Views", (35,), "needs 1 outputs from Views; got 2"),
    ],
)
def test_what_functions_do_wrong(name: str, outputs: Any, message: str, pair) -> None:
    wrong = op(name, jax.ShapeDtypeStruct(outputs, jnp.float32), attributes="way")
    with pytest.raises(Exception, match=message) as caught:
        jax.jit(wrong)(*pair)
    assert "INVALID_ARGUMENT" in str(caught.value)
    np.testing.assert_array_equal(op()(*pair), pair[0] * pair[1])  # and all goes on


ENDING = """
#include <cstdlib>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
using namespace poplar;
extern "C" std::int32_t custom_op_api_level = 5;
static int deep(volatile int* x) {
  volatile int place[100];
  place[0] = *x;
  return deep(place) + place[1];
}
extern "C" program::Program Build(Graph&, const std::vector<Tensor>& inputs,
                                  std::vector<Tensor>& outputs, const std::string& attributes,
                                  const std::string&) {
  volatile int zero = 0, *nowhere = nullptr;
  if (attributes == "aborts") std::abort();
  if (attributes == "divides") zero = 7 / zero;
  if (attributes == "writes") *nowhere = 1;
  if (attributes == "recurses") zero = deep(&zero);
  outputs.push_back(inputs[0]);
  return program::Sequence();
}
"""


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("aborts", r"Build to return; it calls abort\(\)"),
        ("divides", "Build to return; it divides an integer by zero"),
        ("writes", "Build to return; it reads or writes memory that is not there"),
        ("recurses", "Build to return; it needs more stack"),
    ],
)
def test_what_would_end_the_process(attributes: str, message: str, pair) -> None:
    def call(attributes: str) -> Any:
        return ipu.custom_op(ENDING, outputs=lambda x: x, attributes=attributes)(pair[0])

    with pytest.raises(Exception, match=message):
        call(attributes)
    np.testing.assert_array_equal(call("returns"), pair[0])  # and all goes on


def test_constructors_of_libraries_are_guarded(pair) -> None:
    failing = ENDING + "static const struct Ends { Ends() { std::abort(); } } ends;\n"
    with pytest.raises(Exception, match="a constructor of the library to return; it calls abort"):
        ipu.custom_op(failing, outputs=lambda x: x)(pair[0])


def test_sources_that_do_not_compile(pair) -> None:
    with pytest.raises(Exception, match=r"(?s)needs C\+\+ that compiles.*undeclared_thing"):
        ipu.custom_op("int x =\nundeclared_thing;\n", outputs=lambda x, y: x)(*pair)


def test_bad_arguments(pair) -> None:
    with pytest.raises(ConfigError, match="gradients to be one of separate, joint; got 'all'"):
        op(gradients="all")
    with pytest.raises(ConfigError, match="path of a C\\+\\+ file or of a shared library"):
        ipu.custom_op("/no/such/library.so", outputs=())
    with pytest.raises(ConfigError, match="outputs with shape and dtype"):
        op(outputs=3)(*pair)
    with pytest.raises(ConfigError, match="got bfloat16 for input 1"):
        op()(pair[0], pair[1].astype(jnp.bfloat16))
    with pytest.raises(ConfigError, match="needs a gradient of Build; got none"):
        jax.grad(lambda x: op()(x, pair[1]).sum())(pair[0])
    mul = op(gradients="separate")
    with pytest.raises(ConfigError, match="take derivatives once"):
        jax.grad(lambda x: jax.grad(lambda x: mul(x, pair[1]).sum())(x).sum())(pair[0])
    with pytest.raises(ConfigError, match=r"inputs of float dtypes, of \[0, 1\]; got \[2\]"):
        jax.grad(lambda x: op(gradients="joint", inputs_with_gradients=[2])(x, pair[1]).sum())(
            pair[0]
        )
    with pytest.raises(ConfigError, match="needs an IPU for Build"):
        jax.jit(op()).trace(*pair).lower(lowering_platforms=("cpu",))


def test_replicas(pair) -> None:
    devices = jax.devices()
    mesh = Mesh(np.array(devices[:1]), "r")
    spread = jax.shard_map(op(), mesh=mesh, in_specs=P("r"), out_specs=P("r"))
    np.testing.assert_array_equal(jax.jit(spread)(*pair), pair[0] * pair[1])


def test_stages_of_a_pipeline(pair) -> None:
    x, y = (jnp.tile(a[0], (4, 1)) for a in pair)
    mul = op(gradients="separate")

    stages = [lambda w, x: mul(x, w), lambda _, h: jnp.mean(jnp.tanh(h))]
    pipelined = ipu.pipeline(stages, micro_batches=4, reduction="mean", device_mapping=[0, 0])
    wanted = jax.grad(lambda w: jnp.mean(jnp.tanh(x * w)))(y[0])
    found = jax.jit(jax.grad(lambda w: pipelined([w, None], x)))(y[0])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


def test_programs_bring_no_native_code(run_python, tmp_path: Path, pair) -> None:
    """Only what a process declares runs there."""
    exported = jax.export.export(
        jax.jit(op()),
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call("ipu_custom_op")],
    )(*pair)
    (tmp_path / "program").write_bytes(exported.serialize())
    script = tmp_path / "load.py"
    script.write_text(
        "import sys, jax, jax.export, jax.numpy as jnp\n"
        "call = jax.export.deserialize(bytearray(open(sys.argv[1], 'rb').read())).call\n"
        "print(jax.jit(call)(jnp.ones((5, 7)), jnp.ones((5, 7))))\n"
    )
    run = run_python(script, str(tmp_path / "program"))
    assert run.returncode != 0
    assert "needs the library of 'Build' declared by this process" in run.stderr


def test_places_are_the_users(pair) -> None:
    report = ipu.report(lambda x, y: op()(x, y) + 0 * x, *pair)
    assert {step.source.split(":")[0] for step in report.steps} == {"test_custom_op.py"}


def test_a_temporary_folder_that_is_not_there(monkeypatch: pytest.MonkeyPatch, pair) -> None:
    monkeypatch.setenv("TMPDIR", "/no/such/folder")
    other = ipu.custom_op(SOURCE + "// again", outputs=lambda x, y: x)
    with pytest.raises(Exception, match="needs a writable temporary folder; got /no/such/folder"):
        other(*pair)
