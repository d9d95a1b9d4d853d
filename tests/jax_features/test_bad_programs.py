"""Programs that are malformed, contradictory, too large or unknown: typed errors, process alive."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax import jax_compat

VECTOR = "tensor<4xf32>"
X = np.arange(4, dtype=np.float32)


def run_text(text: str, *arguments: np.ndarray) -> list[np.ndarray]:
    return jax_compat.load_program(text, jax.devices("ipu")[0])(arguments)


def refused(*words: str, status: str):
    pattern = f"^{status}" + "".join(f"(?=[\\s\\S]*{word})" for word in words)
    return pytest.raises(jax.errors.JaxRuntimeError, match=pattern)


@pytest.fixture(autouse=True)
def _process_is_alive():
    yield
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(X), X + 1)


# Malformed bytes ---------------------------------------------------------------------------------

#: Changes bytes of real artifacts and passes them to the compiler, in one process.
FUZZ_BYTES = """
import json, random, sys
import jax, jax.numpy as jnp, numpy as np
from ipujax import jax_compat
from ipujax.compiler.compile import compile_module
from ipujax.errors import IpuError

def program(x, n):
    carried = jax.lax.scan(lambda c, row: (jnp.tanh(c @ x) + row, c.sum()), x[0], x)
    return carried, jnp.sort(x, 0), x.at[n].add(1.0), jnp.argmax(x)

arguments = np.ones((4, 4), np.float32), np.int32(1)
lowered = jax.jit(program).trace(*arguments).lower(lowering_platforms=("ipu",))
code = jax_compat.serialize_artifact(lowered)
platform = {"machine": "gc200", "ipus_per_device": 1, "num_tiles": 16}

def changed(rng):
    data = bytearray(code)
    kind = rng.choice(("bits", "bytes", "cut", "repeat", "zeros"))
    place = rng.randrange(len(data))
    if kind == "bits":
        data[place] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == "cut":
        del data[place:]
    elif kind == "repeat":
        data[place:place] = data[place : place + 40]
    else:
        data[place : place + 16] = bytes(len(data[place : place + 16]))
    return bytes(data)

for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    print(json.dumps([seed, "begins"]), flush=True)
    try:
        compile_module(changed(random.Random(seed)), b"", platform)
        outcome = "compiled"
    except IpuError as error:
        outcome = type(error).__name__
    except Exception as error:
        outcome = "untyped: " + repr(error)
    print(json.dumps([seed, outcome]), flush=True)
"""


def test_changed_bytes_of_an_artifact(run_python, tmp_path: Path):
    """What jaxlib's own reader survives is refused with a type, or is a program after all.

    That reader ends the process over some malformed attributes ("LLVM ERROR") and over names that
    are no text ("nanobind"), before any code of ipujax sees them: such seeds are passed over.
    """
    script = tmp_path / "bytes.py"
    script.write_text(FUZZ_BYTES)
    outcomes: dict[int, str] = {}
    first, end, num_deaths = 0, 120, 0
    while first < end:
        run = run_python(script, str(first), str(end))
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        assert lines, run.stderr
        outcomes.update((seed, what) for seed, what in lines)
        if run.returncode:
            jaxlibs = "LLVM ERROR" in run.stderr or "nanobind::builtin_exception" in run.stderr
            assert jaxlibs, (lines[-1], run.returncode, run.stderr[-2000:])
            num_deaths += 1
        first = lines[-1][0] + 1
    kinds = {what for what in outcomes.values() if what != "begins"}
    assert kinds <= {"compiled", "InvalidProgramError", "UnsupportedOpError"}, kinds
    assert list(outcomes.values()).count("InvalidProgramError") > end / 2
    assert num_deaths < end / 10


def test_no_bytes_and_no_artifact():
    from ipujax.compiler.compile import compile_module
    from ipujax.errors import InvalidProgramError

    for code in (
        b"",
        b"\0" * 100,
        b"ML\xefR",
        b"StableHLO_v1.0.0",
        b"no program",
    ):
        with pytest.raises(InvalidProgramError, match=r"needs a (StableHLO|function @main)"):
            compile_module(code, b"", {})


# Too large ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (jnp.broadcast_to(x, (2**17, 2**15)) + 1).sum(),
        lambda x: jnp.broadcast_to(x, (2**31, 2**31)).sum(),
        lambda x: jnp.broadcast_to(x, (2**40, 2**40))[0, 0] + 1,
        lambda x: (jnp.broadcast_to(x, (2**16, 1)) @ jnp.broadcast_to(x, (1, 2**16))).max(),
        lambda x: (jnp.arange(2**32, dtype=jnp.uint32) + x.astype("uint32")).sum(),
        lambda x: jnp.zeros((2**20, 2**14)).sum() + x,
        lambda x: jnp.zeros((2**40, 2**30)).sum() + x,
        lambda x: (x, jnp.broadcast_to(jnp.zeros(2**10)[:, None], (2**10, 2**22)).sum(0)[0]),
        lambda x: jnp.zeros((2**40, 0, 2**30)).sum() + x,
    ],
)
def test_more_elements_than_can_be_indexed(f):
    with refused(
        "at most 2147483647 elements", "test_bad_programs.py", status="RESOURCE_EXHAUSTED"
    ):
        jax.jit(f)(1.0)


@pytest.mark.parametrize("shape", [(2**20, 2**14), (2**40, 2**14)])
def test_results_of_more_elements_than_can_be_indexed(shape):
    with refused("at most 2147483647 elements", "result 1", status="RESOURCE_EXHAUSTED"):
        jax.jit(lambda x: (x, jnp.zeros(shape, jnp.int8)))(1.0)


# Contradictory -----------------------------------------------------------------------------------


def test_a_donation_that_fits_no_result():
    alias = "{tf.aliasing_output = %d : i32}"
    text = f"func.func @main(%a: {VECTOR} {alias % 3}) -> {VECTOR} {{ return %a : {VECTOR} }}"
    with refused("result 3 of 1", status="INVALID_ARGUMENT"):
        run_text(text, X)
    short = f"tensor<2xi8> {alias % 0}"
    text = f"func.func @main(%a: {short}, %b: {VECTOR}) -> {VECTOR} {{ return %b : {VECTOR} }}"
    with refused("2xi8", "4xf32", status="INVALID_ARGUMENT"):
        run_text(text, np.ones(2, np.int8), X)


def test_a_module_without_main():
    with refused("main", status="INVALID_ARGUMENT"):
        run_text(f"func.func @other(%a: {VECTOR}) -> {VECTOR} {{ return %a : {VECTOR} }}", X)


def test_a_function_that_calls_itself():
    call = f"%0 = call @f(%a) : ({VECTOR}) -> {VECTOR}\n return %0 : {VECTOR}"
    text = f"""func.func @main(%a: {VECTOR}) -> {VECTOR} {{ {call} }}
    func.func private @f(%a: {VECTOR}) -> {VECTOR} {{ {call} }}"""
    with refused("do not call themselves", "@f", status="INVALID_ARGUMENT"):
        run_text(text, X)


@pytest.mark.parametrize(
    "op",
    [
        f"stablehlo.reverse %a, dims = [1] : {VECTOR}",
        f"stablehlo.transpose %a, dims = [0, 0] : ({VECTOR}) -> {VECTOR}",
        "stablehlo.slice %a [3:1] : (tensor<4xf32>) -> tensor<4xf32>",
        "stablehlo.reshape %a : (tensor<4xf32>) -> tensor<5xf32>",
        "stablehlo.dot_general %a, %a, contracting_dims = [0] x [1] : "
        "(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
        "stablehlo.concatenate %a, %a, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<7xf32>",
    ],
    ids=lambda op: op.split()[0],
)
def test_attributes_that_contradict_the_types(op: str):
    """MLIR's verifier sees them when the text is read, before a program reaches the compiler."""
    text = f"func.func @main(%a: {VECTOR}) -> {VECTOR} {{ %0 = {op}\n return %a : {VECTOR} }}"
    with pytest.raises(Exception, match="Unable to parse module") as caught:
        run_text(text, X)
    assert type(caught.value).__name__ == "MLIRError"


# Unknown -----------------------------------------------------------------------------------------


def test_a_custom_call_that_nobody_registered():
    def f(x):
        return jax.ffi.ffi_call("nobody_registered_this", jax.ShapeDtypeStruct((4,), x.dtype))(x)

    with refused("nobody_registered_this", "test_bad_programs.py", status="UNIMPLEMENTED"):
        jax.jit(f)(X)


@pytest.mark.parametrize("identifier", ["77", "no number", ""])
def test_a_callback_that_nobody_registered(identifier: str):
    config = f"{{backend_config = {json.dumps(identifier)}}}"
    call = f"stablehlo.custom_call @ipu_python_callback(%a) {config}"
    text = f"""func.func @main(%a: {VECTOR}) -> {VECTOR} {{
      %0 = {call} : ({VECTOR}) -> {VECTOR}
      return %0 : {VECTOR}
    }}"""
    with refused("needs a function of this process", status="INTERNAL"):
        run_text(text, X)


# Odd data: the right numbers ---------------------------------------------------------------------

FAR = [-(2**31), -5, -4, -1, 0, 3, 4, 2**31 - 1]


def on_both(f, *arguments):
    results = []
    for platform in ("ipu", "cpu"):
        device = jax.devices(platform)[0]
        put = [jax.device_put(a, device) for a in arguments]
        results.append([np.asarray(r) for r in jax.tree.leaves(jax.jit(f)(*put))])
    for ours, theirs in zip(*results, strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours.astype("f8"), theirs.astype("f8"))


@pytest.mark.parametrize("index", FAR)
def test_indices_outside(index: int):
    def f(x, i):
        return (
            x[i],
            [x.at[i].get(mode=mode, fill_value=7.0) for mode in ("clip", "fill", "drop")],
            [x.at[i].set(9.0, mode=mode) for mode in ("clip", "drop")],
            x.at[jnp.stack([i, i + 1])].add(2.0, mode="drop"),
            x.at[i].max(9.0),
            jnp.take(x, i, mode="wrap"),
            lax.dynamic_slice(x, (i,), (2,)),
            lax.dynamic_update_slice(x, x[:2] * 10, (i,)),
            lax.dynamic_index_in_dim(x, i, keepdims=False),
        )

    on_both(f, X, np.int32(index))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_sorting_what_is_not_finite(dtype: str):
    x = np.array([3, np.nan, -0.0, np.inf, -np.nan, 0.0, -np.inf, 3, np.nan, -1], np.float32)

    def f(x):
        x = x.astype(dtype)
        return (
            jnp.sort(x),
            jnp.argsort(x),
            jnp.argsort(x, descending=True),
            lax.top_k(x, 10),
            jnp.argmax(x),
            jnp.argmin(x),
            jnp.nanargmax(x),
            jnp.max(x),
            jnp.min(x),
            lax.cummax(x),
            lax.cummin(x),
            jnp.median(x[:1]),
            jnp.unique(x, size=10),
            lax.sort_key_val(x, jnp.arange(10)),
            jnp.searchsorted(jnp.sort(x), x),
        )

    on_both(f, x)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
def test_reductions_of_nothing(shape: tuple[int, ...]):
    x = np.zeros(shape, np.float32)

    def f(x):
        axes = tuple(range(x.ndim))
        return (
            [g(x, axis) for g in (jnp.sum, jnp.prod, jnp.mean) for axis in (None, 0, -1)],
            [g(x > 0, axis) for g in (jnp.any, jnp.all) for axis in (None, 0, -1)],
            lax.reduce(x, -jnp.inf, lax.max, axes),
            lax.reduce(x, jnp.inf, lax.min, axes[:1]),
            jnp.max(x, initial=-3.0),
            jnp.cumsum(x, 0),
            jnp.sort(x, 0),
            x.reshape(-1) @ x.reshape(-1),
            jnp.concatenate([x, jnp.ones(x.shape)]),
            jnp.linalg.norm(x.reshape(-1)),
        )

    on_both(f, x)


def test_the_largest_of_nothing_is_refused():
    for f in (jnp.max, jnp.argmax, lambda x: lax.top_k(x, 1)):
        with pytest.raises((ValueError, TypeError)):
            jax.jit(f)(np.zeros((0,), np.float32))
