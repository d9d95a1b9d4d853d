"""Runs the C++ tests, one case for each source file; `make cpp` builds them."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: A sanitizer makes some of them ten times slower.
TIMEOUT_SECONDS = 1200
BINARIES = Path(os.environ.get("IPUJAX_CPP_TESTS", ROOT / "build" / "release" / "tests"))
SOURCES = sorted((ROOT / "tests" / "cpp").glob("*/test_*.cpp"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_cpp(source: Path) -> None:
    binary = BINARIES / f"{source.parent.name}_{source.stem}"
    assert binary.exists(), f"{binary} is not built: run make cpp"
    run = subprocess.run(
        [binary], capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
