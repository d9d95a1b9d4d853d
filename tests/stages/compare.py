"""Runs the models of `models` as pipelines and as plain loops, on the default platform.

`python -m tests.stages.compare SCHEDULES REDUCTIONS REMAT TURNS [MODEL...]`, each of the first four
one word or several with commas, such as `grouped,interleaved,sequential mean,sum off,on 0,1,2,3`.
A model of S stages is on 1 to S IPUs by turns, from model to model and with the number of the turn.
Prints one JSON object for each: the largest difference of value and gradients, relative to the
largest element. Run as a process of its own, whose environment sets the number of IPUs of a device.
"""

from __future__ import annotations

import itertools
import json
import sys
from functools import partial
from inspect import isfunction
from typing import Any

import jax
import jax.numpy as jnp

import ipujax as ipu
from tests.stages.models import MODELS, Model, schedule_options


def on_ipus(stages: Any, turn: int) -> dict[str, Any]:
    """The option that puts stages on some number of IPUs, unless they have places of their own."""
    if not isinstance(stages, list) or not all(isfunction(stage) for stage in stages):
        return {}
    return {"device_mapping": [i % (1 + turn % len(stages)) for i in range(len(stages))]}


def losses(model: Model, schedule: str, reduction: str, **options: Any) -> tuple[Any, Any]:
    """The pipeline and the plain function, of (parameters, batch); a sum for running means."""
    pipeline = ipu.pipeline(
        model.stages,
        micro_batches=model.micro_batches,
        reduction=reduction,
        **{**options, **schedule_options(schedule), **model.options},
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


def values_of(loss: Any, model: Model) -> Any:
    """The value and the gradients."""
    return jax.jit(jax.value_and_grad(loss))(model.parameters, model.batch)


def has_equal_bits(got: Any, wanted: Any) -> bool:
    return all(jax.tree.leaves(jax.tree.map(jnp.array_equal, got, wanted)))


def main(names: list[str], *choices: str) -> None:
    options = [text.split(",") for text in choices]
    for name, schedule, reduction, remat, turn in itertools.product(names or MODELS, *options):
        model = MODELS[name]()
        ipus = on_ipus(model.stages, list(MODELS).index(name) + int(turn))
        own = {"remat": remat == "on"} | ipus
        pipeline, plain = losses(model, schedule, reduction, **own)
        got, wanted = values_of(pipeline, model), values_of(plain, model)
        if reduction == "running_mean":  # of each micro-batch's own value and gradient
            wanted = jax.tree.map(partial(jnp.multiply, 1 / model.micro_batches), wanted)
        facts = {"schedule": schedule, "reduction": reduction, "remat": remat} | ipus
        row = {"model": name, "difference": difference(got, wanted), **facts}
        if schedule == "serialized":  # each sum has the same terms in the same order
            other = values_of(losses(model, "sequential", reduction, **own)[0], model)
            row["equals sequential"] = has_equal_bits(got, other)
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[5:], *sys.argv[1:5])
