"""1,000 calls leave nothing behind in the build against an SDK."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.sdk.conftest import ROOT

#: What allocators and Python keep: 500 bytes for each call. Most arrays have 2 KB or more.
MOST_BYTES = 500_000
CASES = ("same_arguments", "new_arguments", "donated", "by_turns", "callback", "replicas")


@pytest.fixture(scope="module")
def growth(sdk_environment: dict[str, str]) -> dict[str, int]:
    environment = {"JAX_PLATFORMS": "ipu,cpu", "JAX_IPU_MODEL_NUM_TILES": "16", **sdk_environment}
    run = subprocess.run(
        [sys.executable, "-m", "tests.sdk.growth"],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, int] = json.loads(run.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("case", CASES)
def test_calls_leave_nothing(case: str, growth: dict[str, int]) -> None:
    assert growth[case] < MOST_BYTES


def test_all_cases_are_known(growth: dict[str, int]) -> None:
    assert set(growth) == set(CASES)
