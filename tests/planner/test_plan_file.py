"""Plan files: what may be edited, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.planner.plan_file import stages_of

WEIGHTS = [jnp.eye(4) * (1 + i) for i in range(3)]
BATCH = jnp.arange(24.0).reshape(2, 3, 4) / 24


def model(weights: Any, x: jax.Array) -> jax.Array:
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.mean(x**2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = ipu.plan_stages(model, (WEIGHTS, BATCH), ipus=(2, 2), micro_batches=2, reduction="mean")
    path = tmp_path_factory.mktemp("plans") / "plan.json"
    plan.save(path)
    assert ipu.Plan.load(path, model).data == plan.data
    return path


def edited(saved: Path, tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "edited.json"
    path.write_text(json.dumps(json.loads(saved.read_text()) | changes))
    return path


def test_stages_and_ipus_may_be_edited(saved: Path, tmp_path: Path) -> None:
    parts = dict.fromkeys(json.loads(saved.read_text())["parts"], 0)
    plan = ipu.Plan.load(edited(saved, tmp_path, parts=parts, device_mapping=[0]), model)
    assert "1 stages on 1 IPUs" in str(plan)
    got = jax.value_and_grad(ipu.pipeline(plan))(WEIGHTS, BATCH)
    wanted = jax.value_and_grad(lambda w: (model(w, BATCH[0]) + model(w, BATCH[1])) / 2)(WEIGHTS)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        assert jnp.allclose(a, b, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device_mapping": [0, "1"]}, "needs device_mapping to be a list of IPUs"),
        ({"device_mapping": [0, 1, 2]}, "needs parts in each of the 3 stages"),
        ({"parts": {"dot_general 0": -1}}, "needs parts to be the stage of each part"),
        ({"stages": 3}, r"unknown \['stages'\]"),
        ({"version": 2}, "needs version 1"),
        ({"schedule": "random"}, "needs schedule to be"),
        ({"micro_batches": True}, "needs micro_batches"),
        ({"costs": {"dot_general 0": 3}}, "needs costs"),
    ],
)
def test_what_is_no_plan_is_refused(
    saved: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ipu.PipelineError, match=message):
        ipu.Plan.load(edited(saved, tmp_path, **changes), model)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"dot_general 0": 0, "dot 1": 0, "dot_general 2": 1}, r"'dot 1'\. Use .*'dot_general 1'"),
        ({"dot_general 0": 0, "dot_general 2": 1}, r"got none for \['dot_general 1'\]"),
    ],
)
def test_parts_must_have_names_and_stages(
    saved: Path, tmp_path: Path, parts: dict[str, int], message: str
) -> None:
    with pytest.raises(ipu.PipelineError, match=message):
        ipu.Plan.load(edited(saved, tmp_path, parts=parts), model)
    plan = ipu.Plan.load(saved, model)
    plan.data.parts = parts
    with pytest.raises(ipu.PipelineError, match=message):
        ipu.pipeline(plan)(WEIGHTS, BATCH)


def test_stages_read_what_earlier_ones_made(saved: Path, tmp_path: Path) -> None:
    parts = {"dot_general 0": 0, "dot_general 1": 1, "dot_general 2": 0}
    plan = ipu.Plan.load(edited(saved, tmp_path, parts=parts), model)
    with pytest.raises(ipu.PipelineError, match="needs 'dot_general 1' of"):
        ipu.pipeline(plan)(WEIGHTS, BATCH)


NAMES = ["encoder/first/dot 0", "encoder/first/dot 1", "encoder/second/dot 0", "head"]


@pytest.mark.parametrize(
    ("parts", "stages"),
    [
        ({"encoder": 0, "head": 1}, [0, 0, 0, 1]),
        ({"head": 2, "encoder": 0, "encoder/second": 1}, [0, 0, 1, 2]),
        ({"encoder/first": 0, "encoder/first/dot 1": 1, "encoder": 2, "head": 2}, [0, 1, 2, 2]),
    ],
)
def test_blocks_stand_for_their_parts(parts: dict[str, int], stages: list[int]) -> None:
    assert stages_of(parts, NAMES, "the plan") == dict(zip(NAMES, stages, strict=True))


def test_a_plan_for_another_function_is_refused(saved: Path) -> None:
    def other(weights: Any, x: jax.Array) -> jax.Array:
        return model(weights, x) + 1

    for fun, batch in ((other, BATCH), (model, BATCH[:, :2])):
        with pytest.raises(ipu.PipelineError, match=r"needs the function and the shapes"):
            ipu.pipeline(ipu.Plan.load(saved, fun))(WEIGHTS, batch)
