"""Transforms: each makes of a function (weights, x) -> y another one of the same shapes.

Those of JAX are the same in a program and in its oracle; those of ipujax are plain in the oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from tests.fuzz.composed.draw import Draw, Function, direction, doubled, merged


@dataclass(frozen=True)
class Transform:
    """One row.

    Attributes:
        apply: the transformed function.
        is_ours: whether ipujax provides it.
        often: how often it is drawn.
        is_half: results are rounded to float16 somewhere.
        num_derivatives: how often it differentiates.
        is_forward: it needs forward derivatives.
        is_backward: the result has no forward derivatives.
        is_over_devices: it maps over both devices: only one transform of a program may.
        is_pipeline: it is a loop over micro-batches, of which a program has one at most.
    """

    apply: Callable[[Function, Draw], Function]
    is_ours: bool
    often: float = 1
    is_half: bool = False
    num_derivatives: int = 0
    is_forward: bool = False
    is_backward: bool = False
    is_over_devices: bool = False
    is_pipeline: bool = False


TRANSFORMS: dict[str, Transform] = {}


def transform(is_ours: bool, **facts: Any) -> Callable[[Any], Any]:
    def add(apply: Any) -> Any:
        TRANSFORMS[apply.__name__] = Transform(apply, is_ours, **facts)
        return apply

    return add


def of_jax(**facts: Any) -> Callable[[Any], Any]:
    return transform(False, **facts)


def loss_of(fun: Function) -> Callable[[Any, Any], Any]:
    """A number, of which no direction vanishes."""
    return lambda w, x: jnp.sum(direction() * fun(w, x))


def with_gradient(x: Any, gradient: Any) -> Any:
    """x, changed by the gradient of weights."""
    parts = [jnp.sum(jnp.cos(jnp.arange(g.size)) * g.ravel()) for g in jax.tree.leaves(gradient)]
    return jnp.tanh(x + sum(parts, jnp.float32(0)) / 8)


# Compilation and derivatives ---------------------------------------------------------------------


@of_jax(often=2)
def jit(fun: Function, d: Draw) -> Function:
    return jax.jit(fun)


@of_jax(num_derivatives=1)
def grad(fun: Function, d: Draw) -> Function:
    return jax.grad(loss_of(fun), 1)


@of_jax(num_derivatives=1)
def grad_of_weights(fun: Function, d: Draw) -> Function:
    return lambda w, x: with_gradient(x, jax.grad(loss_of(fun))(w, x))


@of_jax(num_derivatives=1)
def vjp(fun: Function, d: Draw) -> Function:
    def pulled(w: Any, x: Any) -> Any:
        y, pull = jax.vjp(fun, w, x)
        gradient, of_x = pull(direction() / 2)
        return with_gradient(y + of_x, gradient)

    return pulled


@of_jax(num_derivatives=1, is_forward=True)
def jvp(fun: Function, d: Draw) -> Function:
    def pushed(w: Any, x: Any) -> Any:
        y, tangent = jax.jvp(fun, (w, x), (jax.tree.map(jnp.cos, w), direction()))
        return 0.5 * (y + tangent)

    return pushed


@of_jax(num_derivatives=1, is_forward=True)
def linearize(fun: Function, d: Draw) -> Function:
    def pushed(w: Any, x: Any) -> Any:
        y, push = jax.linearize(lambda x: fun(w, x), x)
        return 0.5 * (y + push(direction()))

    return pushed


@of_jax(often=0.5, num_derivatives=2, is_forward=True)
def hessian_product(fun: Function, d: Draw) -> Function:
    gradient = jax.grad(loss_of(fun), 1)
    return lambda w, x: jax.jvp(lambda x: gradient(w, x), (x,), (direction(),))[1]


@of_jax(is_backward=True, num_derivatives=1)
def custom_vjp(fun: Function, d: Draw) -> Function:
    @jax.custom_vjp
    def called(w: Any, x: Any) -> Any:
        return fun(w, x)

    called.defvjp(lambda w, x: (fun(w, x), (w, x)), lambda kept, g: jax.vjp(fun, *kept)[1](0.5 * g))
    return called


@of_jax(num_derivatives=1, is_forward=True)
def custom_jvp(fun: Function, d: Draw) -> Function:
    @jax.custom_jvp
    def called(w: Any, x: Any) -> Any:
        return fun(w, x)

    @called.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        y, tangent = jax.jvp(fun, primals, tangents)
        return y, 0.5 * tangent

    return called


@of_jax()
def checkpoint(fun: Function, d: Draw) -> Function:
    policies = jax.checkpoint_policies
    policy = d.choice((None, policies.dots_saveable, policies.everything_saveable))
    return jax.checkpoint(fun, policy=policy)


@of_jax(often=0.5)
def platform_dependent(fun: Function, d: Draw) -> Function:
    return lambda w, x: lax.platform_dependent(w, x, default=fun)


# Loops and batches -------------------------------------------------------------------------------


@of_jax()
def vmap(fun: Function, d: Draw) -> Function:
    return lambda w, x: merged(jax.vmap(fun, (None, 0))(w, doubled(x)))


@of_jax()
def vmap_of_weights(fun: Function, d: Draw) -> Function:
    def mapped(w: Any, x: Any) -> Any:
        return merged(jax.vmap(fun, (0, None), axis_size=2)(doubled(w), x))

    return mapped


@of_jax()
def scan(fun: Function, d: Draw) -> Function:
    return lambda w, x: lax.scan(lambda c, _: (fun(w, c), None), x, length=2)[0]


@of_jax()
def scan_of_batches(fun: Function, d: Draw) -> Function:
    return lambda w, x: merged(lax.scan(lambda c, x: (c, fun(w, x)), None, doubled(x))[1])


@of_jax(often=0.5)
def scan_of_weights(fun: Function, d: Draw) -> Function:
    def loop(w: Any, x: Any) -> Any:
        return lax.scan(lambda c, w: (fun(w, c), None), x, doubled(w), length=2)[0]

    return loop


@of_jax(often=0.5)
def fori_loop(fun: Function, d: Draw) -> Function:
    return lambda w, x: lax.fori_loop(0, 2, lambda _, c: fun(w, c), x)


@of_jax(often=0.5)
def while_loop(fun: Function, d: Draw) -> Function:
    """It has no backward derivative: one more term, which is constant."""

    def loop(w: Any, x: Any) -> Any:
        w, first = lax.stop_gradient((w, x))
        done = lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, fun(w, s[1])), (0, first))
        return jnp.tanh(x) + 0.5 * done[1]

    return loop


@of_jax(often=0.5)
def cond(fun: Function, d: Draw) -> Function:
    return lambda w, x: lax.cond(jnp.sum(x) < 1e9, fun, lambda w, x: x, w, x)


@of_jax(often=1.5, is_over_devices=True)
def shard_map(fun: Function, d: Draw) -> Function:
    mesh = Mesh(np.array(d.devices()), ("d",))
    halves, whole = PartitionSpec("d"), PartitionSpec()

    mapped = jax.shard_map(
        lambda w, x: fun(w, x[0])[None],
        mesh=mesh,
        in_specs=(whole, halves),
        out_specs=halves,
        check_vma=d.chance(0.5),
    )
    return lambda w, x: merged(mapped(w, doubled(x)))
