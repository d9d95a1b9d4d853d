"""Seeds checked in child processes: a crash costs one seed, which counts as failed."""

from __future__ import annotations

import atexit
import json
import os
import random
import selectors
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNOPTIMISED = "--xla_backend_optimization_level=0"
FLAGS = f"--xla_allow_excess_precision=false {UNOPTIMISED}"
#: Seconds that one program may take, of which it needs less than one on an idle machine.
TIMEOUT = 300.0
#: Every how many programs of single ops the reference interpreter runs too.
INTERPRETED = 5
KINDS = (
    *("programs", "gradients", "ops", "sharded", "meshes", "pipelines", "composed"),
    *("library", "functions", "training", "dtypes"),
)

Check = Callable[[int], dict]


def chunk_main(first: int, count: int, kind: str, how: str) -> None:
    """Checks seeds in this process; a line of JSON as each begins, and one when it is done."""
    from tests.fuzz.check import with_bugs

    check = MAKERS.get(kind, lambda how: _programs(kind, how))(how)
    for seed in range(first, first + count):
        print(json.dumps({"begin": seed}), flush=True)
        print(json.dumps({"seed": seed, **with_bugs(check(seed))}), flush=True)


def _sharded(how: str) -> Check:
    from tests.fuzz.sharded import differences, from_seed

    return lambda seed: {"differences": differences(from_seed(seed)), "refused": {}}


def _meshes(how: str) -> Check:
    from tests.fuzz.meshes.compare import compared
    from tests.fuzz.meshes.program import from_seed

    return lambda seed: compared(from_seed(seed), how != "interpreter")


def _library(how: str) -> Check:
    from tests.fuzz.library.compare import compared, from_seed

    def one(seed: int) -> dict:
        run = from_seed(seed)
        return {
            "differences": compared(run),
            "refused": {},
            "name": run.name,
            "mode": run.mode,
        }

    return one


def _pipelines(how: str) -> Check:
    from dataclasses import asdict

    from tests.fuzz.pipelines.compare import compared
    from tests.fuzz.pipelines.spec import from_seed

    return lambda seed: asdict(compared(from_seed(seed)))


def _composed(how: str) -> Check:
    from dataclasses import asdict

    from tests.fuzz.composed.compare import compared
    from tests.fuzz.composed.spec import from_seed

    return lambda seed: asdict(compared(from_seed(seed)))


def _programs(kind: str, how: str) -> Check:
    from ipujax.config.program import mechanisms
    from ipujax.verification.oracles import Oracle
    from tests.fuzz.programs.compare import compare, switched_off
    from tests.fuzz.programs.program import from_seed

    interpreter = Oracle("interpreter", timeout=120.0)
    atexit.register(interpreter.close)

    def one(seed: int) -> dict:
        without = {"each": mechanisms(), "none": ()}.get(how, switched_off(seed))
        program = from_seed(seed, kind)
        outcome = compare(program, without, interpreter.run, how != "interpreter")
        return {
            "differences": outcome.differences,
            "refused": outcome.refused,
            "pairs": [[*pair, number] for pair, number in program.pairs.items()],
            "lines": program.source.count("\n"),
            "rejected": dict(program.rejected),
        }

    return one


def _ops(how: str) -> Check:
    from ipujax.verification.oracles import Oracle
    from tests.fuzz.check import check, on_platform
    from tests.fuzz.generator import from_seed

    interpreter = Oracle("interpreter")
    atexit.register(interpreter.close)

    def one(seed: int) -> dict:
        oracles = {} if how == "interpreter" else {"cpu": on_platform("cpu")}
        if seed % INTERPRETED == 0 or not oracles:
            oracles["interpreter"] = interpreter.run
        outcome = check(from_seed(seed), oracles, interpreter.run)
        return {"differences": outcome.differences, "refused": outcome.refused}

    return one


def _functions(how: str) -> Check:
    from tests.fuzz.functions.compare import compared

    return compared


def _training(how: str) -> Check:
    from tests.fuzz.functions.compare import compared
    from tests.fuzz.functions.training import from_seed

    return lambda seed: compared(seed, from_seed)


def _dtypes(how: str) -> Check:
    from tests.fuzz.dtypes import compared

    return lambda seed: compared(seed, cpu=how != "interpreter")


MAKERS = {
    "ops": _ops,
    "sharded": _sharded,
    "meshes": _meshes,
    "pipelines": _pipelines,
    "composed": _composed,
    "library": _library,
    "functions": _functions,
    "training": _training,
    "dtypes": _dtypes,
}


def run_chunk(first: int, count: int, kind: str, how: str) -> list[dict]:
    """Checks seeds in a child process; after a crash, another one checks the rest."""
    outcomes: list[dict] = []
    end = first + count
    while first < end:
        done, begun, why = _run_process(first, end - first, kind, how)
        outcomes += done
        first = begun + 1
        if why:
            outcomes.append(_of_dead_process(begun, kind, how, why))
    return outcomes


def _run_process(first: int, count: int, kind: str, how: str) -> tuple[list[dict], int, str]:
    """What it finished, the last seed that it began, and why it ended early if it did."""
    command = [sys.executable, "-m", "tests.fuzz", "--kind", kind, "--how", how]
    command += ["--chunk", str(first), str(count)]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment(first, kind), stdout=subprocess.PIPE, stderr=log
        )
        messages = [json.loads(line) for line in _lines_of(process)]
        status = process.wait()
        log.seek(0)
        text = log.read().decode(errors="replace")
    if not messages:
        raise SystemExit(f"fuzz: no program was begun ({status}):\n{text[-2000:]}")
    last = messages[-1]
    why = f"process ended with {status}: {text[-600:]}" if "begin" in last else ""
    return [m for m in messages if "seed" in m], last.get("begin", last.get("seed")), why


def _lines_of(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """What it prints until it ends; it is ended where one program takes too long."""
    assert process.stdout is not None
    with process.stdout as stdout, selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        rest = b""
        while True:
            if not selector.select(TIMEOUT):
                process.kill()
            data = os.read(stdout.fileno(), 1 << 20)
            if not data:
                return
            *lines, rest = (rest + data).split(b"\n")
            yield from lines


def _of_dead_process(seed: int, kind: str, how: str, why: str) -> dict:
    """It may be the CPU backend's compiler that ended the process: tries again without."""
    if kind in ("programs", "gradients", "ops", "meshes", "dtypes") and how != "interpreter":
        done, _, dead_again = _run_process(seed, 1, kind, "interpreter")
        if not dead_again:
            (outcome,) = done
            return {**outcome, "refused": {**outcome["refused"], "cpu": why}}
    return {"seed": seed, "differences": [why], "refused": {}}


class Log:
    """Runs chunks, each once: those that a file says are done are read from it.

    Args:
        path: a line of JSON for each chunk; None: nothing is written down.
    """

    def __init__(self, path: Path | None, kind: str, how: str):
        self._path, self._kind, self._how = path, kind, how
        self._lock = threading.Lock()
        lines = path.read_text().splitlines() if path and path.exists() else []
        entries = [json.loads(line) for line in lines]
        self._done = {tuple(entry["chunk"]): entry["outcomes"] for entry in entries}

    def outcomes(self, part: tuple[int, int]) -> list[dict]:
        chunk = (self._kind, self._how, *part)
        if chunk not in self._done:
            keys = ("seed", "differences", "refused", "bugs")
            found = [
                {k: o[k] for k in keys if k in o} for o in run_chunk(*part, self._kind, self._how)
            ]
            self._done[chunk] = found
            if self._path:
                with self._lock, self._path.open("a") as file:
                    file.write(json.dumps({"chunk": chunk, "outcomes": found}) + "\n")
        return self._done[chunk]


def settings(first: int) -> dict[str, str]:
    """Threads and instruction set of the chunk that begins with this seed."""
    rng = random.Random(f"settings {first}")
    found = {"IPUJAX_NUM_THREADS": rng.choice(("", "1", "2", "3", "8"))}
    found["IPUJAX_MAX_ISA"] = rng.choice(("", "", "baseline", "avx2", "avx512"))
    return {name: value for name, value in found.items() if value}


def environment(first: int, kind: str = "programs") -> dict[str, str]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}".strip()
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "IPUJAX_VERIFY": "1", "JAX_IPU_DEVICE_COUNT": "8"}
    quiet["JAX_IPU_IPUS_PER_DEVICE"] = "8"
    if kind == "meshes":
        quiet |= {"JAX_IPU_IPUS_PER_DEVICE": "1", "JAX_NUM_CPU_DEVICES": "8"}
    if kind in ("library", "composed"):
        quiet |= {"JAX_IPU_DEVICE_COUNT": "2", "JAX_IPU_IPUS_PER_DEVICE": "2"}
    if kind == "composed":
        quiet |= {"JAX_IPU_MODEL_NUM_TILES": "16", "JAX_NUM_CPU_DEVICES": "2"}
        # Unoptimised, JAX's CPU backend makes NaN of some gradients.
        flags = flags.replace(UNOPTIMISED, "").strip()
    if kind == "dtypes":
        quiet |= {"JAX_IPU_DEVICE_COUNT": "1", "JAX_IPU_IPUS_PER_DEVICE": "1"}
    fixed = {**quiet, "JAX_PLATFORMS": "ipu,cpu", "XLA_FLAGS": flags}
    return {**os.environ, **settings(first), **fixed}


def chunks(seed: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(seed, seed + count, size):
        yield first, min(size, seed + count - first)
