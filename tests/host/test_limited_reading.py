"""Reading that does not end is ended; a busy machine does not end any other."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from ipujax.convert.reading import read_program
from ipujax.errors import ConvertError
from tests.conftest import RunPython

READ = """
import time
from ipujax.host import limited_reading as limited
limited.SECONDS = 0.2
with limited.limited_reading(b""):
"""


@pytest.mark.parametrize(
    ("work", "code"), [("    while True: pass", -signal.SIGVTALRM), ("    time.sleep(1)", 0)]
)
def test_only_work_counts(work: str, code: int, run_python: RunPython) -> None:
    assert run_python("-c", READ + work).returncode == code


def test_a_program_that_takes_too_long_is_refused(tmp_path: Path, monkeypatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -VTALRM $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    (tmp_path / "model.jax").write_bytes(b"anything")
    with pytest.raises(ConvertError, match="got bytes that jaxlib does not finish reading"):
        read_program(tmp_path / "model.jax")
