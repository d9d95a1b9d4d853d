"""Options of the ops that update a stage's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.compiler import ir
from tests.compiler.programs import normal

ROUNDED = ("ipu_stochastic_rounding", "True")
HALF = ("ipu_partials_type", "half")
WEIGHTS = [np.ones((3, 4), np.float16), np.ones((4, 5), np.float16)]
X = np.ones((2, 6, 3), np.float16)


def layer(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


def head(w: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(layer(w, x))


STAGES = [
    ipu.stage(layer, options={"weight_update": {"stochastic_rounding": True}}),
    ipu.stage(head, options={"partials_type": "half"}),
]
LOSS = ipu.pipeline(STAGES, micro_batches=2, reduction="sum", device_mapping=[0, 0])


def sgd(weights: Any, state: Any, batch: jax.Array) -> Any:
    gradients = jax.grad(LOSS)(weights, batch)
    return [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)], state


def momentum(weights: Any, state: Any, batch: jax.Array) -> Any:
    gradients = jax.grad(LOSS)(weights, batch)
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in gradients))
    state = [0.9 * m + g / norm for m, g in zip(state, gradients, strict=True)]
    return [w - 0.1 * m for w, m in zip(weights, state, strict=True)], state


def skipped(weights: Any, state: Any, batch: jax.Array) -> Any:
    gradients = jax.grad(LOSS)(weights, batch)
    finite = jnp.isfinite(sum(jnp.sum(g) for g in gradients))
    updated = [w - 0.1 * g for w, g in zip(weights, gradients, strict=True)]
    return jax.lax.cond(finite, lambda: updated, lambda: weights), state


def steps(weights: Any, state: Any, batch: jax.Array) -> Any:
    def step(carried: Any, _: None) -> Any:
        return momentum(*carried, batch), None

    return jax.lax.scan(step, (weights, state), None, length=9)[0]


@pytest.mark.parametrize("step", [sgd, momentum, skipped, steps])
def test_updates_have_the_options_of_their_stage(step: Callable[..., Any]) -> None:
    program = normal(step, WEIGHTS, WEIGHTS, X)
    claimed, own, others = set(), set(), set()
    for op in ir.walk_ops(program.main):
        placed = op.source.placed
        if placed.stage_name:
            claimed.update(op.source.options)
        elif not placed.pipeline and op.results and not op.regions:
            (own if op.results[0].shape == (3, 4) else others).add(op.source.options)
    assert claimed == {HALF}
    assert own == {(ROUNDED,)}
    assert ROUNDED not in set().union(*others)


def test_what_a_stage_needs_is_no_update() -> None:
    first, second = (
        ipu.stage(f, options={"weight_update": {"stochastic_rounding": True}})
        for f in (layer, head)
    )

    def gradients(weights: Any, x: jax.Array) -> Any:
        return jax.grad(lambda w: second(w[1], first(w[0], x * 2) * 3))(weights)

    program = normal(gradients, WEIGHTS, X[0])
    outside = [op for op in ir.walk_ops(program.main) if not op.source.placed.stage_name]
    assert sum(op.name == "multiply" for op in outside) == 3
    assert {op.source.options for op in outside} == {()}
