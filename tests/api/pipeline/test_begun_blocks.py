"""Blocks that begin at layers: which operations each holds, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.api.pipeline.test_blocks import stage_calls

X = jnp.arange(6.0).reshape(2, 3)


class Dense:
    def __init__(self, scale: float):
        self.w = jnp.eye(3) * scale

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ self.w)


class Encoder:
    def __init__(self) -> None:
        self.first, self.second = Dense(0.5), Dense(2.0)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.second(self.first(x) + 1)


class Model:
    def __init__(self) -> None:
        self.encoder, self.head = Encoder(), Dense(0.1)

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.sum(self.head(self.encoder(x * 3)) * 2)


def scoped(x: jax.Array) -> jax.Array:
    for name in ("a", "b", "a"):
        with jax.named_scope(name):
            x = jnp.sin(x) * 2
    return x


def looped(x: jax.Array) -> jax.Array:
    def step(x: jax.Array, _: Any) -> tuple[jax.Array, None]:
        with jax.named_scope("inner"):
            x = jnp.sin(x)
        with jax.named_scope("outer"):
            return x + 1, None

    return jax.lax.scan(step, x * 2, None, 3)[0]


def in_stages(fun: Callable[..., Any], layers: dict[str, int | None]) -> list[tuple[str, Any, int]]:
    """Name, IPU and number of equations of each stage."""
    stages = [ipu.Stage(name, ipu=number) for name, number in layers.items()]
    strategy = ipu.ShardedExecution(*stages)
    return stage_calls(strategy.apply(ipu.begin_blocks(fun, layers)), X)


def test_a_block_lasts_until_the_next_begins() -> None:
    found = in_stages(Model(), {"Model/encoder/second": 1, "Model/encoder": 0})
    assert found == [("Model/encoder", 0, 3), ("Model/encoder/second", 1, 6)]
    assert in_stages(Model(), {"Model/head": 2}) == [("Model/head", 2, 4)]
    assert in_stages(Model(), {"Model/*/first": 0, "Model/h??d": 1}) == [
        ("Model/*/first", 0, 5),
        ("Model/h??d", 1, 4),
    ]


def test_a_block_begins_wherever_its_layer_is_entered() -> None:
    assert [name for name, _, _ in in_stages(scoped, {"a": 0, "b": 1})] == ["a", "b", "a"]
    assert in_stages(scoped, {"b": 1}) == [("b", 1, 4)]


def test_jitted_functions_are_divided() -> None:
    layers: dict[str, int | None] = {"Model/encoder": 0, "Model/head": 1}
    assert in_stages(jax.jit(Model()), layers) == in_stages(Model(), layers)


def test_a_loop_belongs_to_the_block_that_begins_in_it() -> None:
    assert in_stages(looped, {"inner": 0}) == [("inner", 0, 1)]
    with pytest.raises(
        ipu.PlacementError,
        match=r"begin outside of loops.*got 'inner' \(at test_begun_blocks.py:\d+\) and 'outer'",
    ):
        ipu.begin_blocks(looped, {"inner": 0, "outer": 1})(X)


@pytest.mark.parametrize("layer", ["inner", "outer"])
def test_without_a_strategy_a_block_places_what_it_holds(layer: str) -> None:
    with pytest.raises(Exception, match=r"got IPU 7 for .*test_begun_blocks.py"):
        jax.jit(ipu.begin_blocks(looped, {layer: 7}))(X)


@pytest.mark.parametrize(
    ("fun", "layers"),
    [
        (Model(), {"Model/encoder": None, "Model/head": 0}),
        (looped, {"outer": 0}),
        (scoped, {"b": 0}),
    ],
)
def test_results_and_gradients_are_those_of_the_function(fun: Any, layers: Any) -> None:
    def loss(fun: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(jax.value_and_grad(lambda x: jnp.sum(fun(x))))

    wanted, found = loss(fun)(X), loss(ipu.begin_blocks(fun, layers))(X)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)


def test_blocks_of_the_function_keep_their_operations() -> None:
    def fun(x: jax.Array) -> jax.Array:
        with jax.named_scope("a"):
            x = jnp.sin(x)
            with ipu.block("own"):
                x = jnp.cos(x)
        return x + 1

    strategy = ipu.ShardedExecution("a", "own")
    found = stage_calls(strategy.apply(ipu.begin_blocks(fun, {"a": None})), X)
    assert [name for name, _, _ in found] == ["a", "own", "a"]


def test_arguments_and_results_are_trees() -> None:
    def fun(x: dict[str, jax.Array], *, scale: jax.Array) -> dict[str, jax.Array]:
        with jax.named_scope("a"):
            return {"y": x["x"] * scale, "x": x["x"]}

    found = ipu.begin_blocks(fun, {"a": 0})({"x": X}, scale=jnp.float32(2))
    np.testing.assert_array_equal(found["y"], X * 2)
    np.testing.assert_array_equal(found["x"], X)


@pytest.mark.parametrize(
    ("layers", "why"),
    [
        ({"Model/encodr": 0}, r"has: 'Model', .*'Model/encoder/first'.*got 'Model/encodr'"),
        ({"Model/head": -1}, "number of an IPU"),
        ({"": 0}, "needs a name"),
        ({}, "needs the IPU of each block by layer; got {}"),
        (["Model/head"], r"needs the IPU of each block by layer; got \['Model/head'\]"),
    ],
)
def test_what_is_refused(layers: Any, why: str) -> None:
    with pytest.raises(ipu.PlacementError, match=why):
        ipu.begin_blocks(Model(), layers)(X)
