"""`python -m tests.libraries`: runs user programs of libraries on the IPU and on the CPU backend.

Prints a line per program as its file is done, then why programs failed, then one line of counts.
Exit status 1 where any failed. `--only flax_nnx keras` runs the programs of these files.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

from tests.libraries.program import File, files
from tests.libraries.runner import Outcome, outcomes


def lines(file: File, found: list[Outcome]) -> list[str]:
    """The table's part for one file."""
    versions = ", ".join(f"{library} {version(library)}" for library in file.libraries)
    return [f"{file.path.stem} ({versions})", *map(_line, found)]


def _line(outcome: Outcome) -> str:
    program, seconds = outcome.program, outcome.seconds
    verdict = "passed" if outcome.passed else "FAILED"
    if outcome.passed and program.unrepaired:
        verdict = f"known defect: {program.unrepaired}"
    return (
        f"  {program.name:40} {seconds['ipu']:6.1f} s {seconds['cpu']:6.1f} s"
        f"  {outcome.difference:7.1e} of {program.tolerance:5.0e}  {verdict}"
    )


def why(file: File, outcome: Outcome) -> str:
    """What to read about a program that failed."""
    problem = outcome.problem or "passes now: delete its `unrepaired`"
    return f"\n{file.path.stem}.{outcome.program.name}: {problem}"


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.libraries", description=__doc__)
    known = {file.path.stem: file for file in files()}
    parser.add_argument("--only", nargs="+", choices=known, default=list(known), metavar="FILE")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one program")
    options = parser.parse_args()
    chosen = [known[name] for name in options.only]
    print(f"  {'program':40} {'IPU':>8} {'CPU':>8}  difference and tolerance", flush=True)
    passed, problems = 0, []
    with ThreadPoolExecutor(options.jobs) as pool:
        found_by_file = pool.map(lambda file: outcomes(file, options.timeout), chosen)
        for file, found in zip(chosen, found_by_file, strict=True):
            print("\n".join(lines(file, found)), flush=True)
            passed += sum(outcome.passed for outcome in found)
            problems += [why(file, outcome) for outcome in found if not outcome.passed]
    print(*problems, sep="\n")
    print(f"{passed} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
