"""Pipelines inside JAX's transformations, with stages on IPUs of their own.

Prints one JSON object for each composition, as `compare` does. Run as a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import ipujax as ipu
from tests.api import test_pipeline as model
from tests.stages.compare import difference

WEIGHTS, BATCH = model.WEIGHTS, model.BATCH
DERIVED: list[Callable[[Any], Any]] = [
    model.hessian_product,
    model.gradient_of_gradient,
    model.regularised,
    model.over_models,
    model.forward_mode,
    model.checkpointed,
    model.by_batch,
]


def pipeline(fun: Any, schedule: str) -> Any:
    return ipu.pipeline(fun, micro_batches=4, reduction="mean", schedule=schedule)


def checkpoints_around_stages(schedule: str) -> tuple[Any, Any]:
    stages = [jax.checkpoint(ipu.stage(f, ipu=i)) for i, f in enumerate(model.STAGES)]

    def whole(weights: Any, x: jax.Array) -> jax.Array:
        for stage, own in zip(stages, weights, strict=True):
            x = stage(own, x)
        return x

    got = jax.jit(jax.value_and_grad(pipeline(whole, schedule)))(WEIGHTS, BATCH)
    return got, jax.value_and_grad(model.plain)(WEIGHTS, BATCH)


def replicas(schedule: str) -> tuple[Any, Any]:
    @ipu.pmap(in_axes=(None, 0), out_axes=None)
    def step(weights: Any, batch: jax.Array) -> Any:
        return ipu.cross_replica_mean(jax.grad(pipeline(model.STAGES, schedule))(weights, batch))

    both = [jax.grad(model.plain)(WEIGHTS, batch) for batch in (BATCH, BATCH + 1)]
    mean = jax.tree.map(lambda a, b: (a + b) / 2, *both)
    return step(WEIGHTS, jnp.stack([BATCH, BATCH + 1])), mean


def training_loop(schedule: str) -> tuple[Any, Any]:
    optimizer = optax.adam(0.05)

    def train(loss: Any) -> Any:
        def step(carried: Any, _: None) -> Any:
            weights, state = carried
            value, gradients = jax.value_and_grad(loss)(weights, BATCH)
            updates, state = optimizer.update(gradients, state, weights)
            return (optax.apply_updates(weights, updates), state), value

        start = (WEIGHTS, optimizer.init(WEIGHTS))
        return jax.jit(lambda: jax.lax.scan(step, start, None, length=3))()

    return train(pipeline(model.STAGES, schedule)), train(model.plain)


def model_in_blocks(weights: Any, x: jax.Array) -> jax.Array:
    """The model with one block on each IPU; the last block as a decorator, in a jitted call."""
    for i in range(2):
        with ipu.block(f"layer{i}", ipu=i):
            x = model.layer(weights[i], x)
    return jax.jit(ipu.block("head", ipu=2)(model.head))(weights[2], x)


def blocks(schedule: str) -> tuple[Any, Any]:
    """The same function with every strategy."""
    strategies = [
        ipu.ShardedExecution(),
        ipu.ShardedExecution(ipu.Stage("layer0", "head", ipu=1), ipu.Stage("layer1", ipu=0)),
        ipu.SerialPhasedExecution(ipu.Phase("layer0", "layer1"), ipu.Stage("head", remat=True)),
        ipu.ParallelPhasedExecution("layer0", "layer1", "head"),
    ]
    pipelines = [
        ipu.PipelinedExecution(schedule=schedule),
        ipu.PipelinedExecution(ipu.Stage("layer0", "layer1", ipu=0), "head", schedule=schedule),
    ]
    one = [jax.jit(jax.grad(strategy.apply(model_in_blocks))) for strategy in strategies]
    all_ = [
        jax.jit(jax.grad(strategy.apply(model_in_blocks, micro_batches=4, reduction="mean")))
        for strategy in pipelines
    ]
    # Without a strategy, blocks are places; the loop stays a loop.
    all_.append(jax.jit(ipu.accumulate(jax.grad(model_in_blocks), micro_batches=4)))
    got = [f(WEIGHTS, BATCH[0]) for f in one] + [f(WEIGHTS, BATCH) for f in all_]
    of_one, of_all = (jax.grad(model.plain)(WEIGHTS, x) for x in (BATCH[:1], BATCH))
    return got, [of_one] * len(one) + [of_all] * len(all_)


def report(name: str, got: Any, wanted: Any) -> None:
    print(json.dumps({"model": name, "difference": difference(got, wanted)}), flush=True)


def main(schedule: str) -> None:
    for derived in DERIVED:
        got = jax.jit(derived(pipeline(model.STAGES, schedule)))(WEIGHTS, BATCH)
        report(derived.__name__, got, jax.jit(derived(model.plain))(WEIGHTS, BATCH))
    for compose in (checkpoints_around_stages, replicas, training_loop, blocks):
        report(compose.__name__, *compose(schedule))


if __name__ == "__main__":
    main(sys.argv[1])
