"""Pipelines give what the plain function gives: every model, in every schedule."""

from __future__ import annotations

import json

import pytest

from tests.conftest import RunPython
from tests.stages.models import MODELS

#: Relative to the largest element; sums over micro-batches are added in another order than by XLA.
TOLERANCES = {"half_precision": 2e-3, "scaled": 2e-3}
TOLERANCE = 2e-6


def compare(
    run_python: RunPython,
    platform: str,
    ipus: int,
    *arguments: str,
    module: str = "tests.stages.compare",
) -> dict[str, float]:
    """The largest relative difference of each model."""
    env = {"JAX_PLATFORMS": platform, "JAX_IPU_IPUS_PER_DEVICE": str(ipus)}
    done = run_python("-m", module, *arguments, env=env)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["model"]: row["difference"] for row in rows}


@pytest.mark.parametrize(
    "options",
    [
        ("grouped", "mean", "off"),
        ("interleaved", "sum", "on"),
        ("sequential", "running_mean", "off"),
    ],
    ids=lambda options: options[0],
)
def test_a_pipeline_equals_the_plain_function(
    run_python: RunPython, options: tuple[str, str, str]
) -> None:
    """A sample; `python -m tests.stages.compare` runs all."""
    found = compare(run_python, "ipu,cpu", 8, *options)
    assert found.keys() == MODELS.keys()
    wrong = {name: diff for name, diff in found.items() if diff > TOLERANCES.get(name, TOLERANCE)}
    assert wrong == {}


def test_stages_are_plain_calls_on_other_platforms(run_python: RunPython) -> None:
    found = compare(run_python, "cpu", 1, "grouped", "mean", "off")
    wrong = {name: diff for name, diff in found.items() if diff > TOLERANCES.get(name, TOLERANCE)}
    assert wrong == {}


@pytest.mark.parametrize("schedule", ["grouped", "interleaved", "sequential"])
def test_pipelines_compose_with_transformations(run_python: RunPython, schedule: str) -> None:
    found = compare(run_python, "ipu,cpu", 3, schedule, module="tests.stages.compositions")
    assert len(found) == 18
    wrong = {name: diff for name, diff in found.items() if diff > TOLERANCES.get(name, 1e-5)}
    assert wrong == {}
