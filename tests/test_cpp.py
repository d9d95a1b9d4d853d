"""Runs the C++ tests, one case for each source file; `make cpp` builds them."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: A sanitizer makes some of them ten times slower.
TIMEOUT_SECONDS = 1200
BINARIES = Path(os.environ.get("IPUJAX_CPP_TESTS", ROOT / "build" / "release" / "tests"))
SOURCES = sorted(
    source
    for folder in ("cpp/model/tests", "tests/cpp")
    for source in (ROOT / folder).glob("*/test_*.cpp")
)


#: Run once more with each lesser instruction set, since they choose their kernels at run time.
BY_INSTRUCTION_SET = (
    "test_gemm",
    "test_integer_gemm",
    "test_convolution_kernel",
    "test_expr_program",
    "test_division",
    "test_loop_scalars",
)
RUNS = [(source, "") for source in SOURCES] + [
    (source, isa)
    for source in SOURCES
    if source.stem in BY_INSTRUCTION_SET
    for isa in ("baseline", "avx2")
]


@pytest.mark.parametrize(
    ("source", "isa"), RUNS, ids=[f"{s.parent.name}/{s.stem}{isa and '-' + isa}" for s, isa in RUNS]
)
def test_cpp(source: Path, isa: str) -> None:
    binary = BINARIES / f"{source.parent.name}_{source.stem}"
    assert binary.exists(), f"{binary} is not built: run make cpp"
    run = subprocess.run(
        [binary],
        cwd=BINARIES.parent,  # what ccache makes relative in names of sources is so to this folder
        env={**os.environ, **({"IPUJAX_MAX_ISA": isa} if isa else {})},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
