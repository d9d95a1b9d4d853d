"""`python -m tests.mutants --binary build/release/tests/mutants --count 2000`: altered executables.

Compiles the corpus, then alters, loads and runs executables in child processes. The last line has
the counts; the exit status is 1 if any crashed or hung.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("JAX_IPU_DEVICE_COUNT", "2")


def run(
    binary: Path,
    *,
    first: int,
    count: int,
    jobs: int,
    failures: Path,
    environment: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Writes the corpus to a temporary folder and runs the mutants `first` to `first + count`."""
    from tests.mutants import corpus

    with tempfile.TemporaryDirectory() as scratch:
        # The corpus has codelets, which different processes compile and run.
        trusted = Path(scratch, "trusted")
        trusted.mkdir(mode=0o700)
        images = Path(scratch, "images")
        images.mkdir()
        corpus.write(images)
        command = [binary, images, first, count, jobs, failures]
        more = {**(environment or {}), "IPUJAX_TRUST_NATIVE_CODE": str(trusted)}
        return subprocess.run(
            [str(word) for word in command],
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=False,
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--binary", type=Path, default=ROOT / "build/release/tests/mutants")
    parser.add_argument("--first", type=int, default=0, help="number of the first mutant")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--failures", type=Path, default=ROOT / "build/mutants")
    given = parser.parse_args()
    finished = run(
        given.binary,
        first=given.first,
        count=given.count,
        jobs=given.jobs,
        failures=given.failures,
    )
    print(finished.stdout + finished.stderr, end="")
    return finished.returncode


if __name__ == "__main__":
    sys.exit(main())
