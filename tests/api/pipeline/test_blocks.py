"""Blocks: which operations they name, and how a function is cut into calls of stages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax import jax_compat

WEIGHTS = [jnp.eye(3) / 2, jnp.full((3, 3), 0.1)]
X = jnp.arange(6.0).reshape(2, 3)


def stage_calls(fun: Callable[..., Any], *args: Any) -> list[tuple[str, int | None, int]]:
    """Name, IPU and number of equations of each call of a stage."""
    found = []
    for eqn in jax.make_jaxpr(fun)(*args).eqns:
        if eqn.primitive.name == "ipu_stage":
            label = eqn.params["label"]
            found.append((label.name, label.ipu, len(eqn.params["jaxpr"].eqns)))
    return found


def two_blocks(weights: Any, x: jax.Array) -> jax.Array:
    with ipu.block("first", ipu=0):
        x = jnp.sin(x @ weights[0])
    x = x + 1
    with ipu.block("second", ipu=1):
        return jnp.sum(x @ weights[1])


def unmarked(weights: Any, x: jax.Array) -> jax.Array:
    return jnp.sum((jnp.sin(x @ weights[0]) + 1) @ weights[1])


def decorated(weights: Any, x: jax.Array) -> jax.Array:
    @ipu.block("first", ipu=0)
    def first(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sin(x @ w)

    @jax.jit
    @ipu.block("second", ipu=1)
    def second(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(x @ w)

    return second(weights[1], first(weights[0], x) + 1)


def nested(weights: Any, x: jax.Array) -> jax.Array:
    @jax.jit
    def both(x: jax.Array) -> jax.Array:
        with ipu.block("second", ipu=1):
            with ipu.block("first", ipu=0):
                x = jnp.sin(x @ weights[0])
            return jnp.sum((x + 1) @ weights[1])

    return both(x)


@pytest.mark.parametrize("fun", [two_blocks, decorated, nested])
def test_each_block_is_one_call_of_its_stage(fun: Callable[..., Any]) -> None:
    in_stages = ipu.ShardedExecution().apply(fun)
    calls = stage_calls(in_stages, WEIGHTS, X)
    assert [call[:2] for call in calls] == [("first", 0), ("second", 1)]
    assert calls[0][2] == 2
    assert stage_calls(fun, WEIGHTS, X) == []


def test_what_stands_between_operations_of_one_stage_belongs_to_it() -> None:
    def fun(x: jax.Array) -> jax.Array:
        with ipu.block("a"):
            x = x * 2
        x = x + 1
        with ipu.block("b"):
            x = jnp.sin(x)
        return x - 1

    assert stage_calls(ipu.ShardedExecution("a", "b").apply(fun), X) == [("a", 0, 1), ("b", 1, 1)]
    assert stage_calls(ipu.ShardedExecution(ipu.Stage("a", "b")).apply(fun), X) == [("a+b", 0, 3)]


def test_a_function_that_several_blocks_call_belongs_to_each() -> None:
    """JAX keeps traces of jitted functions: they must not remember the first block."""
    shared = jax.jit(lambda x: jnp.sin(x) + 1)

    def fun(x: jax.Array) -> jax.Array:
        with ipu.block("a"):
            x = shared(x)
        with ipu.block("b"):
            return shared(x)

    for order in (("a", "b"), ("b", "a")):
        strategy = ipu.ShardedExecution(*(ipu.Stage(name, ipu=0) for name in order))
        assert [call[0] for call in stage_calls(strategy.apply(fun), X)] == ["a", "b"]


def test_a_block_with_an_ipu_is_a_place_without_a_strategy() -> None:
    @jax.jit
    def fun(x: jax.Array) -> jax.Array:
        with ipu.block("here", ipu=0), ipu.block("anywhere"):
            return x + 1

    assert fun(1.0) == 2
    with pytest.raises(Exception, match=r"got IPU 7 for .*test_blocks.py"):
        jax.jit(ipu.block("far", ipu=7)(lambda x: x + 1))(1.0)


@pytest.mark.parametrize("transform", [jax.value_and_grad, jax.checkpoint, jax.jit, jax.vmap])
def test_a_function_in_stages_composes(transform: Callable[..., Any]) -> None:
    in_stages = ipu.ShardedExecution(
        ipu.Stage("first", ipu=0, remat=True), ipu.Stage("second", ipu=0)
    ).apply(two_blocks)
    args: Any = (WEIGHTS, X)
    if transform is jax.vmap:
        args = jax.tree.map(lambda x: x[None], args)
    got, wanted = transform(in_stages)(*args), transform(unmarked)(*args)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-6), got, wanted)


def test_lines_are_those_of_the_user() -> None:
    eqn = jax.make_jaxpr(lambda x: x + 1)(1.0).eqns[0]
    assert jax_compat.line_of(eqn).startswith("test_blocks.py:")
