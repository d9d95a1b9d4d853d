"""`python -m tests.fuzz --count 10000 --seed 0`: that many random programs, in chunks of processes.

Kinds: `programs` as people write them, their `gradients`, programs of single `ops` with error
bounds, `sharded` ones over several devices, those over `meshes` with explicit and automatic axes,
`pipelines` over several IPUs, `composed` transforms of ipujax and of JAX, calls of the
`library`, which is `ipu.nn` and `ipu.ops` (`--each 200`: of each function), of all `functions` of
JAX's namespaces with their derivatives, `training`: networks of flax, optimizers of optax, and
`dtypes`: calls of all these functions with every dtype, and with empty dimensions.
Equal seeds make equal programs. A chunk draws its number of threads and its instruction set from
its first seed.
Ends with one line of counts; exit status 1 where any differed. `--log FILE` writes down every chunk
that is done, and a later run with the same file goes on from there. `--show SEED` prints a program,
made smaller if it fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz import chunks

#: Who refuses in an outcome, where it is ipujax; "pipeline": it runs one stage at a time.
OURS = frozenset({"ipu", "composition", "pipeline"})


def main() -> int:
    options = _arguments()
    if options.chunk:
        chunks.chunk_main(*options.chunk, options.kind, options.how)
        return 0
    if options.show is not None:
        return _show(options)
    begin = time.monotonic()
    done = failed = refused = refused_here = bugs = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        work = chunks.chunks(options.seed, options.count, options.size)
        log = chunks.Log(options.log, options.kind, options.how)
        for outcomes in pool.map(log.outcomes, work):
            for outcome in outcomes:
                done += 1
                failed += bool(outcome["differences"])
                is_here = not OURS.isdisjoint(outcome["refused"])
                refused_here += is_here
                refused += bool(outcome["refused"]) and not is_here
                bugs += outcome.get("bugs", 0)
                _print(outcome)
    seconds = time.monotonic() - begin
    print(
        f"{done} random {options.kind}, {failed} mismatches, {bugs} bugs of the compiler; refused "
        f"by ipujax with a stated reason: {refused_here}; refused by an oracle, or wrong "
        f"there alone: {refused}; {seconds:.0f} s"
    )
    return 1 if failed or done != options.count else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.fuzz", description=__doc__)
    parser.add_argument("--kind", default="programs", choices=chunks.KINDS)
    parser.add_argument("--count", type=int, default=1000, help="programs")
    parser.add_argument("--each", type=int, help="calls of each function, of kind library")
    parser.add_argument("--seed", type=int, default=0, help="of the first program")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--size", type=int, default=200, help="programs of one process")
    parser.add_argument(
        "--how",
        default="cpu",
        choices=("cpu", "interpreter", "each", "none"),
        help="each: run without every mechanism of the engine; none: without none of them; "
        "interpreter: without JAX's CPU backend",
    )
    parser.add_argument("--log", type=Path, help="a file of finished chunks, to go on from")
    parser.add_argument("--show", type=int, metavar="SEED", help="print this seed's program")
    parser.add_argument("--chunk", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.each is not None:
        from tests.fuzz.library.generators import GENERATORS

        options.kind, options.count = "library", options.each * len(GENERATORS)
    return options


def _print(outcome: dict) -> None:
    for oracle, text in outcome["refused"].items():
        print(f"seed {outcome['seed']}: {oracle}: {(text.splitlines() or [''])[0][:200]}")
    for text in outcome["differences"][:3]:
        print(f"seed {outcome['seed']}: {text.splitlines()[0]}", flush=True)


def _show(options: argparse.Namespace) -> int:
    """In a process that has the environment of the seed's chunk."""
    first = options.seed + (options.show - options.seed) // options.size * options.size
    own = {kind: kind for kind in ("pipelines", "composed", "library", "meshes")}
    own |= {"functions": "functions", "training": "functions", "dtypes": "functions"}
    module = own.get(options.kind, "programs")
    command = [sys.executable, "-m", f"tests.fuzz.{module}.show", options.kind, options.how]
    run = subprocess.run(
        [*command, str(options.show)], env=chunks.environment(first, options.kind), check=False
    )
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
