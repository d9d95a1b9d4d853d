"""Ctrl-C with the extension that was built against the folder of `make sdk`."""

from __future__ import annotations

import json

import pytest

from tests.conftest import RunPython


@pytest.mark.parametrize("tiles", [1, 8])
def test_ctrl_c_ends_a_codelet_that_does_not(
    run_python: RunPython, sdk_environment: dict[str, str], tiles: int
) -> None:
    run = run_python("-m", "tests.endless_codelet", str(tiles), env=sdk_environment, timeout=120)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == [["interrupted"] * 2, [0.0] * 2 * tiles]
