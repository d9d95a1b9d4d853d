"""Sessions: saved programs without JAX, against NumPy."""

from __future__ import annotations

import json
import random
import threading
import time
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import psutil
import pytest
from jax import lax

import ipujax as ipu
from tests.conftest import RunPython

RANDOM = np.random.default_rng(0)
WEIGHTS = {
    "w": RANDOM.normal(size=(6, 3)).astype(np.float32),
    "b": RANDOM.normal(size=3).astype(np.float32),
}
X = RANDOM.normal(size=(8, 6)).astype(np.float32)


def dense(weights, x):
    y = x @ weights["w"] + weights["b"]
    return {"y": y, "pair": (y > 0, [None, jnp.argmax(y, 1)])}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "dense.ipu"
    ipu.precompile(dense, WEIGHTS, X).save(path, weights={"weights": WEIGHTS})
    return path


def check(found, weights, x) -> None:
    y = x @ weights["w"] + weights["b"]
    np.testing.assert_allclose(found["y"], y, rtol=1e-5, atol=1e-5)
    assert type(found["y"]) is np.ndarray
    np.testing.assert_array_equal(found["pair"][0], found["y"] > 0)
    assert found["pair"][1][0] is None
    np.testing.assert_array_equal(found["pair"][1][1], np.argmax(y, 1))


def test_all_ways_to_run(file: Path):
    with ipu.runtime.Session(file, timeout=30) as session:
        check(session.run(X), WEIGHTS, X)
        check(session(X), WEIGHTS, X)
        runs = [session.submit(X * scale) for scale in range(70)]
        for scale, run in enumerate(runs):
            check(run.result(30), WEIGHTS, X * scale)
            assert run.done()
        batcher = session.batcher()
        assert batcher.batch_size == 8
        check(batcher.run(X[:3]), WEIGHTS, X[:3])
        requests = [batcher.submit(X[:n] * n) for n in (1, 8, 3, 5) * 9]
        for n, request in zip((1, 8, 3, 5) * 9, requests, strict=True):
            check(request.result(30), WEIGHTS, X[:n] * n)
        other = {"w": WEIGHTS["w"] * 2, "b": WEIGHTS["b"]}
        session.set_weights({"weights": other})
        check(session.run(X), other, X)
        np.testing.assert_array_equal(session.weights["weights"]["w"], other["w"])
    check(ipu.runtime.Session(file, weights={"weights": other}).run(X), other, X)
    with pytest.raises(ipu.SessionError, match="closed"):
        session.run(X)


def test_wrong_arguments_are_refused_by_name(file: Path):
    session = ipu.runtime.Session(file)
    for args, text in (
        ((), r"needs 1 arguments for jit_dense \(x\); got 0"),
        ((X[:4],), r"needs float32\[8, 6\] for x; got float32\[4, 6\]"),
        ((X.astype(np.float64),), r"needs float32\[8, 6\] for x; got float64\[8, 6\]"),
    ):
        with pytest.raises(ipu.SessionError, match=text):
            session.run(*args)
    for weights, text in (
        ({"x": X}, "names of stored parameters"),
        ({"v": X}, "one of the parameters weights, x"),
        ({"weights": {"w": X}}, r"the keys \['b', 'w'\] for weights"),
        ({"weights": [X]}, "needs a dict for weights"),
        ({"weights": {"w": X, "b": X}}, r"for weights\['b'\]"),
    ):
        with pytest.raises(ipu.SessionError, match=text):
            session.set_weights(weights)
    check(session.run(X), WEIGHTS, X)
    with pytest.raises(ipu.ConfigError, match="time-out in seconds above 0"):
        session.run(X, timeout=0)
    with pytest.raises(ipu.ConfigError, match="a queue of 1 run or more"):
        ipu.runtime.Session(file, queue_depth=0)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "uint16", "int32", "bool"])
def test_dtypes(tmp_path: Path, dtype: str):
    x = np.arange(5).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    ipu.precompile(lambda x: (x[::-1], jnp.float32(x.sum())), x).save(tmp_path / "a")
    found, total = ipu.runtime.Session(tmp_path / "a").run(x)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found.astype(np.float32), x[::-1].astype(np.float32))
    assert total == x.astype(np.float32).sum()


def test_state_goes_from_run_to_run_and_survives_a_failure(tmp_path: Path):
    def step(state, x):
        return {"n": state["n"] + 1, "sum": state["sum"] + x}, x * 2

    x = np.float32([1, 2])
    state = {"n": np.int32(0), "sum": np.zeros(2, np.float32)}
    ipu.precompile(step, state, x, donate_argnums=0).save(tmp_path / "a", weights={"state": state})
    session = ipu.runtime.Session(tmp_path / "a")
    loaded = ipu.load(tmp_path / "a")
    for n in range(1, 4):
        for run in (session.run, loaded):
            now, doubled = run(x)
            assert int(now["n"]) == n
            np.testing.assert_array_equal(now["sum"], n * x)
            np.testing.assert_array_equal(doubled, 2 * x)
    with ipu.testing.inject("exchange_parity"), pytest.raises(ipu.RecoverableError):
        session.run(x)
    assert int(session.weights["state"]["n"]) == 3
    assert int(session.run(x)[0]["n"]) == 4


def test_submitted_runs_keep_their_arrays(tmp_path: Path):
    size = 1 << 16
    x = np.zeros(size, np.float32)
    program = ipu.precompile(lambda total, x: (total + x, x[:1]), x, x, donate_argnums=0)
    program.save(tmp_path / "sum.ipu", weights={"total": x})
    with ipu.runtime.Session(tmp_path / "sum.ipu", queue_depth=100) as session:
        for i in range(50):
            session.submit(np.full(size, i, np.float32))  # neither array is kept here
        session.submit(x).result(30)
        np.testing.assert_array_equal(session.weights["total"], np.full(size, sum(range(50))))


def test_a_run_that_takes_too_long_is_cancelled(tmp_path: Path):
    def long(x):
        return lax.while_loop(
            lambda s: s[0] < 1_000_000_000, lambda s: (s[0] + 1, s[1] * x), (0, x)
        )

    ipu.precompile(long, np.ones(3, np.float32)).save(tmp_path / "a")
    session = ipu.runtime.Session(tmp_path / "a", timeout=0.05)
    begin = time.monotonic()
    with pytest.raises(ipu.SessionTimeoutError, match="was cancelled"):
        session.run(np.ones(3, np.float32))
    with pytest.raises(TimeoutError):
        session.run(np.ones(3, np.float32), timeout=0.01)
    run = session.submit(np.ones(3, np.float32), timeout=60)
    with pytest.raises(ipu.SessionTimeoutError, match="Wait again"):
        run.result(0.01)
    session.close()
    assert time.monotonic() - begin < 20
    with pytest.raises(ipu.SessionError, match="closed"):
        run.result()


def test_a_file_has_a_time_out_for_sessions_without_one(tmp_path: Path):
    def long(x):
        return lax.while_loop(lambda s: s[0] < 10**9, lambda s: (s[0] + 1, s[1] * x), (0, x))

    x = np.ones(3, np.float32)
    replace(ipu.precompile(long, x), timeout=0.02).save(tmp_path / "a")
    with pytest.raises(ipu.SessionTimeoutError, match="was cancelled"):
        ipu.runtime.Session(tmp_path / "a").run(x)
    session = ipu.runtime.Session(tmp_path / "a", timeout=60)
    run = session.submit(x)
    with pytest.raises(ipu.SessionTimeoutError, match="Wait again"):
        run.result(0.1)
    session.close()


def test_many_threads(file: Path):
    session = ipu.runtime.Session(file)
    batcher = session.batcher(delay=2e-3)
    wrong: list[BaseException] = []

    def work(seed: int) -> None:
        numbers = np.random.default_rng(seed)
        try:
            for i in range(20):
                x = numbers.normal(size=X.shape).astype(np.float32)
                n = 1 + (seed + i) % 8
                check(session.run(x), WEIGHTS, x)
                check(batcher.run(x[:n]), WEIGHTS, x[:n])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_starts_quickly_and_without_jax(file: Path, tmp_path: Path, run_python: RunPython):
    np.save(tmp_path / "x.npy", X)
    code = f"""
import sys, time
begin = time.process_time()
import ipujax as ipu, numpy as np
session = ipu.runtime.Session({str(file)!r})
session.run(np.load({str(tmp_path / "x.npy")!r}))
took = time.process_time() - begin
sys.stdout.write(f"{{'jax' in sys.modules}} {{took}}")
"""
    ran = run_python("-c", code)
    has_jax, seconds = ran.stdout.split()
    assert has_jax == "False", ran.stderr
    assert float(seconds) < 0.4  # of processor time; 0.15 s on a free machine


def test_a_thousand_runs_take_no_more_memory(file: Path):
    with ipu.runtime.Session(file) as session:
        process = psutil.Process()

        def run(times: int) -> int:
            for _ in range(times):
                session.run(X)
                session.submit(X).result()
            return process.memory_info().rss

        run(200)
        before = run(100)
        assert run(1000) - before < 1 << 20


def test_runs_of_eight_threads_take_no_more_memory(file: Path):
    with ipu.runtime.Session(file) as session:

        def run(times: int) -> int:
            def work() -> None:
                for _ in range(times):
                    session.run(X)
                    session.submit(X).result()

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return psutil.Process().memory_info().rss

        run(50)
        before = run(50)
        assert run(130) - before < 1 << 20


def test_a_process_ends_well_while_its_session_runs(file: Path, run_python: RunPython):
    """Eight threads run when Python ends; the sessions end first."""
    code = f"""
import threading, time, numpy as np, ipujax as ipu
session = ipu.runtime.Session({str(file)!r})
x = np.zeros({X.shape}, np.float32)
def work():
    try:
        while True:
            session.run(x)
    except ipu.SessionError:
        pass
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("end")
"""
    ran = run_python("-c", code)
    assert (ran.returncode, ran.stdout.strip(), ran.stderr) == (0, "end", "")


def test_altered_files_are_refused(file: Path, tmp_path: Path):
    """Some hundreds; tests/cpp/embedded and tests/mutants alter what is inside."""
    content = file.read_bytes()
    numbers = random.Random(1)
    path = tmp_path / "altered"
    for i in range(300):
        altered = bytearray(content)
        if i % 3 == 0:
            del altered[numbers.randrange(len(altered)) :]
        elif i % 3 == 1:
            altered[numbers.randrange(len(altered))] ^= 1 << numbers.randrange(8)
        else:
            at = numbers.randrange(len(altered))
            altered[at:at] = numbers.randbytes(numbers.randrange(1, 100))
        path.write_bytes(altered)
        for load in (ipu.runtime.Session, ipu.load):
            with pytest.raises(ipu.ExecutableError):
                load(path)
    with pytest.raises(ipu.ExecutableError, match="No such file"):
        ipu.runtime.Session(tmp_path / "none")


@pytest.mark.parametrize(
    "change",
    [
        lambda made: made.update(parameters=["a"]),
        lambda made: made.update(result=0),
        lambda made: made.update(result={"tuple": [1, 0]}),
        lambda made: made.update(arguments=[{"set": [0, 1]}, 2]),
        lambda made: made.update(arguments=[{"dict": [[None, 0], ["w", 1]]}, 2]),
        lambda made: made.update(arguments=[True, 2]),
        lambda made: made.pop("arguments"),
    ],
)
def test_other_pytrees_in_a_file_are_refused(file: Path, tmp_path: Path, change):
    from ipujax._poplar._poplar import embedded

    found, program, stored = embedded.read_package(str(file))
    made = json.loads(found["structure"])
    change(made)
    embedded.write_package(
        str(tmp_path / "a"),
        found["name"],
        json.dumps(made),
        found["arguments"],
        found["results"],
        [],
        [],
        [],
        program,
        stored,
    )
    with pytest.raises(ipu.ExecutableError, match="another description of its pytrees"):
        ipu.runtime.Session(tmp_path / "a")


def test_programs_of_jit_that_call_python_are_refused(tmp_path: Path):
    """Whoever makes the file: precompile itself refuses them earlier."""
    from ipujax._poplar._poplar import embedded

    def noisy(x):
        jax.debug.print("{x}", x=x)
        return x + 1

    x = jnp.ones(3)
    sealed = jax.jit(noisy).lower(x).compile()._executable.xla_executable.serialize()
    sealed = sealed[sealed.index(b"IPUJAXEX") :]
    leaf = ("x", "float32", (3,), 0, False, (), ())
    structure = json.dumps({"parameters": ["x"], "arguments": [0], "result": 0})
    embedded.write_package(
        str(tmp_path / "a"), "noisy", structure, [leaf], [leaf], [], [], [], sealed, []
    )
    with pytest.raises(ipu.ExecutableError, match="calls functions of the Python process"):
        ipu.runtime.Session(tmp_path / "a")
