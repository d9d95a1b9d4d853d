"""The tests of custom ops, host calls of libraries too, by the build against an SDK."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.sdk.conftest import ROOT

FILES = (
    "test_custom_op.py",
    "test_custom_op_interface.py",
    "test_custom_op_transforms.py",
    "test_host_call.py",
)
#: What public names do not tell. Poplar does not say what a program writes, nor where steps of a
#: program come from, and the guard of users' code is the model's.
NOT_KNOWN = (
    "test_what_would_end_the_process",
    "test_constructors_of_libraries_are_guarded",
    "test_places_are_the_users",
    "test_what_functions_must_not_do and alone",  # the inputs that its metadata does not name
)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES)
def test_same_as_by_the_model(file: str, sdk_environment: dict[str, str]) -> None:
    unwanted = " and ".join(f"not ({name})" for name in NOT_KNOWN)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", unwanted, f"tests/api/custom/{file}"],
        env={**os.environ, **sdk_environment, "IPUJAX_TESTS_ON_SDK": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
