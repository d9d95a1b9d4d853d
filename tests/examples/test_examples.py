"""Every example runs on the IPU and ends with its checked number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def _run(run_python, name: str) -> str:
    run = run_python(EXAMPLES / name)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "IpuDevice(id=0)" in run.stdout
    return run.stdout


def test_quickstart(run_python):
    shown = _run(run_python, "quickstart/quickstart.py")
    assert "cost of one call" in shown


@pytest.mark.parametrize("name", ["digits_mlp", "digits_cnn"])
def test_digits(run_python, name: str):
    shown = _run(run_python, f"models/{name}.py")
    (accuracy,) = re.findall(r"test accuracy: ([\d.]+)", shown)
    assert float(accuracy) >= 0.97
    assert re.search(r"training step on one IPU: [\d,]+ cycles", shown)


@pytest.mark.slow
def test_transformer(run_python):
    shown = _run(run_python, "models/transformer.py")
    (difference,) = re.findall(r"CPU backend's loss curve: ([\d.e+-]+)", shown)
    assert float(difference) < 1e-4


def test_every_script_is_run_here():
    scripts = {path.stem for path in EXAMPLES.glob("*/*.py") if "__main__" in path.read_text()}
    assert scripts == {"quickstart", "digits_mlp", "digits_cnn", "transformer"}
