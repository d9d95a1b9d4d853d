"""`python -m tests.fuzz --count 10000 --seed 0`: that many random programs, in chunks of processes.

With `--against one-device` each runs over several devices, its arguments dealt at random. Equal
seeds make equal programs. Ends with one line of counts; exit status 1 where any differed.
"""

from __future__ import annotations

import argparse
import atexit
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAGS = "--xla_allow_excess_precision=false --xla_backend_optimization_level=0"
#: Every how many programs the reference interpreter runs too.
INTERPRETED = 5


def chunk_main(first: int, count: int, against: str) -> None:
    """Checks seeds in this process; a line of JSON as each begins, and one when it is done."""
    check = _dealt() if against == "one-device" else _whole(against)
    for seed in range(first, first + count):
        print(json.dumps({"begin": seed}), flush=True)
        print(json.dumps({"seed": seed, **check(seed)}), flush=True)


def _dealt() -> Callable[[int], dict]:
    from tests.fuzz.sharded import differences, from_seed

    return lambda seed: {"differences": differences(from_seed(seed)), "refused": {}}


def _whole(against: str) -> Callable[[int], dict]:
    from ipujax.verification.oracles import Oracle
    from tests.fuzz.check import check, on_platform
    from tests.fuzz.generator import from_seed

    interpreter = Oracle("interpreter")
    atexit.register(interpreter.close)

    def one(seed: int) -> dict:
        oracles = {"cpu": on_platform("cpu")} if against == "cpu" else {}
        if seed % INTERPRETED == 0 or not oracles:
            oracles["interpreter"] = interpreter.run
        outcome = check(from_seed(seed), oracles, interpreter.run)
        refused = {name: text[:200] for name, text in outcome.refused.items()}
        return {"differences": outcome.differences, "refused": refused}

    return one


def run_chunk(first: int, count: int, against: str) -> list[dict]:
    """Checks seeds in a process of its own, and in another one what is left where it died."""
    outcomes: list[dict] = []
    end = first + count
    while first < end:
        done, begun, why = _run_process(first, end - first, against)
        outcomes += done
        first = begun + 1
        if why:
            outcomes.append(_of_dead_process(begun, against, why))
    return outcomes


def _run_process(first: int, count: int, against: str) -> tuple[list[dict], int, str]:
    """What it finished, the last seed that it began, and why it ended early if it did."""
    command = [sys.executable, "-m", "tests.fuzz", "--against", against]
    command += ["--chunk", str(first), str(count)]
    status: int | str
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=environment(), capture_output=True, timeout=20.0 * count + 60
        )
        lines, errors, status = run.stdout, run.stderr, run.returncode
    except subprocess.TimeoutExpired as late:
        lines, errors, status = late.stdout or b"", late.stderr or b"", "timeout"
    text = errors.decode(errors="replace")
    messages = [json.loads(line) for line in lines.splitlines()]
    if not messages:
        raise SystemExit(f"fuzz: no program was begun ({status}):\n{text[-2000:]}")
    last = messages[-1]
    why = f"process ended with {status}: {text[-600:]}" if "begin" in last else ""
    return [m for m in messages if "seed" in m], last.get("begin", last.get("seed")), why


def _of_dead_process(seed: int, against: str, why: str) -> dict:
    """It may be the CPU backend's compiler that ended the process: tries again without."""
    if against == "cpu":
        done, _, dead_again = _run_process(seed, 1, "interpreter")
        if not dead_again:
            (outcome,) = done
            return {**outcome, "refused": {**outcome["refused"], "cpu": why}}
    return {"seed": seed, "differences": [why], "refused": {}}


def environment() -> dict[str, str]:
    flags = f"{os.environ.get('XLA_FLAGS', '')} {FLAGS}".strip()
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "IPUJAX_VERIFY": "1", "JAX_IPU_DEVICE_COUNT": "8"}
    return {**os.environ, **quiet, "JAX_PLATFORMS": "ipu,cpu", "XLA_FLAGS": flags}


def chunks(seed: int, count: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(seed, seed + count, size):
        yield first, min(size, seed + count - first)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--size", type=int, default=200, help="programs of one process")
    parser.add_argument("--against", default="cpu", choices=("cpu", "interpreter", "one-device"))
    parser.add_argument("--chunk", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chunk:
        chunk_main(*options.chunk, options.against)
        return 0
    begin = time.monotonic()
    done = failed = refused = interpreted = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        work = chunks(options.seed, options.count, options.size)
        for outcomes in pool.map(lambda part: run_chunk(*part, options.against), work):
            for outcome in outcomes:
                done += 1
                failed += bool(outcome["differences"])
                refused += "cpu" in outcome["refused"]
                wrong = outcome["refused"].get("cpu", "")
                if wrong:
                    line = wrong.splitlines()[0]
                    print(f"seed {outcome['seed']}: the CPU backend: {line}", flush=True)
                interpreted += outcome["seed"] % INTERPRETED == 0
                interpreted -= "interpreter" in outcome["refused"]
                for text in outcome["differences"][:3]:
                    print(f"seed {outcome['seed']}: {text.splitlines()[0]}", flush=True)
    if options.against == "one-device":
        interpreted = 0
    seconds = time.monotonic() - begin
    print(
        f"{done} random programs, {failed} mismatches; refused by the CPU, or wrong there: "
        f"{refused}; run by the interpreter too: {interpreted}; {seconds:.0f} s"
    )
    return 1 if failed or done != options.count else 0


if __name__ == "__main__":
    sys.exit(main())
