"""`ipu.cycle_count` and `poplar::cycleStamp`: cycles inside programs."""

from __future__ import annotations

import random
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu

X = jnp.linspace(0, 1, 5000)


def _draw(rng: random.Random, depth: int) -> Callable[[jax.Array], jax.Array]:
    """Steps, loops and branches of a random program of one array."""
    kind = rng.choice(["step", "loop", "while", "if", "both"]) if depth else "step"
    if kind == "step":
        return rng.choice([jnp.tanh, jnp.exp2, lambda x: x[::-1], lambda x: x - x.mean()])
    first, second = _draw(rng, depth - 1), _draw(rng, depth - 1)
    count = rng.randint(0, 4)
    return {
        "loop": lambda x: lax.fori_loop(0, count, lambda _, x: first(x), x),
        "while": lambda x: lax.fori_loop(
            0, jnp.where(x[0] < 9, count, 1).astype(int), lambda _, x: first(x), x
        ),
        "if": lambda x: lax.cond(x.sum() > count, first, second, x),
        "both": lambda x: second(first(x)),
    }[kind]


@pytest.mark.parametrize("seed", range(12))
def test_counts_of_parts_add_up(seed: int):
    rng = random.Random(seed)
    first, second = _draw(rng, 3), _draw(rng, 3)

    @jax.jit
    def timed(x: jax.Array) -> tuple[jax.Array, ...]:
        x, a = ipu.cycle_count(x)
        y, b = ipu.cycle_count(first(x))
        z, c = ipu.cycle_count(second(y))
        return z, b - a, c - b, c - a

    z, one, two, both = timed(X)
    np.testing.assert_array_equal(
        z, jax.jit(lambda x: second(lax.optimization_barrier(first(x))))(X)
    )
    assert int(one) + int(two) == int(both)
    measured = ipu.cost(timed, X, run=True)
    assert int(both) <= measured.analysis.get("measured cycles", measured.cycles)


@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_iterations_are_counted_as_they_run(count: int):
    @jax.jit
    def timed(x: jax.Array, n: jax.Array) -> jax.Array:
        x, begin = ipu.cycle_count(x)
        _, end = ipu.cycle_count(lax.fori_loop(0, n, lambda _, x: jnp.tanh(x), x))
        return end - begin

    empty, one, many = (int(timed(X, n)) for n in (0, 1, count))
    assert many == empty + count * (one - empty)
    assert one - empty > 100


def test_every_run_counts_from_its_beginning():
    timed = jax.jit(lambda x: ipu.cycle_count(jnp.tanh(x))[1])
    assert int(timed(X)) == int(timed(X)) > 0


def test_replicas_count_each():
    def timed(x: jax.Array) -> jax.Array:
        x, begin = ipu.cycle_count(x)
        _, end = ipu.cycle_count(lax.psum(jnp.tanh(x), "i"))
        return end - begin

    alone = int(jax.jit(lambda x: _difference(jnp.tanh, x))(X[:100]))
    counts = ipu.pmap(timed, axis_name="i")(jnp.ones((4, 100)))
    assert len(set(np.asarray(counts).tolist())) == 1
    assert int(counts[0]) > alone  # the sum over links is on top


def _difference(f: Callable[[jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    x, begin = ipu.cycle_count(x)
    _, end = ipu.cycle_count(f(x))
    return end - begin


def test_values_pass_through_transformations():
    gradient = jax.grad(lambda x: ipu.cycle_count(x**2)[0].sum())
    np.testing.assert_array_equal(jax.jit(gradient)(X), 2 * X)
    values, counts = jax.vmap(lambda x: ipu.cycle_count({"a": x, "b": 1}))(X)
    assert set(values) == {"a", "b"}
    assert counts.shape == X.shape


def test_other_platforms_are_refused():
    x = jax.device_put(jnp.ones(3), jax.devices("cpu")[0])
    with pytest.raises(ipu.PlacementError, match="got a program for cpu"):
        ipu.cycle_count(x)


def test_several_ipus_are_refused(run_python):
    code = "import jax, ipujax; ipujax.cycle_count(jax.numpy.ones(3))"
    run = run_python("-c", code, env={"JAX_IPU_IPUS_PER_DEVICE": "2"})
    assert run.returncode != 0
    assert "needs a device of one IPU; got one of 2" in run.stderr
