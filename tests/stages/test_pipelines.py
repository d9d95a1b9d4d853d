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
    assert [row["model"] for row in rows if not row.get("equals sequential", True)] == []
    return {row["model"]: row["difference"] for row in rows}


@pytest.mark.parametrize(
    "options",
    [
        ("grouped", "mean", "off", "0"),
        ("grouped", "running_mean", "on", "1"),
        ("interleaved", "sum", "off", "2"),
        ("interleaved", "mean", "on", "3"),
        ("sequential", "running_mean", "off", "4"),
        ("sequential", "sum", "on", "5"),
        ("serialized", "sum", "off", "6"),
    ],
    ids=lambda options: f"{options[0]}-remat {options[2]}",
)
def test_a_pipeline_equals_the_plain_function(
    run_python: RunPython, options: tuple[str, ...]
) -> None:
    """Every other model; `python -m tests.stages.compare` runs all, on all numbers of IPUs."""
    models = list(MODELS)[(int(options[3]) + 1) // 2 % 2 :: 2]
    found = compare(run_python, "ipu,cpu", 8, *options, *models)
    assert list(found) == models
    wrong = {name: diff for name, diff in found.items() if diff > TOLERANCES.get(name, TOLERANCE)}
    assert wrong == {}


def test_stages_are_plain_calls_on_other_platforms(run_python: RunPython) -> None:
    found = compare(run_python, "cpu", 1, "grouped", "mean", "off", "0", *list(MODELS)[::3])
    wrong = {name: diff for name, diff in found.items() if diff > TOLERANCES.get(name, TOLERANCE)}
    assert wrong == {}


@pytest.mark.parametrize(
    "schedule", ["grouped", "grouped remat", "interleaved", "sequential remat", "serialized remat"]
)
def test_pipelines_compose_with_transformations(run_python: RunPython, schedule: str) -> None:
    found = compare(run_python, "ipu,cpu", 3, schedule, module="tests.stages.compositions")
    assert len(found) == 19
    wrong = {name: diff for name, diff in found.items() if diff > TOLERANCES.get(name, 1e-5)}
    assert wrong == {}
