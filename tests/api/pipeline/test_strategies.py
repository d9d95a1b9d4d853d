"""Strategies and phases: which stage, IPU and place each block gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.api.pipeline.blocks import Block
from ipujax.api.pipeline.strategies import Strategy

BLOCKS = [Block("a", 0, "model.py:1"), Block("b", 1, "model.py:2"), Block("c", 0, "model.py:3")]
UNPLACED = [Block(block.name, None, block.line) for block in BLOCKS]
AUTO = ipu.AutoStage


def assigned(strategy: Strategy, blocks: Sequence[Block]) -> dict[str, tuple[int, int | None]]:
    """IPU and place of each block."""
    found = {}
    for name, given in strategy.assign(blocks).items():
        ipu_of = given.make(lambda: None).ipu
        assert ipu_of is not None
        found[name] = (ipu_of, given.place)
    return found


@pytest.mark.parametrize(
    ("strategy", "blocks", "wanted"),
    [
        (ipu.ShardedExecution(), BLOCKS, {"a": (0, None), "b": (1, None), "c": (0, None)}),
        (ipu.PipelinedExecution(), BLOCKS, {"a": (0, 0), "b": (1, 1), "c": (0, 0)}),
        (
            ipu.PipelinedExecution(AUTO.INCREMENT),
            BLOCKS,
            {"a": (0, 0), "b": (1, 1), "c": (0, 2)},
        ),
        (
            ipu.PipelinedExecution(AUTO.INCREMENT),
            UNPLACED,
            {"a": (0, 0), "b": (1, 1), "c": (2, 2)},
        ),
        (
            ipu.PipelinedExecution("a", ipu.Stage("b", "c", ipu=3)),
            BLOCKS,
            {"a": (0, 0), "b": (3, 1), "c": (3, 1)},
        ),
        (
            ipu.SerialPhasedExecution(ipu.Phase("a", "b"), "c"),
            BLOCKS,
            {"a": (0, 0), "b": (1, 0), "c": (0, 1)},
        ),
        (
            ipu.SerialPhasedExecution(*(ipu.Stage(name, ipu=2) for name in "abc")),
            BLOCKS,
            {"a": (2, 0), "b": (2, 1), "c": (2, 2)},
        ),
        (
            ipu.ParallelPhasedExecution(ipu.Phase("a"), ipu.Phase("b", "c")),
            UNPLACED,
            {"a": (0, 0), "b": (1, 1), "c": (3, 1)},
        ),
    ],
)
def test_blocks_get_stages(strategy: Strategy, blocks: Sequence[Block], wanted: Any) -> None:
    assert assigned(strategy, blocks) == wanted


def loop_around(x: jax.Array) -> jax.Array:
    def body(x: jax.Array, _: None) -> Any:
        with ipu.block("a"):
            x = x + 1
        with ipu.block("b"):
            return x * 2, None

    return jax.lax.scan(body, x, None, length=2)[0]


def back_and_forth(x: jax.Array) -> jax.Array:
    with ipu.block("a", ipu=0):
        x = x + 1
    with ipu.block("b", ipu=1):
        x = x * 2
    with ipu.block("c", ipu=0):
        return x - 1


def two_ipus(x: jax.Array) -> jax.Array:
    with ipu.block("a", ipu=0):
        x = x + 1
    with ipu.block("a", ipu=1):
        return x * 2


def plain(x: jax.Array) -> jax.Array:
    return x + 1


def applied(strategy: Strategy, fun: Any) -> Any:
    return strategy.apply(fun)(jnp.float32(1))


def test_a_strategy_inside_of_a_block_of_another() -> None:
    """Each sees its own blocks alone, in the calls of the other too."""
    inner = ipu.ShardedExecution("a", "b").apply(jax.jit(back_and_forth_of("a", "b")))

    def model(x: jax.Array) -> jax.Array:
        with ipu.block("outer"):
            x = inner(x)
        with ipu.block("rest"):
            return x - 1

    blocks: list[str] = []

    class Recorded(ipu.ShardedExecution):
        def assign(self, found: Sequence[Block]) -> Any:
            blocks.extend(block.name for block in found)
            return super().assign(found)

    run = Recorded(ipu.Stage("outer", ipu=0), ipu.Stage("rest", ipu=0)).apply(jax.jit(model))
    assert run(jnp.float32(1)) == 3
    assert blocks == ["outer", "rest"]


def back_and_forth_of(*names: str) -> Any:
    def model(x: jax.Array) -> jax.Array:
        with ipu.block(names[0], ipu=0):
            x = x + 1
        with ipu.block(names[1], ipu=0):
            return x * 2

    return model


BAD: list[tuple[Any, type[Exception], str]] = [
    (lambda: ipu.block(""), ipu.PlacementError, r"\[ipu.block\] needs a name"),
    (lambda: ipu.block("a", ipu=-1), ipu.PlacementError, "from 0"),
    (lambda: ipu.Stage(), ipu.PlacementError, "one by one"),
    (lambda: ipu.Stage("a", options={"colour": 1}), ipu.ConfigError, "colour"),
    (lambda: ipu.Phase("a", "b", ipus=[0]), ipu.PlacementError, "as many as stages"),
    (lambda: ipu.ShardedExecution(3), ipu.PlacementError, "names of blocks; got 3"),
    (lambda: ipu.PipelinedExecution(schedule="fast"), ipu.PipelineError, "interleaved"),
    (lambda: ipu.SerialPhasedExecution(), ipu.PlacementError, "at least one phase"),
    (
        lambda: ipu.SerialPhasedExecution(ipu.Phase("a", ipus=[1]), "b"),
        ipu.PlacementError,
        r"one group of IPUs, \[1\]; got \[0\] for phase 1",
    ),
    (
        lambda: ipu.ParallelPhasedExecution("a", ipu.Phase("b", ipus=[2])),
        ipu.PlacementError,
        "odd phases on odd IPUs",
    ),
    (
        lambda: ipu.SerialPhasedExecution("a", liveness="off_chip"),
        ipu.PlacementError,
        "ipu.Liveness; got 'off_chip'",
    ),
    (
        lambda: ipu.ParallelPhasedExecution("a", minimum_remote_tensor_size=0),
        ipu.PipelineError,
        "at least 1 byte",
    ),
    (
        lambda: ipu.pipeline(
            ipu.SerialPhasedExecution(
                "a", "b", "c", liveness=ipu.Liveness.OFF_CHIP_AFTER_EACH_PHASE
            ).apply(lambda x: back_and_forth(x)),
            micro_batches=1,
            in_axes=0,
        )(jnp.ones(1)),
        ipu.PipelineError,
        "inside of a pipeline; got stage 'a'",
    ),
    (lambda: applied(ipu.ShardedExecution(), plain), ipu.PlacementError, "with blocks"),
    (
        lambda: applied(ipu.ShardedExecution("a", "b", "d"), back_and_forth),
        ipu.PlacementError,
        r"'a' \(at test_strategies.py:\d+\), .*; got 'd'",
    ),
    (
        lambda: applied(ipu.ShardedExecution("a", "b"), back_and_forth),
        ipu.PlacementError,
        r"got none for 'c' \(at test_strategies.py:\d+\)",
    ),
    (
        lambda: applied(ipu.ShardedExecution("a", "b", "c", "a"), back_and_forth),
        ipu.PlacementError,
        "got 'a' in two",
    ),
    (
        lambda: applied(ipu.ShardedExecution(ipu.Stage("a", "b"), "c"), back_and_forth),
        ipu.PlacementError,
        "one IPU for each stage",
    ),
    (lambda: applied(ipu.ShardedExecution(), two_ipus), ipu.PlacementError, "another name"),
    (lambda: applied(ipu.ShardedExecution(), loop_around), ipu.PlacementError, "INCREMENT"),
    (
        lambda: applied(ipu.ShardedExecution("a", "b"), loop_around),
        ipu.PlacementError,
        r"got a, b in one 'scan' \(at test_strategies.py:\d+\)",
    ),
    (
        lambda: ipu.PipelinedExecution().apply(back_and_forth, micro_batches=1, in_axes=0)(
            jnp.ones(1)
        ),
        ipu.PipelineError,
        r"'c' \(at test_strategies.py:\d+\) in stage or phase 0, which needs",
    ),
    (
        lambda: applied(ipu.SerialPhasedExecution("b", "a", "c"), back_and_forth),
        ipu.PipelineError,
        "Change the order",
    ),
]


@pytest.mark.parametrize(("make", "error", "message"), BAD)
def test_bad_input_is_explained(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()
