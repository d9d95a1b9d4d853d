"""The C++ tests of the build against an SDK: of popx, and of the backend without JAX."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / "build" / "against_sdk"


@pytest.mark.parametrize("name", ["test_edges", "test_host", "test_container"])
def test_cpp(name: str) -> None:
    binary = BUILD / name
    assert binary.exists(), f"{binary} is not built: run make sdkplugin"
    run = subprocess.run(
        [binary], env=dict(os.environ), capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
