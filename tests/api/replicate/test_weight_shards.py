"""Partitioned weights in pipelines: derivatives, mapped axes and errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, PartitionSpec

import ipujax as ipu
from tests.api.pipeline.test_pipeline import check

REPLICAS = 4
RANDOM = np.random.default_rng(0)
WEIGHTS = [
    {name: jnp.asarray(RANDOM.normal(size=shape) / 3, jnp.float32) for name, shape in own.items()}
    for own in [{"kernel": (5, 5), "bias": (5,)}] * 3
]
BATCHES = jnp.asarray(RANDOM.normal(size=(REPLICAS, 4, 2, 5)), jnp.float32)
COUNTS = [jnp.int32(2)] * 3


def layer(given: Any, x: jax.Array) -> jax.Array:
    """With a transposed weight, and an integer that is no weight."""
    weights, count = given
    return jnp.sin(x @ weights["kernel"].T + weights["bias"]) * count


def head(given: Any, x: jax.Array) -> jax.Array:
    return jnp.mean(layer(given, x) ** 2)


def pipelined(stages: list[Any], **options: Any) -> Any:
    options = {"schedule": "sequential", "batch_serialization_iterations": 2} | options
    options = {"micro_batches": 4, "device_mapping": [0, 0, 0]} | options
    run = ipu.pipeline(stages, **options)
    return lambda weights, x: run(list(zip(weights, COUNTS, strict=True)), x)


LOSS = pipelined([layer, layer, head], reduction="mean")
VECTOR = pipelined([layer, layer, layer])
TWICE = pipelined([layer, layer, head], reduction="mean", micro_batches=2, repeat_count=2)


def repeated(weights: Any, x: jax.Array) -> jax.Array:
    return jnp.mean(TWICE(weights, x.reshape(2, 2, *x.shape[1:])))


def vector(weights: Any, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.cos(VECTOR(weights, x)))


def product(gradient: Any, weights: Any, x: jax.Array) -> Any:
    return jax.jvp(lambda w: gradient(w, x), (weights,), (weights,))[1]


def of_two(gradient: Any, weights: Any, x: jax.Array) -> Any:
    both = jax.tree.map(lambda w: jnp.stack([w, 2 * w]), weights)
    return jax.vmap(gradient, in_axes=(0, None))(both, x)


def on_replicas(gradient: Any) -> Any:
    """The gradient by whole weights, which lie partitioned between."""

    def local(weights: Any, x: jax.Array) -> Any:
        return ipu.gather_weights(gradient(ipu.shard_weights(weights), x))

    return local


def by_pmap(local: Any) -> Any:
    return ipu.pmap(local, in_axes=(None, 0), out_axes=None)(WEIGHTS, BATCHES)


def by_jax_pmap(local: Any) -> Any:
    mapped = jax.pmap(local, "any", in_axes=(None, 0), devices=jax.devices()[:REPLICAS])
    return jax.tree.map(lambda x: x[0], mapped(WEIGHTS, BATCHES))


def by_shard_map(local: Any, check_vma: bool) -> Any:
    mapped = jax.shard_map(
        lambda weights, x: local(weights, x[0]),
        mesh=Mesh(np.array(jax.devices()[:REPLICAS]), ("data",)),
        in_specs=(PartitionSpec(), PartitionSpec("data")),
        out_specs=PartitionSpec(),
        check_vma=check_vma,
    )
    return jax.jit(mapped)(WEIGHTS, BATCHES)


@pytest.mark.parametrize(
    "mapped", [by_pmap, by_jax_pmap, partial(by_shard_map, check_vma=True)], ids=range(3)
)
def test_gradients_are_sums_over_replicas(mapped: Callable[[Any], Any]) -> None:
    wanted = by_pmap(lambda w, x: ipu.cross_replica_sum(jax.grad(LOSS)(w, x)))
    check(mapped(on_replicas(jax.grad(LOSS))), wanted, 1e-6)


@pytest.mark.parametrize("loss", [vector, repeated])
def test_other_losses(loss: Any) -> None:
    wanted = by_pmap(lambda w, x: ipu.cross_replica_sum(jax.grad(loss)(w, x)))
    check(by_pmap(on_replicas(jax.grad(loss))), wanted, 1e-6)


def test_second_derivatives_and_vmap() -> None:
    """A product with the Hessian of the sum over the replicas, and gradients of two models."""

    def of_all(weights: Any, batches: jax.Array) -> jax.Array:
        return sum(LOSS(weights, x) for x in batches)

    gradient = jax.grad(LOSS)
    wanted = jax.jit(partial(product, jax.grad(of_all)))(WEIGHTS, BATCHES)
    check(by_pmap(on_replicas(partial(product, gradient))), wanted, 1e-4)

    def of_models(weights: Any, x: jax.Array) -> Any:
        both = jax.tree.map(lambda w: jnp.stack([w, 2 * w]), weights)
        return jax.vmap(on_replicas(gradient), in_axes=(0, None))(both, x)

    wanted = by_pmap(lambda w, x: ipu.cross_replica_sum(of_two(gradient, w, x)))
    check(by_pmap(of_models), wanted, 1e-6)


def test_an_optimizer_updates_parts() -> None:
    """Adam on shards, and gradients that `accumulate` gives whole."""
    tx = optax.adam(0.1)
    sums = ipu.accumulate(
        jax.grad(lambda weights, x: head((weights, 2), x)), micro_batches=4, reduction="mean"
    )

    def steps(weights: Any, batch: jax.Array, is_partitioned: bool) -> Any:
        own = ipu.shard_weights(weights) if is_partitioned else weights
        state = tx.init(own)
        for _ in range(2):
            gradients = sums(own, batch)
            if is_partitioned:
                gradients = ipu.shard_weights(gradients, "mean")
            else:
                gradients = ipu.cross_replica_mean(gradients)
            updates, state = tx.update(gradients, state)
            own = optax.apply_updates(own, updates)
        return ipu.gather_weights(own)

    run = ipu.pmap(steps, in_axes=(None, 0, None), out_axes=None, static_broadcasted_argnums=2)
    check(run(WEIGHTS[0], BATCHES, True), run(WEIGHTS[0], BATCHES, False), 1e-5)


def _on_replicas(fun: Any) -> Any:
    return ipu.pmap(fun, in_axes=(None, 0))(WEIGHTS, BATCHES)


STRICT = pipelined([layer, layer, head], replicated_weight_sharding=True)
BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: STRICT(WEIGHTS, BATCHES[0]), ipu.PipelineError, "got whole arrays. Pass what"),
    (lambda: ipu.shard_weights(WEIGHTS), ipu.ReplicationError, "needs a mapped axis"),
    (
        lambda: _on_replicas(lambda w, x: ipu.shard_weights(w, "most")),
        ipu.ReplicationError,
        "shard_weights. needs op to be one of local, add, mean; got 'most'",
    ),
    (
        lambda: _on_replicas(
            lambda w, x: ipu.gather_weights(ipu.WeightShard(x, (5, 5)))  # of another shape
        ),
        ipu.ReplicationError,
        r"own part \[7\] of a weight \[5, 5\]; got \[4, 2, 5\]. Map the shards",
    ),
    (
        lambda: _on_replicas(lambda w, x: ipu.cross_replica_mean(ipu.shard_weights(w))),
        ipu.ReplicationError,
        "sums over the replicas already",
    ),
    (
        lambda: _on_replicas(
            lambda w, x: ipu.pipeline(
                lambda w, x: (x, w),
                micro_batches=4,
                in_axes=("carried", 0),
                replicated_weight_sharding=True,
            )(ipu.shard_weights(w), x)
        ),
        ipu.PipelineError,
        "shared by all micro-batches",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_bad_input_is_explained(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
