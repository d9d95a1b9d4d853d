"""Runs every model of `models` as a pipeline and as a plain loop, on the default platform.

Prints one JSON object for each: the largest difference of value and gradients, relative to the
largest element. Run as a process of its own, whose environment sets the number of IPUs of a device.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import jax
import jax.numpy as jnp

import ipujax as ipu
from tests.stages.models import MODELS, Model


def losses(model: Model, schedule: str, reduction: str) -> tuple[Any, Any]:
    """The pipeline and the plain function, of (parameters, batch)."""
    pipeline = ipu.pipeline(
        model.stages,
        micro_batches=model.micro_batches,
        schedule=schedule,
        reduction=reduction,
        **model.options,
    )

    def plain(parameters: Any, batch: Any) -> Any:
        def add(total: Any, micro_batch: Any) -> Any:
            return total + model.plain(parameters, micro_batch).astype(total.dtype), None

        like = jax.eval_shape(lambda: model.plain(parameters, jax.tree.map(lambda x: x[0], batch)))
        total, _ = jax.lax.scan(add, jnp.zeros(like.shape, like.dtype), batch)
        return total if reduction == "sum" else total / model.micro_batches

    return pipeline, plain


def difference(got: Any, wanted: Any) -> float:
    worst = 0.0
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        a, b = a.astype(jnp.float32), b.astype(jnp.float32)
        largest = float(jnp.max(jnp.abs(b))) or 1.0
        worst = max(worst, float(jnp.max(jnp.abs(a - b))) / largest)
    return worst


def main(schedule: str, reduction: str, names: list[str]) -> None:
    for name in names or MODELS:
        model = MODELS[name]()
        pipeline, plain = losses(model, schedule, reduction)
        got = jax.jit(jax.value_and_grad(pipeline))(model.parameters, model.batch)
        wanted = jax.jit(jax.value_and_grad(plain))(model.parameters, model.batch)
        row = {"model": name, "difference": difference(got, wanted)}
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
