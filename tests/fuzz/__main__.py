"""`python -m tests.fuzz --count 10000 --seed 0`: that many random programs, in chunks of processes.

With `--sharded` each runs over several devices, its arguments dealt at random. Equal seeds make
equal programs. Ends with one line of counts; exit status 1 where any differed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAGS = "--xla_allow_excess_precision=false --xla_backend_optimization_level=0"
#: Every how many programs the reference interpreter runs too.
INTERPRETED = 5


def chunk_main(first: int, count: int, sharded: bool) -> None:
    """Checks seeds in this process; a line of JSON for each."""
    (_check_sharded if sharded else _check_on_one)(range(first, first + count))


def _check_sharded(seeds: range) -> None:
    from tests.fuzz.sharded import differences, from_seed

    for seed in seeds:
        print(json.dumps({"begin": seed}), flush=True)
        found = differences(from_seed(seed))
        print(json.dumps({"seed": seed, "differences": found, "refused": {}}), flush=True)


def _check_on_one(seeds: range) -> None:
    from ipujax.verification.oracles import Oracle
    from tests.fuzz.check import check, on_platform
    from tests.fuzz.generator import from_seed

    interpreter = Oracle("interpreter")
    for seed in seeds:
        print(json.dumps({"begin": seed}), flush=True)
        oracles = {"cpu": on_platform("cpu")}
        if seed % INTERPRETED == 0:
            oracles["interpreter"] = interpreter.run
        outcome = check(from_seed(seed), oracles, interpreter.run)
        refused = {name: text[:200] for name, text in outcome.refused.items()}
        line = {"seed": seed, "differences": outcome.differences, "refused": refused}
        print(json.dumps(line), flush=True)
    interpreter.close()


def run_chunk(first: int, count: int, timeout: float, sharded: bool) -> list[dict]:
    """Checks seeds in a process of its own, and in another one what is left where it died."""
    outcomes: list[dict] = []
    end = first + count
    while first < end:
        command = [sys.executable, "-m", "tests.fuzz", "--chunk", str(first), str(end - first)]
        command += ["--sharded"] * sharded
        status: int | str
        try:
            run = subprocess.run(
                command, cwd=ROOT, env=environment(), capture_output=True, timeout=timeout
            )
            lines, errors, status = run.stdout, run.stderr, run.returncode
        except subprocess.TimeoutExpired as late:
            lines, errors, status = late.stdout or b"", late.stderr or b"", "timeout"
        messages = [json.loads(line) for line in lines.splitlines()]
        outcomes += [m for m in messages if "seed" in m]
        if not messages:
            raise SystemExit(f"fuzz: no program was begun ({status}):\n{errors.decode()[-2000:]}")
        first = messages[-1].get("begin", messages[-1].get("seed", first))
        if "begin" in messages[-1]:
            text = f"process ended with {status}: {errors.decode(errors='replace')[-600:]}"
            outcomes.append({"seed": first, "differences": [text], "refused": {}})
        first += 1
    return outcomes


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
    parser.add_argument("--sharded", action="store_true", help="over several devices")
    parser.add_argument("--chunk", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.chunk:
        chunk_main(*options.chunk, options.sharded)
        return 0
    begin = time.monotonic()
    done = failed = refused = interpreted = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        work = chunks(options.seed, options.count, options.size)
        check = partial(run_chunk, timeout=20.0 * options.size, sharded=options.sharded)
        for outcomes in pool.map(lambda part: check(*part), work):
            for outcome in outcomes:
                done += 1
                failed += bool(outcome["differences"])
                refused += "cpu" in outcome["refused"]
                wrong = outcome["refused"].get("cpu", "")
                if wrong:
                    print(f"seed {outcome['seed']}: the CPU backend: {wrong}", flush=True)
                interpreted += outcome["seed"] % INTERPRETED == 0 and not options.sharded
                interpreted -= "interpreter" in outcome["refused"]
                for text in outcome["differences"][:3]:
                    print(f"seed {outcome['seed']}: {text.splitlines()[0]}", flush=True)
    seconds = time.monotonic() - begin
    print(
        f"{done} random programs, {failed} mismatches; refused by the CPU, or wrong there: "
        f"{refused}; run by the interpreter too: {interpreted}; {seconds:.0f} s"
    )
    return 1 if failed or done != options.count else 0


if __name__ == "__main__":
    sys.exit(main())
