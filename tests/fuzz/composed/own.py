"""The transforms of ipujax, and what is plain for each of them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, PartitionSpec

import ipujax as ipu
from tests.fuzz.composed.draw import Draw, Function, doubled, merged
from tests.fuzz.composed.transforms import loss_of, transform, with_gradient

Wrapped = Callable[[Function], Function]
Applied = Callable[[Function, Draw], Function]
_SCHEDULES = ("grouped", "interleaved", "sequential")


def ours(
    plain: Wrapped = lambda fun: fun, like: Applied | None = None, **facts: Any
) -> Callable[[Any], Any]:
    """Registers a transform of ipujax; the oracle's is `plain`.

    Args:
        like: the transform of JAX that is most like it, where that may refuse what is inside or
            around it: what JAX refuses there is no fault of ours.
    """

    def add(apply: Any) -> Any:
        @functools.wraps(apply)
        def either(fun: Function, d: Draw) -> Function:
            if d.is_ours:
                return apply(fun, d)
            return like(fun, d) if like is not None and d.is_like_ours else plain(fun)

        return transform(True, **facts)(either)

    return add


def _in_scope(scope: Callable[[], Any], fun: Function) -> Function:
    def scoped(w: Any, x: Any) -> Any:
        with scope():
            return fun(w, x)

    return scoped


# Casts and scopes --------------------------------------------------------------------------------


@ours(often=2, is_half=True)
def autocast(fun: Function, d: Draw) -> Function:
    products = ipu.CastPolicy(fp16=["dot_general"], fp32=["exp", "tanh"], mixed="float")
    return ipu.autocast(fun, d.choice((None, products)))


@ours()
def no_autocast(fun: Function, d: Draw) -> Function:
    if d.chance(0.5):
        return ipu.autocast(fun, enabled=False)
    return _in_scope(lambda: ipu.autocast(enabled=False), fun)


@ours()
def precision(fun: Function, d: Draw) -> Function:
    options: Any = d.choice(
        (
            {"partials_type": "float"},
            {"stochastic_rounding": True},
            {"half_overflow": "saturate"},
            {"available_memory_proportion": 0.3},
        )
    )
    scope = d.choice((ipu.precision, ipu.options))
    return _in_scope(lambda: scope(**options), fun)


@ours()
def shard(fun: Function, d: Draw) -> Function:
    number = d.choice((0, 1))
    return _in_scope(lambda: ipu.shard(number), fun)


@ours(often=0.5)
def named(fun: Function, d: Draw) -> Function:
    return _in_scope(lambda: ipu.trace("named"), fun)


# Calls -------------------------------------------------------------------------------------------


def _jitted(fun: Function, d: Draw) -> Function:
    return jax.jit(fun)


@ours(like=_jitted, often=1.5)
def stage(fun: Function, d: Draw) -> Function:
    again = d.choice((None, True, "then", "interleaved"))
    return ipu.stage(fun, ipu=d.choice((None, 0, 1)), remat=again)


@ours(like=_jitted)
def outlined(fun: Function, d: Draw) -> Function:
    return ipu.outlined(fun)


@ours(like=lambda fun, d: jax.checkpoint(fun))
def remat(fun: Function, d: Draw) -> Function:
    policy = d.choice((None, jax.checkpoint_policies.dots_saveable))
    return ipu.remat(fun, policy)


# Pipelines and strategies ------------------------------------------------------------------------


def _looped(fun: Function) -> Function:
    return lambda w, x: merged(jnp.stack([fun(w, one) for one in doubled(x)]))


def _pipeline_options(d: Draw) -> dict[str, Any]:
    options: dict[str, Any] = {"micro_batches": 2}
    if d.chance(0.3):
        name = d.choice(("offload_activations", "offload_accumulators", "offload_weights"))
        options |= {name: True, "minimum_remote_tensor_size": 1}
    if d.chance(0.3):
        options["remat"] = d.choice((True, "then", "interleaved"))
    return options


def _schedule(d: Draw) -> dict[str, Any]:
    schedule = d.choice(_SCHEDULES)
    serial = 2 if schedule == "sequential" and d.chance(0.5) else 1
    return {"schedule": schedule, "batch_serialization_iterations": serial}


@ours(_looped, often=2, is_pipeline=True)
def pipeline(fun: Function, d: Draw) -> Function:
    """The function as one of two stages, or without any; results stacked."""
    options = _pipeline_options(d) | _schedule(d)
    if d.chance(0.5):
        run = ipu.pipeline(fun, **options)
        return lambda w, x: merged(run(w, doubled(x)))
    stages: list[Any] = [fun, lambda _, y: y]
    mapping = d.choice(((0, 1), (1, 0), (0, 0)))
    run = ipu.pipeline(stages, device_mapping=mapping, **options)
    return lambda w, x: merged(run([w, ()], doubled(x)))


def _mean_loss(fun: Function) -> Function:
    def mean(w: Any, x: Any) -> Any:
        losses = [loss_of(fun)(w, one) for one in doubled(x)]
        return jnp.tanh(x) * (losses[0] + losses[1]) / 4

    return mean


@ours(_mean_loss, often=2, is_pipeline=True)
def pipelined_loss(fun: Function, d: Draw) -> Function:
    """A mean over micro-batches, whose gradient is one loop."""
    loss = ipu.pipeline(
        loss_of(fun),
        reduction=d.choice(("mean", "running_mean")),
        accumulate_dtype=d.choice((None, jnp.float32)),
        **_pipeline_options(d),
        **_schedule(d),
    )
    return lambda w, x: jnp.tanh(x) * loss(w, doubled(x)) / 2


def _summed_gradient(fun: Function) -> Function:
    def summed(w: Any, x: Any) -> Any:
        found = [jax.grad(loss_of(fun))(w, one) for one in doubled(x)]
        return with_gradient(x, jax.tree.map(jnp.add, *found))

    return summed


@ours(_summed_gradient, often=1.5, num_derivatives=1, is_pipeline=True)
def accumulate(fun: Function, d: Draw) -> Function:
    total = ipu.accumulate(jax.grad(loss_of(fun)), micro_batches=2, reduction="sum", **_schedule(d))
    return lambda w, x: with_gradient(x, total(w, doubled(x)))


def _in_blocks(fun: Function, d: Draw) -> tuple[Function, tuple[str, str]]:
    first, second = f"{d.name}.first", f"{d.name}.second"

    def model(w: Any, x: Any) -> Any:
        with ipu.block(first, ipu=0):
            y = fun(w, x)
        with ipu.block(second, ipu=1):
            return 0.5 * y + 0.5 * jnp.sin(x)

    return model, (first, second)


def _twice(fun: Function) -> Function:
    return lambda w, x: 0.5 * fun(w, x) + 0.5 * jnp.sin(x)


@ours(_twice, often=1.5)
def strategy(fun: Function, d: Draw) -> Function:
    model, names = _in_blocks(fun, d)
    live = {"liveness": d.choice(tuple(ipu.Liveness)), "minimum_remote_tensor_size": 1}
    made = d.choice(
        (
            lambda: ipu.ShardedExecution(),
            lambda: ipu.ShardedExecution(*names),
            lambda: ipu.ShardedExecution(ipu.Stage(*names, ipu=1, remat=True)),
            lambda: ipu.SerialPhasedExecution(*names, **live),
            lambda: ipu.ParallelPhasedExecution(*names, **live),
        )
    )
    return made().apply(model)


@ours(lambda fun: _looped(_twice(fun)), is_pipeline=True)
def pipelined_strategy(fun: Function, d: Draw) -> Function:
    model, names = _in_blocks(fun, d)
    schedule = d.choice(_SCHEDULES)
    run = ipu.PipelinedExecution(*names, schedule=schedule).apply(model, **_pipeline_options(d))
    return lambda w, x: merged(run(w, doubled(x)))


# Replicas ----------------------------------------------------------------------------------------


def _mapped(fun: Function) -> Function:
    return lambda w, x: merged(jax.vmap(fun, (None, 0))(w, doubled(x)))


def _over_devices(fun: Function, d: Draw) -> Function:
    """`jax.shard_map` as `jax.pmap` uses it."""
    mesh = Mesh(np.array(d.devices()), ("replica",))
    halves = PartitionSpec("replica")

    def mapped(w: Any, x: Any) -> Any:
        each = jax.shard_map(
            lambda w, x: fun(w, x[0])[None],
            mesh=mesh,
            in_specs=(PartitionSpec(), halves),
            out_specs=halves,
            check_vma=False,
        )
        return merged(jax.jit(each)(w, doubled(x)))

    return mapped


@ours(_mapped, _over_devices, often=1.5, is_over_devices=True)
def pmap(fun: Function, d: Draw) -> Function:
    if d.chance(0.3):

        def called(w: Any, x: Any) -> Any:
            return fun(ipu.gather_weights(ipu.shard_weights(w)), x)

    else:
        called = fun
    run = ipu.pmap(called, in_axes=(None, 0), devices=d.devices())
    return lambda w, x: merged(run(w, doubled(x)))


@ours(
    lambda fun: lambda w, x: _mapped(fun)(w, x) / 1.5,
    lambda fun, d: lambda w, x: _over_devices(fun, d)(w, x) / 1.5,
    is_over_devices=True,
)
def replica_mean(fun: Function, d: Draw) -> Function:
    """Where replicas' results are summed, those of vmap and the plain ones are, too."""

    def called(w: Any, x: Any) -> Any:
        y = fun(w, x) * jnp.where(ipu.replication_index() == 0, 1, 0.5) / 1.5
        reduce = d.choice((ipu.cross_replica_sum, _mean_of_two, _scattered))
        return ipu.assume_equal_across_replicas(reduce(y))

    return lambda w, x: ipu.pmap(called, in_axes=(None, 0), out_axes=None, devices=d.devices())(
        w, doubled(x)
    )


def _mean_of_two(y: Any) -> Any:
    return 2 * ipu.cross_replica_mean(y)


def _scattered(y: Any) -> Any:
    """A sum as a sum of parts, gathered."""
    part = ipu.reduce_scatter(y.ravel())
    return ipu.all_gather(part).ravel().reshape(y.shape)


# Loops and updates -------------------------------------------------------------------------------


def _again(fun: Function) -> Function:
    return lambda w, x: fun(w, fun(w, x))


@ours(_again)
def repeat(fun: Function, d: Draw) -> Function:
    return lambda w, x: ipu.repeat(2, lambda c: fun(w, c), x)


def _fed(fun: Function) -> Function:
    return lambda w, x: fun(w, fun(w, x + 0.1) + 0.1)


@ours(_fed, often=0.5)
def fed(fun: Function, d: Draw) -> Function:
    """A loop with an endless infeed."""
    infeed = ipu.Infeed(itertools.repeat(np.full(2, 0.1, np.float32)))  # one for each replica
    return lambda w, x: ipu.repeat(2, lambda c, batch: fun(w, c + batch[0]), x, infeed=infeed)


def _updated(fun: Function) -> Function:
    def step(w: Any, x: Any) -> Any:
        gradients = jax.grad(loss_of(fun))(w, x)
        return fun(jax.tree.map(lambda p, g: p - g / 8, w, gradients), x)

    return step


@ours(_updated, num_derivatives=1)
def update(fun: Function, d: Draw) -> Function:
    """A step of gradient descent, then the function."""
    wrapped = {
        "sgd": lambda tx: ipu.optim.sgd(1 / 8),
        "mapped": lambda tx: ipu.optim.map_gradient(tx, lambda g, p: g),
        "accumulated": lambda tx: ipu.optim.gradient_accumulation(tx, 1),
    }
    tx = wrapped[d.choice(sorted(wrapped))](optax.sgd(1 / 8))

    def step(w: Any, x: Any) -> Any:
        gradients = jax.grad(loss_of(fun))(w, x)
        updates, _ = tx.update(gradients, tx.init(w), w)
        return fun(optax.apply_updates(w, updates), x)

    return step
