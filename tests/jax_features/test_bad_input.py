"""What users get wrong: a clear error or the right numbers, never an abort, a hang, or nonsense."""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = np.ones(4, np.float32)


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "complex128"])
def test_a_64_bit_program_is_refused_by_op_dtype_and_line_where_users_ask_for_it(dtype: str):
    with jax.enable_x64(True):
        x = np.ones(4, dtype)
        with pytest.raises(jax.errors.JaxRuntimeError) as caught:
            jax.jit(lambda x: x * 2, compiler_options={"ipu_x64": "error"})(x)
    text = str(caught.value)
    assert {"float64": "f64", "int64": "i64", "uint64": "ui64", "complex128": "f64"}[dtype] in text
    assert "multiply" in text
    assert Path(__file__).name in text


def test_all_unsupported_ops_are_named_at_once():
    def f(x):
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        y = jax.ffi.ffi_call("nobodys_target", like)(x)
        return jax.ffi.ffi_call("another_target", like)(y)

    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(f)(np.eye(4, dtype=np.float32))
    text = str(caught.value)
    assert "nobodys_target" in text
    assert "another_target" in text
    assert Path(__file__).name in text


BIG = "jax.jit(lambda x: jnp.sin(x) @ x)(np.ones((1024, 1024), np.float32))"
HEADER = "import jax, jax.numpy as jnp, numpy as np\n"


def test_a_program_too_large_for_a_tile_is_refused_when_asked(run_python, tmp_path: Path):
    script = tmp_path / "big.py"
    script.write_text(HEADER + BIG)
    env = {"JAX_IPU_MODEL_NUM_TILES": "4", "IPUJAX_OUT_OF_MEMORY": "error"}
    run = run_python(script, env=env)
    assert run.returncode == 1
    assert "tile" in run.stderr
    assert "638976" in run.stderr.replace(",", "")
    assert "big.py" in run.stderr


def test_a_program_too_large_for_a_tile_is_logged_once_and_runs(run_python, tmp_path: Path):
    script = tmp_path / "big.py"
    script.write_text(
        f"{HEADER}result = {BIG}\nprint(result.shape, float(np.asarray(result)[0, 0]))"
    )
    run = run_python(script, env={"JAX_IPU_MODEL_NUM_TILES": "4"})
    assert run.returncode == 0, run.stderr
    assert "(1024, 1024) 861.6" in run.stdout
    assert run.stderr.count("638976") + run.stderr.count("638,976") == 1


def test_nan_and_infinities_are_data():
    x = np.array([np.nan, np.inf, -np.inf, -0.0, 1.0], np.float32)
    np.testing.assert_array_equal(jax.jit(lambda x: x + 1)(x), x + 1)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(jax.jit(lambda x: x * 0)(x), x * 0)
    assert np.signbit(jax.jit(lambda x: x * 1)(x)[3])
    np.testing.assert_array_equal(jax.jit(jnp.maximum)(x, X[0]), np.maximum(x, 1))
    np.testing.assert_array_equal(jax.jit(jnp.isnan)(x), np.isnan(x))
    m = np.array([[np.inf, 1], [2, np.nan]], np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            jax.jit(jnp.matmul)(m, np.eye(2, dtype=np.float32)), m @ np.eye(2)
        )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (name, value)
        for name, outside in (("JAX_IPU_DEVICE_COUNT", "0"), ("JAX_IPU_MODEL_NUM_TILES", "1473"))
        for value in (outside, "-3", "many")
    ],
)
def test_a_wrong_count_in_the_environment(run_python, name: str, value: str):
    run = run_python("-c", "import jax; jax.devices()", env={name: value})
    assert run.returncode == 1
    assert f"{name} needs a whole number" in run.stderr


def test_a_dump_folder_that_cannot_be_written(run_python, tmp_path: Path):
    (tmp_path / "file").write_text("")
    run = run_python(
        "-c",
        "import jax; print(jax.jit(lambda x: x + 1)(1.0))",
        env={"IPUJAX_DUMP_DIR": str(tmp_path / "file" / "dump")},
    )
    assert run.returncode == 1
    assert "IPUJAX_DUMP_DIR needs a folder that can be created" in run.stderr


def test_every_stage_is_dumped(run_python, tmp_path: Path):
    code = "import jax, jax.numpy as jnp; print(jax.jit(lambda x: jnp.tanh(x) + 1)(1.0))"
    run = run_python("-c", code, env={"IPUJAX_DUMP_DIR": str(tmp_path / "dump")})
    assert run.returncode == 0, run.stderr
    names = " ".join(sorted(path.name for path in (tmp_path / "dump").rglob("*")))
    for stage in ("ingest", "normalise", "fuse", "schedule", "lower"):
        assert stage in names, names


def test_an_unknown_compiler_option_says_which_one_is_near():
    with pytest.raises(jax.errors.JaxRuntimeError, match="Did you mean 'ipu_out_of_memory'"):
        jax.jit(lambda x: x + 1, compiler_options={"ipu_out_of_memry": "1"})(X)


def test_a_bad_compiler_option_value():
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs one of log, run, error"):
        jax.jit(lambda x: x + 1, compiler_options={"ipu_out_of_memory": "maybe"})(X)


def test_a_good_compiler_option():
    f = jax.jit(lambda x: x + 1, compiler_options={"ipu_out_of_memory": "error"})
    np.testing.assert_array_equal(f(X), X + 1)


@pytest.mark.parametrize("num_threads", [2, 8])
def test_threads_compile_and_run_at_once(num_threads: int):
    barrier = threading.Barrier(num_threads)

    def work(k: int) -> float:
        barrier.wait()
        total = 0.0
        for i in range(5):
            total += float(jax.jit(lambda x, i=i: (x * k + i).sum())(X))
        return total

    with ThreadPoolExecutor(num_threads) as pool:
        results = list(pool.map(work, range(num_threads)))
    assert results == [4.0 * (5 * k + 10) for k in range(num_threads)]


@pytest.mark.parametrize("moment", ["compile", "run", "collective"])
def test_ctrl_c_interrupts_and_leaves_a_working_process(run_python, tmp_path: Path, moment: str):
    """A SIGINT in the middle ends in KeyboardInterrupt, and the next call works.

    It is sent again where it fell into a garbage collector's callback, which swallows exceptions.
    """
    busy = {
        "compile": (
            "def program(y, k):\n"
            "    for i in range(4000):\n"
            "        y = jnp.sin(y) * (k + i)\n"
            "    return y\n"
            "busy = lambda: [\n"  # another program each time: JAX compiles equal ones once
            "    jax.jit(lambda y: program(y, 1.0 + k)).lower(x).compile() for k in range(200)]\n"
        ),
        "run": (
            "loop = jax.jit(lambda x: jax.lax.fori_loop(0, 3000, lambda i, v: jnp.sin(v), x))\n"
            "big = jnp.ones(100_000)\n"
            "jax.block_until_ready(loop(big))\n"
            "busy = lambda: [jax.block_until_ready(loop(big)) for _ in range(10_000)]\n"
        ),
        "collective": (
            "mesh = jax.sharding.Mesh(np.array(jax.devices('ipu')[:4]), ('x',))\n"
            "P = jax.sharding.PartitionSpec\n"
            "def sums(v):\n"
            "    step = lambda i, s: jax.lax.psum(s, 'x') * 0.25\n"
            "    return jax.lax.fori_loop(0, 3000, step, v)\n"
            "loop = jax.jit(jax.shard_map(\n"
            "    sums, mesh=mesh, in_specs=P('x'), out_specs=P('x'), check_vma=False))\n"
            "big = jnp.ones(40_000)\n"
            "jax.block_until_ready(loop(big))\n"
            "busy = lambda: [jax.block_until_ready(loop(big)) for _ in range(10_000)]\n"
        ),
    }[moment]
    script = tmp_path / "interrupted.py"
    script.write_text(
        "import os, signal, threading, json\n"
        # A shell that starts the tests in the background lets them ignore the signal.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        + HEADER
        + "x = jnp.ones(4)\n"
        + busy
        + "ended = threading.Event()\n"
        "def interrupt():\n"
        "    while not ended.wait(1.0):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "try:\n"
        "    busy()\n"
        "    outcome = 'finished'\n"
        "except KeyboardInterrupt:\n"
        "    ended.set()\n"
        "    outcome = 'interrupted'\n"
        "after = np.asarray(jax.jit(lambda x: x + 1)(x)).tolist()\n"
        "print(json.dumps([outcome, after]))\n"
    )
    run = run_python(script, timeout=120)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == ["interrupted", [2.0] * 4]


def test_exit_with_work_in_flight(run_python):
    code = (
        "import jax, jax.numpy as jnp\n"
        "f = jax.jit(lambda x: jax.lax.fori_loop(0, 2000, lambda i, v: jnp.sin(v), x))\n"
        "x = jnp.ones(100_000)\n"
        "f(x); f(x); print('leaving')\n"
    )
    run = run_python("-c", code, timeout=120)
    assert (run.returncode, run.stdout) == (0, "leaving\n"), run.stderr


def test_clear_backends_and_go_on(run_python):
    code = (
        "import os, jax, jax.numpy as jnp, jax.extend\n"
        "print(float(jax.jit(lambda x: x + 1)(1.0)), len(jax.devices()))\n"
        "os.environ['JAX_IPU_DEVICE_COUNT'] = '2'\n"
        "jax.extend.backend.clear_backends()\n"
        "print(float(jax.jit(lambda x: x + 1)(2.0)), len(jax.devices()))\n"
    )
    run = run_python("-c", code)
    assert (run.returncode, run.stdout) == (0, f"2.0 {len(jax.devices())}\n3.0 2\n"), run.stderr


def test_without_the_extension_jax_goes_on(monkeypatch, caplog):
    import sys

    from ipujax import jax_compat, plugin

    monkeypatch.setattr(jax_compat, "is_registered", lambda: False)
    monkeypatch.setitem(sys.modules, "ipujax._poplar._poplar", None)
    import ipujax._poplar

    monkeypatch.delattr(ipujax._poplar, "_poplar", raising=False)
    with caplog.at_level(logging.WARNING, "ipujax"):
        plugin.initialize()
    assert "needs its built extension" in caplog.text
    assert "make build" in caplog.text


@pytest.mark.parametrize("tiles", [1, 8])
def test_ctrl_c_ends_a_codelet_that_does_not(run_python, tiles: int):
    run = run_python("-m", "tests.endless_codelet", str(tiles), timeout=120)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == [["interrupted"] * 2, [0.0] * 2 * tiles]
