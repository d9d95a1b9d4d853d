"""Two thousand altered executables; `make mutants` runs a hundred thousand under the sanitizers."""

from __future__ import annotations

import os
from pathlib import Path

from tests.mutants.__main__ import ROOT, run

BINARIES = Path(os.environ.get("IPUJAX_CPP_TESTS", ROOT / "build" / "release" / "tests"))


def test_altered_executables_are_refused_or_run(tmp_path):
    binary = BINARIES / "mutants"
    assert binary.exists(), f"{binary} is not built: run make cpp"
    finished = run(binary, first=0, count=2000, jobs=2, failures=tmp_path)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    counts = finished.stdout.splitlines()[-1]
    assert "signals 0, hangs 0" in counts
