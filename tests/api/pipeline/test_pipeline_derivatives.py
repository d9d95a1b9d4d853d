"""Derivatives of pipelines by rules of their functions' own, and how often a function runs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.api.pipeline.test_pipeline import BATCH, WEIGHTS, check, layer

VALUES_OF_RULES: dict[str, Any] = {
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[0],
    "linearize": lambda f: lambda x: jax.linearize(f, x)[0],
    "vjp": lambda f: lambda x: jax.vjp(f, x)[0],
    "tangent": lambda f: lambda x: jax.jvp(f, (x,), (jnp.ones_like(x),))[1],
}


@pytest.mark.parametrize("outputs", ["all", "last", "sum", "mean", "running_mean"])
@pytest.mark.parametrize("way", VALUES_OF_RULES)
def test_values_that_come_with_derivatives_are_those_of_the_rules(way: str, outputs: str):
    """As in a loop of JAX, their own derivatives are those of what a custom rule computes."""

    @jax.custom_jvp
    def half(x: jax.Array) -> jax.Array:
        return jnp.sin(x)

    @half.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        value, tangent = jax.jvp(jnp.sin, primals, tangents)
        return value, 0.5 * tangent

    def looped(x: jax.Array) -> jax.Array:
        made = jax.lax.map(half, x)
        reduce = {"all": lambda y: y, "last": lambda y: y[-1], "sum": lambda y: jnp.sum(y, 0)}
        return reduce.get(outputs, lambda y: jnp.mean(y, 0))(made)

    piped = ipu.pipeline(half, micro_batches=4, in_axes=0, outputs=outputs)
    for batch in (BATCH, BATCH[:, 0, 0]):
        got, wanted = (_gradient(VALUES_OF_RULES[way](f), batch) for f in (piped, looped))
        check(got, wanted)


def _gradient(fun: Any, x: jax.Array) -> jax.Array:
    return jax.jit(jax.grad(lambda x: jnp.sum(fun(x) ** 2)))(x)


def test_the_forward_pass_of_a_gradient_runs_once():
    seen: list[float] = []

    def noted(w: jax.Array, x: jax.Array) -> jax.Array:
        jax.debug.callback(lambda number: seen.append(float(number)), x[0, 0], ordered=True)
        return layer(w, x)

    piped = ipu.pipeline(noted, micro_batches=4)
    jax.block_until_ready(jax.jit(jax.grad(lambda w: jnp.sum(piped(w, BATCH))))(WEIGHTS[0]))
    jax.effects_barrier()
    np.testing.assert_allclose(seen, BATCH[:, 0, 0])


@pytest.mark.parametrize("repeats", [None, 2])
@pytest.mark.parametrize("outputs", ["mean", "all"])
@pytest.mark.parametrize("is_split", ["batch", "weights"])
def test_derivatives_inside_a_pipeline_are_summed_over_replicas(
    is_split: str, outputs: str, repeats: int | None
):
    """As in a loop: JAX sums what shard_map(check_vma=True) knows to be equal on all replicas."""
    specs = (jax.P(), jax.P(None, "d")) if is_split == "batch" else (jax.P("d"), jax.P())
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("d",))

    def one(w: jax.Array, x: jax.Array) -> jax.Array:
        of_w, of_x = jax.grad(lambda w, x: jnp.sum(layer(w[0], x)), (0, 1))(w, x)
        return jnp.sum(jnp.sin(of_w)) * jnp.sum(w) + jnp.sum(x * of_x)

    def looped(w: jax.Array, batch: jax.Array) -> jax.Array:
        made = jax.lax.scan(lambda c, x: (c, one(w, x)), None, batch)[1]
        return jnp.mean(made) if outputs == "mean" else made

    piped = ipu.pipeline(one, micro_batches=4, outputs=outputs, repeat_count=repeats)

    def values_and_gradients(run: Any) -> Any:
        def total(w: jax.Array, x: jax.Array) -> jax.Array:
            return jnp.sum(run(w, x if repeats is None else jnp.stack([x] * repeats)))[None]

        mapped = jax.shard_map(total, mesh=mesh, in_specs=specs, out_specs=jax.P("d"))
        weights, batch = jnp.stack([WEIGHTS[0], WEIGHTS[1]]), jnp.concatenate([BATCH] * 2, 1)
        both = jax.value_and_grad(lambda w: jnp.sum(mapped(w, batch) * jnp.array([1.0, 2.0])))
        return jax.jit(both)(weights)

    by_loop = looped if repeats is None else lambda w, x: jax.lax.map(lambda b: looped(w, b), x)
    check(values_and_gradients(piped), values_and_gradients(by_loop))
