"""Pipelines inside JAX's transformations, with stages on IPUs of their own.

Prints one JSON object for each composition, as `compare` does. Run as a process of its own.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

import ipujax as ipu
from tests.api.pipeline import test_pipeline as model
from tests.stages.compare import difference
from tests.stages.models import schedule_options

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
    return ipu.pipeline(fun, micro_batches=4, reduction="mean", **schedule_options(schedule))


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


def phases_in_replicas(_: str) -> tuple[Any, Any]:
    """Phases whose values wait in streaming memory, on two groups of IPUs."""
    leaves = ipu.Liveness.OFF_CHIP_AFTER_EACH_PHASE
    kinds = (ipu.SerialPhasedExecution, ipu.ParallelPhasedExecution)
    names = ("layer0", "layer1", "head")

    def step(kind: Any) -> Any:
        strategy = kind(*names, liveness=leaves, minimum_remote_tensor_size=1)
        gradient = jax.grad(strategy.apply(model_in_blocks))
        run = ipu.pmap(gradient, in_axes=(None, 0))
        return lambda weights, x: jax.tree.map(lambda g: jnp.mean(g, 0), run(weights, x))

    wanted = jax.grad(model.plain)(WEIGHTS, BATCH[:2])
    return [step(kind)(WEIGHTS, BATCH[:2]) for kind in kinds], [wanted, wanted]


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


def clipped(loss: Any) -> Any:
    """A step of gradient descent, its gradient clipped by the global norm; the state is donated."""
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1, momentum=0.9))

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(weights: Any, state: Any, x: jax.Array) -> Any:
        updates, state = optimizer.update(jax.grad(loss)(weights, x), state, weights)
        return optax.apply_updates(weights, updates), state

    def steps(weights: Any, x: jax.Array) -> Any:
        made = (weights, optimizer.init(weights))
        for _ in range(2):
            made = step(*made, x)
        return made

    return steps


def by_example(loss: Any) -> Any:
    """The gradient of each example, clipped."""

    def summed(weights: Any, x: jax.Array) -> Any:
        own = jax.vmap(jax.grad(loss), in_axes=(None, 1))(weights, x[:, :, None])
        squares = sum(jnp.sum(g**2, (1, 2)) for g in own)
        return [jnp.einsum("e,eij->ij", 1 / jnp.sqrt(1 + squares), g) for g in own]

    return summed


def scaled(loss: Any) -> Any:
    """Float16 with a scaled loss."""

    def gradient(weights: Any, x: jax.Array) -> Any:
        half = jax.tree.map(lambda w: w.astype(jnp.float16), weights)
        made = jax.grad(lambda w: loss(w, x.astype(jnp.float16)).astype(jnp.float32) * 64)(half)
        return jax.tree.map(lambda g: g.astype(jnp.float32) / 64, made)

    return gradient


def normalised(schedule: str) -> tuple[Any, Any]:
    """Batch normalisation: trained with a mean that goes along, then evaluated with it."""

    def layer(weights: jax.Array, x: jax.Array, mean: jax.Array) -> Any:
        y = x @ weights
        return jnp.tanh(y - y.mean(0)), 0.9 * mean + 0.1 * jax.lax.stop_gradient(y.mean(0))

    def trained(calls: Any) -> Any:
        def fun(weights: Any, means: Any, x: jax.Array) -> Any:
            x, first = calls[0](weights[0], x, means[0])
            x, second = calls[1](weights[1], x, means[1])
            return calls[2](weights[2], x), [first, second]

        return fun

    def evaluated(weights: Any, means: Any, x: jax.Array) -> jax.Array:
        for w, mean in zip(weights[:2], means, strict=True):
            x = jnp.tanh(x @ w - mean)
        return model.head(weights[2], x)

    functions = (layer, layer, model.head)
    stages = [ipu.stage(f, ipu=i) for i, f in enumerate(functions)]
    options = {"micro_batches": 4, **schedule_options(schedule)}
    loop = ipu.pipeline(trained(stages), in_axes=(None, "carried", 0), reduction="sum", **options)
    evaluation = ipu.pipeline(evaluated, in_axes=(None, None, 0), **options)
    means = [jnp.zeros(3), jnp.zeros(3)]
    train = jax.jit(jax.value_and_grad(loop, has_aux=True))
    (value, after), gradient = train(WEIGHTS, means, BATCH)
    got = value, after, gradient, jax.jit(evaluation)(WEIGHTS, after, BATCH)

    def plain(weights: Any) -> Any:
        total, state = jnp.float32(0), means
        for x in BATCH:
            made, state = trained(functions)(weights, state, x)
            total += made
        return total, state

    (value, after), gradient = jax.value_and_grad(plain, has_aux=True)(WEIGHTS)
    tested = jnp.stack([evaluated(WEIGHTS, after, x) for x in BATCH])
    return got, (value, after, gradient, tested)


def with_results(schedule: str) -> tuple[Any, Any]:
    """A loss with other results, some of them stacked or integers."""

    def head(weights: jax.Array, x: jax.Array) -> Any:
        return model.head(weights, x), {"x": x, "largest": jnp.argmax(x)}

    loss = ipu.pipeline(
        [*model.STAGES[:2], head],
        micro_batches=4,
        outputs=("mean", {"x": "all", "largest": "last"}),
        **schedule_options(schedule),
    )
    got = jax.jit(jax.value_and_grad(loss, has_aux=True))(WEIGHTS, BATCH)
    x = model.layer(WEIGHTS[1], model.layer(WEIGHTS[0], BATCH))
    value, gradient = jax.value_and_grad(model.plain)(WEIGHTS, BATCH)
    return got, ((value, {"x": x, "largest": jnp.argmax(x[-1])}), gradient)


def sharded(schedule: str) -> tuple[Any, Any]:
    """Two replicas by `shard_map`, which sums gradients itself or lets the user do it."""
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("replica",))
    spec = jax.sharding.PartitionSpec
    specs = {"in_specs": (spec(), spec(None, "replica")), "out_specs": spec()}
    gradient = jax.grad(pipeline(model.STAGES, schedule))
    both = jnp.concatenate([BATCH, BATCH + 1], axis=1)
    found = []
    for checks in (True, False):

        def step(weights: Any, batch: jax.Array, checks: bool = checks) -> Any:
            made = gradient(weights, batch)
            return made if checks else jax.lax.psum(made, "replica")

        found.append(jax.jit(jax.shard_map(step, mesh=mesh, check_vma=checks, **specs)))
    summed = [jax.grad(model.plain)(WEIGHTS, batch) for batch in (BATCH, BATCH + 1)]
    wanted = jax.tree.map(jnp.add, *summed)
    return [f(WEIGHTS, both) for f in found], [wanted, wanted]


def model_in_blocks(weights: Any, x: jax.Array) -> jax.Array:
    """The model with one block on each IPU; the last block as a decorator, in a jitted call."""
    for i in range(2):
        with ipu.block(f"layer{i}", ipu=i):
            x = model.layer(weights[i], x)
    return jax.jit(ipu.block("head", ipu=2)(model.head))(weights[2], x)


def blocks(schedule: str) -> tuple[Any, Any]:
    """The same function with every strategy."""
    options = dict(schedule_options(schedule))
    when = options.pop("schedule")
    options["micro_batches"] = 4
    strategies = [
        ipu.ShardedExecution(),
        ipu.ShardedExecution(ipu.Stage("layer0", "head", ipu=1), ipu.Stage("layer1", ipu=0)),
        ipu.SerialPhasedExecution(ipu.Phase("layer0", "layer1"), ipu.Stage("head", remat=True)),
        ipu.ParallelPhasedExecution("layer0", "layer1", "head"),
    ]
    pipelines = [
        ipu.PipelinedExecution(schedule=when),
        ipu.PipelinedExecution(ipu.Stage("layer0", "layer1", ipu=0), "head", schedule=when),
    ]
    one = [jax.jit(jax.grad(strategy.apply(model_in_blocks))) for strategy in strategies]
    all_ = [
        jax.jit(jax.grad(strategy.apply(model_in_blocks, reduction="mean", **options)))
        for strategy in pipelines
    ]
    # Without a strategy, blocks are places; the loop stays a loop.
    all_.append(jax.jit(ipu.accumulate(jax.grad(model_in_blocks), micro_batches=4)))
    got = [f(WEIGHTS, BATCH[0]) for f in one] + [f(WEIGHTS, BATCH) for f in all_]
    of_one, of_all = (jax.grad(model.plain)(WEIGHTS, x) for x in (BATCH[:1], BATCH))
    return got, [of_one] * len(one) + [of_all] * len(all_)


def repeated(schedule: str) -> tuple[Any, Any]:
    """Two whole batches in one call; stages are recomputed in slots of their own."""
    loss = ipu.pipeline(
        model.STAGES,
        micro_batches=2,
        repeat_count=2,
        reduction="mean",
        **{**schedule_options(schedule), "remat": "then"},
    )
    halves = BATCH.reshape(2, 2, *BATCH.shape[1:])
    got = jax.jit(jax.value_and_grad(lambda w: jnp.mean(loss(w, halves))))(WEIGHTS)
    return got, jax.value_and_grad(model.plain)(WEIGHTS, BATCH)


def copied() -> Any:
    """The arguments, as arrays that may be donated."""
    return jax.tree.map(jnp.copy, (WEIGHTS, BATCH))


def report(name: str, got: Any, wanted: Any) -> None:
    print(json.dumps({"model": name, "difference": difference(got, wanted)}), flush=True)


def main(schedule: str) -> None:
    for derived in [*DERIVED, clipped, by_example, scaled]:
        got = derived(pipeline(model.STAGES, schedule))
        wanted = derived(model.plain)
        if derived is not clipped:
            got, wanted = jax.jit(got), jax.jit(wanted)
        report(derived.__name__, got(*copied()), wanted(*copied()))
    whole = (
        checkpoints_around_stages,
        replicas,
        sharded,
        phases_in_replicas,
        training_loop,
        blocks,
        repeated,
    )
    for compose in (*whole, normalised, with_results):
        report(compose.__name__, *compose(schedule))


if __name__ == "__main__":
    main(sys.argv[1])
