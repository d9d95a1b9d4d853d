"""What is measured in C++: codelets beside plain loops, and the run-time session beside the engine.

Both are tests that also print what they took; see cpp/model/tests.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

from ipujax.errors import ConfigError
from tests.bench.row import Row
from tests.test_cpp import BINARIES

CODELETS = [f"codelet of {n} elements over a plain loop" for n in (64, 512)]
SESSIONS = [f"session of {n} threads over the engine" for n in (1, 2, 8)]
NAMES = (*CODELETS, *SESSIONS)
#: Each program, what it measures and the largest value allowed; 1 / 0.9 is 90 % of the throughput.
PROGRAMS = (
    ("engine_test_codelet_speed", CODELETS, 3.0),
    ("embedded_test_throughput", SESSIONS, 1 / 0.9),
)
_MEASURED = re.compile(
    r"^measured: (?P<name>.+): (?P<value>[\d.]+) \((?P<detail>.*)\)$", re.MULTILINE
)


def rows(wanted: str) -> Iterator[Row]:
    """The rows whose name contains `wanted`, a text in lower case.

    Raises:
        ConfigError: the C++ tests are not built.
    """
    for program, names, bound in PROGRAMS:
        if any(wanted in name for name in names):
            for row in measured(_output(program), bound):
                if wanted in row.name:
                    yield row


def measured(output: str, bound: float) -> list[Row]:
    """What a program's output says."""
    return [
        Row(found["name"], float(found["value"]), bound, found["detail"])
        for found in _MEASURED.finditer(output)
    ]


def _output(program: str) -> str:
    binary = BINARIES / program
    if not binary.exists():
        raise ConfigError(
            f"[bench] needs {program}, a C++ test; it is not in {BINARIES}. Run make cpp, or "
            "choose other rows by --only."
        )
    return subprocess.run([binary], capture_output=True, text=True, check=True).stdout
