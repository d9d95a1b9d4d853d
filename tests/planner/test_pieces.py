"""A function cut anywhere gives what it gave whole."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.planner.parts import Divided, divide
from ipujax.planner.pieces import pieces_of, run_pieces
from tests.planner.models import KINDS, random_model


def scans(weights: Any, x: jax.Array) -> Any:
    """Scans in both directions, what they stack, a cast, a mask, and a result of weights alone."""
    mask = jnp.tril(jnp.ones((4, 8)))
    stacked = weights["stacked"].astype(jnp.bfloat16).astype(jnp.float32)

    def layer(x: jax.Array, w: jax.Array) -> Any:
        return jnp.tanh(x @ w), x.sum()

    x, sums = jax.lax.scan(layer, x * mask, stacked)
    x, back = jax.lax.scan(layer, x, stacked, reverse=True)
    x = jax.checkpoint(lambda x: x @ weights["stacked"][1])(x)
    return x, sums, back, weights["stacked"].sum(), 2.0


def check(fun: Any, weights: Any, x: Any, largest: float, seeds: int = 3) -> Divided:
    leaves = jax.tree.leaves((weights, x))
    shared = [True] * (len(leaves) - 1) + [False]
    divided = divide(jax.make_jaxpr(fun)(weights, x), shared, largest)
    count = len(divided.parts)
    wanted = jax.tree.leaves(fun(weights, x))
    for seed in range(seeds):
        stages = 1 + seed * (count - 1) // max(1, seeds - 1)
        ends = np.random.default_rng(seed).choice(np.arange(1, count), stages - 1, replace=False)
        places = [int(np.sum(ends <= part)) for part in range(count)]
        pieces = pieces_of(divided, places, stages)
        got = run_pieces(divided, pieces, lambda _, piece, given: piece(*given), leaves)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    return divided


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_a_cut_model_is_the_model(seed: int) -> None:
    with jax.default_device(jax.devices("cpu")[0]):
        model = random_model(seed)
        micro_batch = jax.tree.map(lambda x: x[0], model.batch)
        check(model.loss, model.weights, micro_batch, 0.02)


def test_scans_are_cut_between_iterations() -> None:
    with jax.default_device(jax.devices("cpu")[0]):
        random = np.random.default_rng(0)
        weights = {"stacked": jnp.asarray(random.normal(size=(5, 8, 8)), jnp.float32)}
        divided = check(scans, weights, jnp.ones((4, 8)), 0.02, seeds=6)
        assert [part.name for part in divided.parts] == [f"scan {i}" for i in range(10)] + [
            "remat2"
        ]
        (whole,) = check(jax.jit(scans), weights, jnp.ones((4, 8)), 2.0).parts
        assert whole.name == "scans"


def test_parts_have_the_names_of_their_blocks() -> None:
    @ipu.block("middle")
    @jax.jit
    def layer(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    def whole(w: jax.Array, x: jax.Array) -> jax.Array:
        with ipu.block("first"):
            x = x @ w
        x, _ = jax.lax.scan(lambda x, _: (layer(w, x), None), layer(w, x), length=2)
        return x @ w

    jaxpr = jax.make_jaxpr(whole)(jnp.ones((4, 4)), jnp.ones((2, 4)))
    names = [part.name for part in divide(jaxpr, [True, False], 0.1).parts]
    inside = "middle/layer/dot_general"
    assert names == ["first/dot_general", inside, "layer 0", "layer 1", "dot_general"]


def test_calls_keep_their_names() -> None:
    @jax.jit
    def layer(w: jax.Array, x: jax.Array) -> jax.Array:
        return jax.nn.relu(x @ w)

    def whole(w: jax.Array, x: jax.Array) -> jax.Array:
        return layer(w, layer(w, x)) @ w

    jaxpr = jax.make_jaxpr(whole)(jnp.ones((4, 4)), jnp.ones((2, 4)))
    names = {
        largest: [part.name for part in divide(jaxpr, [True, False], largest).parts]
        for largest in (0.9, 0.1)
    }
    assert names[0.9] == ["layer 0", "layer 1", "dot_general"]
    assert names[0.1] == ["layer/dot_general 0", "layer/dot_general 1", "dot_general"]
