"""Which equations of a step compute gradients, and that accumulating them computes the same."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ipujax.api.cost.gradient_part import Traced, accumulated, update_only


def loss(weights: Any, x: Any, y: Any) -> Any:
    for w in weights:
        x = jnp.tanh(x @ w)
    return jnp.mean((x - y) ** 2) + 0.01 * sum(jnp.sum(w**2) for w in weights)


def stepping(tx: Any, wrap: Any = lambda f: f, value: bool = True) -> Any:
    """A training step; `wrap` is for the function whose gradient is taken."""

    def step(weights: Any, state: Any, x: Any, y: Any) -> Any:
        found, grads = jax.value_and_grad(wrap(loss))(weights, x, y)
        updates, state = tx.update(grads, state, weights)
        weights = optax.apply_updates(weights, updates)
        return (weights, state, found) if value else (weights, state)

    return step


def arguments(tx: Any, samples: int = 32, seed: int = 0) -> tuple[Any, ...]:
    keys = jax.random.split(jax.random.key(seed), 5)
    weights = [jax.random.normal(key, (16, 16)) / 4 for key in keys[:3]]
    x, y = (jax.random.normal(key, (samples, 16)) for key in keys[3:])
    return weights, tx.init(weights), x, y


OPTIMIZERS = [
    optax.sgd(0.1),
    optax.adamw(1e-2),
    optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(0.1, momentum=0.9)),
]


@pytest.mark.parametrize("tx", OPTIMIZERS)
@pytest.mark.parametrize(
    "wrap", [lambda f: f, jax.jit, jax.checkpoint], ids=["plain", "jit", "remat"]
)
def test_accumulating_computes_the_same(tx: Any, wrap: Any) -> None:
    args = arguments(tx)
    for step in (stepping(tx, wrap), jax.jit(stepping(tx, wrap), donate_argnums=(0, 1))):
        run = accumulated(step, args, (2, 3), 4)
        assert run is not None
        wanted = jax.jit(stepping(tx, wrap))(*args)
        found = jax.jit(run)(*args)
        assert jax.tree.structure(found) == jax.tree.structure(wanted)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 2e-5, 1e-6), found, wanted)


def test_random_counts_of_micro_batches() -> None:
    rng = random.Random(0)
    tx = optax.adam(1e-2)
    for seed in range(6):
        count = rng.choice([1, 2, 3, 5])
        args = arguments(tx, count * rng.randint(1, 7), seed)
        run = accumulated(stepping(tx), args, (2, 3), count)
        assert run is not None
        wanted = jax.jit(stepping(tx))(*args)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 2e-4, 1e-6), run(*args), wanted)


def test_the_gradient_itself_is_accumulated() -> None:
    weights, _, x, y = arguments(optax.sgd(1))
    run = accumulated(jax.grad(loss), (weights, x, y), (1, 2), 8)
    assert run is not None
    wanted = jax.grad(loss)(weights, x, y)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, 2e-5, 1e-6), run(weights, x, y), wanted
    )


def _with_predictions(weights: Any, x: Any, y: Any) -> Any:
    def own(weights: Any) -> Any:
        found = jnp.tanh(x @ weights[0])
        return jnp.mean((found - y) ** 2), found

    return jax.grad(own, has_aux=True)(weights)


def _reads_samples(weights: Any, x: Any, y: Any) -> Any:
    return jax.grad(loss)(weights, x, y), x.sum()


def _with_static(weights: Any, x: Any, y: Any) -> Any:
    return jax.tree.map(lambda w: w.at[0].set(x[0, 0]), weights)


@pytest.mark.parametrize("fun", [loss, _with_predictions, _reads_samples, _with_static])
def test_what_cannot_be_told_apart_is_left(fun: Any) -> None:
    weights, _, x, y = arguments(optax.sgd(1))
    assert accumulated(fun, (weights, x, y), (1, 2), 4) is None


def test_only_the_state_waits_for_the_update() -> None:
    tx = optax.adam(1e-2)
    args = arguments(tx)
    assert update_only(stepping(tx), args, (2, 3)) == [1]
    assert update_only(jax.jit(stepping(tx, jax.jit)), args, (2, 3)) == [1]
    assert update_only(loss, (args[0], args[2], args[3]), (1, 2)) == []
    static = jax.jit(lambda n, x: jax.grad(lambda x: (x**n).sum())(x), static_argnums=0)
    assert update_only(static, (3, args[2]), (1,)) == []


def test_outer_calls_stand_open_and_inner_ones_do_not() -> None:
    tx = optax.sgd(0.1)
    traced = Traced.of(jax.jit(stepping(tx, jax.jit)), arguments(tx))
    names = [eqn.primitive.name for eqn in traced.eqns]
    assert names.count("jit") >= 2  # the forward and the backward pass of the loss
    assert traced.gradient_part() != set(range(len(names)))
