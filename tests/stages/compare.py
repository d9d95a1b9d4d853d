"""Runs the models of `models` as pipelines and as plain loops, on the default platform.

`python -m tests.stages.compare SCHEDULES REDUCTIONS REMAT [MODEL...]`, each of the first three one
word or several with commas, such as `grouped,interleaved,sequential mean,sum off,on` for all.
Prints one JSON object for each: the largest difference of value and gradients, relative to the
largest element. Run as a process of its own, whose environment sets the number of IPUs of a device.
"""

from __future__ import annotations

import itertools
import json
import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

import ipujax as ipu
from tests.stages.models import MODELS, Model


def losses(model: Model, schedule: str, reduction: str, remat: bool = False) -> tuple[Any, Any]:
    """The pipeline and the plain function, of (parameters, batch); a sum for running means."""
    options = {"remat": True} if remat else {}
    pipeline = ipu.pipeline(
        model.stages,
        micro_batches=model.micro_batches,
        schedule=schedule,
        reduction=reduction,
        **{**options, **model.options},
    )

    def plain(parameters: Any, batch: Any) -> Any:
        def add(total: Any, micro_batch: Any) -> Any:
            return total + model.plain(parameters, micro_batch).astype(total.dtype), None

        like = jax.eval_shape(lambda: model.plain(parameters, jax.tree.map(lambda x: x[0], batch)))
        total, _ = jax.lax.scan(add, jnp.zeros(like.shape, like.dtype), batch)
        return total / model.micro_batches if reduction == "mean" else total

    return pipeline, plain


def difference(got: Any, wanted: Any) -> float:
    worst = 0.0
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        a, b = a.astype(jnp.float32), b.astype(jnp.float32)
        largest = float(jnp.max(jnp.abs(b))) or 1.0
        worst = max(worst, float(jnp.max(jnp.abs(a - b))) / largest)
    return worst


def main(schedules: str, reductions: str, remats: str, names: list[str]) -> None:
    options = [text.split(",") for text in (schedules, reductions, remats)]
    for name, schedule, reduction, remat in itertools.product(names or MODELS, *options):
        model = MODELS[name]()
        pipeline, plain = losses(model, schedule, reduction, remat == "on")
        got = jax.jit(jax.value_and_grad(pipeline))(model.parameters, model.batch)
        wanted = jax.jit(jax.value_and_grad(plain))(model.parameters, model.batch)
        if reduction == "running_mean":  # of each micro-batch's own value and gradient
            wanted = jax.tree.map(partial(jnp.multiply, 1 / model.micro_batches), wanted)
        facts = {"schedule": schedule, "reduction": reduction, "remat": remat}
        row = {"model": name, "difference": difference(got, wanted), **facts}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], sys.argv[4:])
