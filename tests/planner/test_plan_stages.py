"""Plans: as good as the best cut, the same numbers as the plain function, and honest notes."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from tests.conftest import RunPython
from tests.planner.models import random_model

#: A plan's cycles are at most so much more than those of the best cut.
MOST = 1.05


def test_a_plan_is_as_good_as_the_best_cut(run_python: RunPython) -> None:
    """Two of the models of `python -m tests.planner`, which tries more."""
    done = run_python("-m", "tests.planner", "2", "0", env={"JAX_IPU_IPUS_PER_DEVICE": "4"})
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == 2
    assert [row for row in rows if row["plan"] > MOST or row["tuned"] > row["plan"]] == []


PIPELINES = """
import jax, jax.numpy as jnp, ipujax as ipu
from tests.planner.models import random_model
from tests.planner.__main__ import plan_of
from tests.stages.compare import difference

for seed in range(4):
    model = random_model(seed)
    pipeline = ipu.pipeline(plan_of(model, 4))
    got = jax.jit(jax.value_and_grad(pipeline))(model.weights, model.batch)

    def plain(weights):
        losses = [model.loss(weights, jax.tree.map(lambda x: x[i], model.batch)) for i in range(8)]
        return sum(losses) / 8

    print(difference(got, jax.jit(jax.value_and_grad(plain))(model.weights)))
"""


def test_a_planned_pipeline_gives_what_the_plain_function_gives(run_python: RunPython) -> None:
    done = run_python("-c", PIPELINES, env={"JAX_IPU_IPUS_PER_DEVICE": "4"})
    assert done.returncode == 0, done.stderr
    assert [float(line) < 5e-6 for line in done.stdout.split()] == [True] * 4, done.stdout


def test_notes_say_what_was_not_compiled_and_that_one_ipu_is_enough() -> None:
    model = random_model(0)
    args = (model.weights, model.batch)
    plan = ipu.plan_stages(model.loss, args, micro_batches=8, reduction="mean")
    assert "one IPU is enough" in str(plan)
    assert "not compiled: it needs" in str(plan)


NOTHING_FITS = """
import jax, jax.numpy as jnp, ipujax as ipu
weights = [jnp.ones((512, 512))] * 3
model = lambda weights, x: ((x @ weights[0]) @ weights[1]) @ weights[2]
plan = ipu.plan_stages(model, (weights, jnp.ones((2, 4, 512))), micro_batches=2)
print(plan)
"""


def test_notes_say_what_is_missing(run_python: RunPython) -> None:
    done = run_python("-c", NOTHING_FITS, env={"JAX_IPU_MODEL_NUM_TILES": "1"})
    assert done.returncode == 0, done.stderr
    pattern = r"nothing fits: IPU 1 needs .* bytes are missing on it; its largest part is 'dot_gene"
    assert re.search(pattern, done.stdout)


def test_equal_layers_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from ipujax.planner.costs import Pricing

    compiled: list[Any] = []
    measure = Pricing._measure
    monkeypatch.setattr(
        Pricing, "_measure", lambda *given: compiled.append(given) or measure(*given)
    )

    @jax.jit
    def layer(w: jax.Array, x: jax.Array) -> jax.Array:
        return x + jax.nn.relu(x @ w[0]) @ w[1]

    def model(weights: Any, x: jax.Array) -> jax.Array:
        for w in weights:
            x = layer(w, x)
        return jnp.mean(x**2)

    one = (jnp.ones((64, 128)), jnp.ones((128, 64)))
    start = time.process_time()
    plan = ipu.plan_stages(
        model, ([one] * 24, jnp.ones((16, 8, 64))), ipus=(8, 8), micro_batches=16, reduction="mean"
    )
    assert time.process_time() - start < 60
    assert len(compiled) <= 6  # first, middle and last layers, with and without FIFOs
    places = list(plan.parts.values())
    assert len(places) == 24
    assert set(places) == set(range(8))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"ipus": (3, 2)}, ipu.PipelineError, "needs ipus to be the least and the greatest"),
        ({"ipus": (16, 64)}, ipu.PipelineError, "needs at least 16 parts for 16 IPUs"),
        ({"priority": "speed"}, ipu.PipelineError, "needs priority to be one of cycles, memory"),
        ({"micro_batches": 3}, ipu.PipelineError, "needs batched arguments with the leading axis"),
    ],
)
def test_bad_arguments(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    model = random_model(0)
    options: dict[str, Any] = {"micro_batches": 8, **changes}
    with pytest.raises(error, match=message):
        ipu.plan_stages(model.loss, (model.weights, model.batch), **options)


def test_functions_with_stages_are_refused() -> None:
    fun = ipu.stage(lambda w, x: x @ w)
    with pytest.raises(ipu.PipelineError, match="needs a function without stages"):
        ipu.plan_stages(fun, (jnp.ones((2, 2)), jnp.ones((1, 2, 2))), micro_batches=1)
