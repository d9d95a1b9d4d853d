"""The whole way from artifact to executable: stages, dumps, errors, speed, threads."""

from __future__ import annotations

import gc
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax import jax_compat
from ipujax._poplar import _poplar
from ipujax.compiler import ir
from ipujax.compiler.compile import compile_module
from ipujax.compiler.ir import verify
from ipujax.compiler.passes.refuse import refuse_unsupported
from ipujax.compiler.reader import read_program
from ipujax.compiler.rules.registry import RULES
from ipujax.compiler.stages import STAGES
from ipujax.errors import ConfigError, UnsupportedOpError, VerifyError
from tests.compiler.programs import artifact, normal, read

X = np.ones((4, 4), np.float32)


def compiled(f, *args, **options):
    return compile_module(artifact(f, *args, **options), b"", {})


def inspected(f, *args, **options):
    return _poplar.engine.inspectImage(compiled(f, *args, **options))


def test_an_elementwise_chain_is_one_step():
    steps = inspected(lambda x: jnp.tanh(x * 2 + 1) - x, X)["steps"]
    assert [step["kernel"] for step in steps] == ["popx.map"]


def test_steps_know_their_source_line():
    def f(x):
        return jnp.tanh(x) @ x

    line = f.__code__.co_firstlineno + 1
    steps = inspected(f, X)["steps"]
    assert {step["source"] for step in steps} == {f"test_compile.py:{line}"}
    assert any("dot_general" in step["name"] for step in steps)


def test_costs_are_counted():
    cost = inspected(lambda x, w: x @ w, np.ones((64, 32), "f4"), np.ones((32, 16), "f4"))["cost"]
    assert cost["flops"] == 2 * 64 * 32 * 16
    assert cost["cycles"] > 0


def _unknown_call(x):
    return jax.ffi.ffi_call("unknown", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def test_all_unsupported_ops_are_named_at_once_with_their_lines():
    def f(x):
        called = _unknown_call(x)
        return called, jax.ffi.ffi_call("nobody_knows", jax.ShapeDtypeStruct((3,), "f4"))(x)

    line = f.__code__.co_firstlineno
    with pytest.raises(UnsupportedOpError) as error:
        compiled(f, X)
    text = str(error.value)
    unknown = "custom_call @unknown: no target 'unknown' is registered for any platform; "
    unknown += "correct the name, or make it an op of IPUs with ipujax.custom_op"
    first = _unknown_call.__code__.co_firstlineno + 1
    assert f"{unknown} (at test_compile.py:{first})" in text
    nobody = unknown.replace("unknown", "nobody_knows")
    assert f"{nobody} (at test_compile.py:{line + 2})" in text


def test_bodies_that_are_no_arithmetic_are_refused_with_the_rest():
    program = normal(lambda x: lax.reduce(x, np.float32(0), lambda a, b: a + b * a, (0,)), X)
    (reduction,) = [op for op in program.main.ops if op.name == "reduce"]
    reduction.regions[0].ops[0].name = "sort"
    with pytest.raises(UnsupportedOpError, match="sort: the body of reduce may only compute"):
        refuse_unsupported(program)


def test_each_stage_writes_its_dump(tmp_path, monkeypatch):
    monkeypatch.setenv("IPUJAX_DUMP_DIR", str(tmp_path / "made"))
    compiled(lambda x: jnp.tanh(x @ x), X)
    files = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert [name.split(".")[1] for name in files] == list(STAGES)
    text = next((tmp_path / "made").glob("*.5_fuse.txt")).read_text()
    assert "fused(" in text
    assert "dot_general" in text


def test_an_unwritable_dump_folder_is_refused_with_its_name(tmp_path, monkeypatch):
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("IPUJAX_DUMP_DIR", str(blocker / "folder"))
    with pytest.raises(ConfigError, match="IPUJAX_DUMP_DIR"):
        compiled(lambda x: x + 1, X)


def test_a_dump_folder_that_vanishes_warns_once_and_the_compile_goes_on(tmp_path):
    from ipujax.compiler.dump import Dump

    folder = tmp_path / "gone"
    dump = Dump(str(folder), "f")
    folder.write_text("a file stands where the folder was")
    with pytest.warns(UserWarning, match=r"\[dump\] needs a writable folder"):
        dump.write("1_ingest", lambda: "text")
    dump.write("2_partition", lambda: "text")


def test_stages_are_announced_in_order():
    seen: list[str] = []
    compile_module(artifact(lambda x: x + 1, X), b"", {}, seen.append)
    assert seen == list(STAGES)


def test_verify_finds_a_value_used_before_it_is_defined():
    program = normal(lambda x: jnp.tanh(x @ x), X)
    program.main.ops.reverse()
    with pytest.raises(VerifyError, match=r"\[verify after 6_schedule\].*defined before use"):
        verify.verify(program, "6_schedule")


def test_verify_finds_an_illegal_constant():
    program = normal(lambda x: x + 1, X)
    op = program.main.ops[0]
    op.operands[1] = ir.Value((4, 4), "f32", const=np.ones((4, 4), np.float64))
    with pytest.raises(VerifyError, match="a constant"):
        verify.check_shapes(program, "3_normalise")


def test_several_replicas_are_refused():
    from jaxlib import _jax

    options = _jax.CompileOptions()
    options.num_replicas = 4
    with pytest.raises(UnsupportedOpError, match="a program of 4 replicas"):
        compile_module(artifact(lambda x: x + 1, X), options.SerializeAsString(), {})


def test_the_collector_is_on_again_after_compiles_and_errors():
    assert gc.isenabled()
    compiled(lambda x: x + 1, X)
    with pytest.raises(UnsupportedOpError):
        compiled(_unknown_call, X)
    assert gc.isenabled()


def test_one_program_is_always_the_same_bytes():
    """Whatever was compiled before in the same MLIR context."""
    code = artifact(lambda x: jnp.tanh(x) @ x, X)
    first = compile_module(code, b"", {})
    compiled(lambda x: lax.fori_loop(0, 3, lambda i, y: y + jnp.sin(x), x), X)
    assert compile_module(code, b"", {}) == first


def test_a_context_is_lent_until_it_has_read_its_fill(monkeypatch):
    monkeypatch.setattr(jax_compat.modules, "_idle_contexts", [])
    monkeypatch.setattr(jax_compat.modules, "_CONTEXT_BYTES", 100)
    with jax_compat.lent_context(60) as first, jax_compat.lent_context(1) as other:
        assert other is not first  # no other thread has it now
    jax_compat.modules._idle_contexts.remove((other, 99))
    with jax_compat.lent_context(60) as again:
        assert again is first
    assert jax_compat.modules._idle_contexts == []


def test_threads_compile_at_once():
    codes = [artifact(lambda x, k=k: jnp.tanh(x @ x) * k, X) for k in range(4)]
    alone = [compile_module(code, b"", {}) for code in codes]
    together: list[bytes | None] = [None] * 4

    def run(index):
        together[index] = compile_module(codes[index], b"", {})

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(t) for t in together] == [len(a) for a in alone]
    assert gc.isenabled()


def test_ops_that_jax_does_not_write_are_lowered_too():
    text = """
      func.func public @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
        %t = stablehlo.create_token : !stablehlo.token
        %u = stablehlo.after_all %t, %t : !stablehlo.token
        %r = "stablehlo.if"(%p) ({
          %a = stablehlo.logistic %x : tensor<4xf32>
          stablehlo.return %a : tensor<4xf32>
        }, {
          stablehlo.return %x : tensor<4xf32>
        }) : (tensor<i1>) -> tensor<4xf32>
        return %r : tensor<4xf32>
      }
    """
    kernels = [step["kernel"] for step in _poplar.engine.inspectImage(from_text(text))["steps"]]
    assert "popx.map" in kernels


def test_a_softmax_is_one_pass_over_its_rows():
    steps = inspected(jax.nn.softmax, np.ones((64, 512), np.float32))["steps"]
    assert [step["kernel"] for step in steps[:-1]] == ["engine.account"] * (len(steps) - 1)
    assert steps[-1]["kernel"] == "engine.rows"
    assert steps[-1]["inner"].count("popops.reduce") == 2
    assert all(step["cost"]["cycles"] > 0 for step in steps)


def from_text(text):
    from jaxlib import _jax

    code = _jax.mlir.serialize_portable_artifact(text.encode(), "1.10.0", True)
    return compile_module(bytes(code), b"", {})


def test_a_bug_is_one_line_with_the_users_own(monkeypatch, caplog):
    """The traceback is ours to read: it is logged."""
    caplog.set_level("DEBUG", "ipujax")

    def rule(builder, op):
        raise KeyError("no such thing")

    monkeypatch.setitem(RULES, "dot_general", rule)

    def f(x):
        return lax.cond(x[0, 0] > 0, lambda x: x + 1, lambda x: x @ x, x)

    line = f.__code__.co_firstlineno + 1
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(f)(X)
    text = str(caught.value)
    assert text.startswith("INTERNAL: [compile] needs a compiler without bugs; got KeyError")
    assert f"in stage 7_lower at dot_general (test_compile.py:{line}). Report it" in text
    assert "IPUJAX_DUMP_DIR" in text
    assert text.count("\n") == 0
    assert "Traceback" not in text
    assert "no such thing" in caplog.text
    assert "Traceback (most recent call last)" in caplog.text


def test_what_the_libraries_refuse_is_no_bug(monkeypatch):
    def rule(builder, op):
        raise ValueError("[popx::x] needs 1; got 2. Pass 1.")

    monkeypatch.setitem(RULES, "dot_general", rule)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"INVALID_ARGUMENT: .*popx::x"):
        jax.jit(lambda x: x @ x)(X)


def test_out_of_memory_names_the_leaves_of_pytrees():
    def f(params, x, *, scale):
        y = jnp.tanh(x @ params["layers"][0]["w"])
        return {"out": y * scale, "b": params["layers"][1]["b"] * 2}

    shape = jax.ShapeDtypeStruct
    params = {"layers": [{"w": shape((8192, 8192), "f4")}, {"b": shape((20_000, 5000), "f4")}]}
    jitted = jax.jit(f, compiler_options={"ipu_out_of_memory": "error"})
    lowered = jitted.lower(params, shape((4, 8192), "f4"), scale=shape((), "f4"))
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as caught:
        lowered.compile()
    text = str(caught.value)
    for name in ("params['layers'][0]['w'] (", "params['layers'][1]['b'] 2", "result['b'] ("):
        assert name in text
    assert "argument" not in text
    assert "bytes; Use" not in text


def test_names_are_numbers_where_a_program_has_none():
    text = """func.func @main(%a: tensor<3xf32>, %b: tensor<3xf32> loc("mine")) -> tensor<3xf32> {
      %0 = stablehlo.add %a, %b : tensor<3xf32>
      return %0 : tensor<3xf32>
    }"""
    module = jax_compat.parse_module(text)
    program = read_program(module, "f", RULES.__contains__)
    assert [parameter.name for parameter in program.parameters] == ["argument 0", "mine"]
    assert program.result_names == ["result 0"]


def test_names_keep_every_letter():
    program = read(lambda params: {"größe": params["größe \\ 2"] + 1}, {"größe \\ 2": X})
    assert program.parameters[0].name == "params['größe \\\\ 2']"
    assert program.result_names == ["result['größe']"]


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("i,j->ij", [(5,), (7,)]),
        ("bi,bj->bji", [(3, 5), (3, 7)]),
        ("bik,bkj->bij", [(3, 5, 1), (3, 1, 7)]),
        ("ib,b->bi", [(5, 3), (3,)]),
        ("b,b->b", [(9,), (9,)]),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_product_without_a_sum_is_elementwise(equation, shapes, dtype):
    rng = np.random.default_rng(0)
    operands = [rng.normal(size=shape).astype(dtype) for shape in shapes]

    def product(*operands):
        return jnp.einsum(equation, *operands)

    kernels = [step["kernel"] for step in inspected(product, *operands)["steps"]]
    assert "poplin.matmul" not in kernels
    want = np.einsum(equation, *(each.astype(np.float64) for each in operands)).astype(dtype)
    np.testing.assert_allclose(jax.jit(product)(*operands), want, rtol=np.finfo(dtype).eps)
