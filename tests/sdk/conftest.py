"""What programs and ops give in both builds: in child processes, as a process has one extension."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "build" / "against_sdk" / "extension"
#: What makes a process use the extension that was built against the folder of `make sdk`.
SDK = {"IPUJAX_EXTENSION": str(EXTENSION), "IPUJAX_MODEL_AS_IPU": "1"}

Results = dict[str, dict[str, Any]]
Run = Callable[..., Results]


@pytest.fixture(scope="session")
def sdk_environment() -> dict[str, str]:
    assert any(EXTENSION.glob("_poplar.*")), f"{EXTENSION} is empty: run make sdkplugin"
    return SDK


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory, sdk_environment: dict[str, str]) -> Run:
    """`results(kind, build)`: of a worker, by name; each is run once."""
    known: dict[tuple[str, str], Results] = {}

    def run(kind: str, build: str) -> Results:
        if (kind, build) not in known:
            file = tmp_path_factory.mktemp("results") / f"{kind}.pickle"
            known[kind, build] = _work(kind, file, sdk_environment if build == "sdk" else {})
        return known[kind, build]

    return run


def _work(kind: str, file: Path, environment: dict[str, str]) -> Results:
    ipus = "2" if kind == "staged" else "1"
    run = subprocess.run(
        [sys.executable, "-m", "tests.sdk.worker", kind, str(file)],
        env={
            **os.environ,
            "JAX_PLATFORMS": "ipu,cpu",
            "JAX_IPU_DEVICE_COUNT": "4",
            "JAX_IPU_IPUS_PER_DEVICE": ipus,
            "JAX_IPU_MODEL_NUM_TILES": "64",
            **environment,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    results: Results = pickle.loads(file.read_bytes())
    return results
