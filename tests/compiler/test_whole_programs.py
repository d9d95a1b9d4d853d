"""Programs that are hard between the ops: donation, carries that trade places, random graphs."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.compiler.rules.test_cases import on

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def both(f, *args, **options):
    """Results on the CPU and on the IPU, compiled."""
    cpu, ipu = jax.devices("cpu")[0], jax.devices("ipu")[0]
    return on(cpu, jax.jit(f), args), on(ipu, jax.jit(f, **options), args)


def assert_equal(f, *args, **options):
    expected, actual = both(f, *args, **options)
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.filterwarnings("ignore:Some donated buffers were not usable")
@pytest.mark.parametrize(
    "f",
    [
        lambda x, y: (y, x),
        lambda x, y: (y + 1, x + 1),
        lambda x, y: (y, y + x),
        lambda x, y: (x + y, x + y),
        lambda x, y: (x, x),
        lambda x, y: (y[::-1], x[::-1]),
        lambda x, y: (x[::-1], y[:, ::-1]),
        lambda x, y: (x.at[0].set(y[1]), y.at[1].add(x[2])),
        lambda x, y: (jnp.sort(x, 0), x @ y.T @ y),
        lambda x, y: (jnp.ones_like(x), x * y),
        lambda x, y: lax.fori_loop(0, 30, lambda i, s: (s[1] * 0.5, s[0] + i), (x, y)),
    ],
)
@pytest.mark.parametrize("donated", [(0,), (1,), (0, 1)])
def test_donated_arguments_never_change_a_number(f, donated):
    assert_equal(f, X, X + 100, donate_argnums=donated)


@pytest.mark.parametrize("rounds", [0, 1, 2, 7, 20])
def test_carries_that_trade_places(rounds):
    def f(a, b, c):
        def body(i, s):
            a, b, c = s
            return b, c[::-1], a * 0.5 + i

        return lax.fori_loop(0, rounds, body, (a, b, c))

    assert_equal(f, X, X + 10, X + 20)


def test_carries_that_are_views_of_each_other():
    def f(a, b):
        return lax.fori_loop(0, 20, lambda i, s: (s[0].T.reshape(3, 4), s[0] + s[1]), (a, b))

    assert_equal(f, X, X + 1)


def test_an_old_carry_is_stacked_beside_its_new_value():
    def body(c, x):
        return c * 0.9 + x, (c, c * 0.9 + x)

    assert_equal(lambda x: lax.scan(body, jnp.zeros(4), x), np.ones((40, 4), np.float32))


def test_a_buffer_updated_twice_in_one_round():
    def body(i, s):
        s = lax.dynamic_update_slice(s, s[0:1] + i, (i % 3, 0))
        return lax.dynamic_update_slice(s, s[1:2] * 0.5, (jnp.minimum(i, 2), 0))

    assert_equal(lambda x: lax.fori_loop(0, 25, body, x), X)


def test_a_buffer_read_after_its_update():
    def body(i, s):
        buffer, total = s
        new = lax.dynamic_update_slice(buffer, jnp.full((1, 4), i, jnp.float32), (i % 3, 0))
        return new, total + buffer.sum() * 0.1 - new.sum() * 0.05

    assert_equal(lambda x: lax.fori_loop(0, 25, body, (x, 0.0)), X)


def test_an_update_leaves_its_operand_alone():
    assert_equal(lambda x: (x.at[1].set(0.0), x, x.at[1].add(5.0), x.sum()), X)


def test_branches_that_return_outer_values():
    def f(p, x, y):
        a, b = lax.cond(p > 0, lambda: (x, y), lambda: (y, x * 2))
        return a - b, a, b

    assert_equal(f, np.float32(1), X, X + 1)
    assert_equal(f, np.float32(-1), X, X + 1)


def test_many_results_of_one_value():
    assert_equal(lambda x: (x * 2, x * 2, (x * 2).T, (x * 2)[1], x), X)


def random_program(seed):
    rng = random.Random(seed)
    choices = [rng.random() for _ in range(4000)]

    def f(x):
        draw = iter(choices)
        pick = lambda values: values[int(next(draw) * len(values))]  # noqa: E731
        values = [x, x.T * 0.5, jnp.cos(x)]
        for _ in range(40):
            a, b, kind = pick(values[-9:]), pick(values), int(next(draw) * 12)
            made = {
                0: lambda a, b: jnp.broadcast_to(a.mean(0, keepdims=True), a.shape),
                1: lambda a, b: jnp.tanh(a @ b),
                2: lambda a, b: a.T,
                3: lambda a, b: a[::-1],
                4: lambda a, b: jnp.concatenate([a[:2], b[2:]]),
                5: lambda a, b: jnp.sort(a, 1),
                6: lambda a, b: jnp.where(a > b, a, b * 0.5),
                7: lambda a, b: a.reshape(-1)[::-1].reshape(a.shape),
                8: lambda a, b: a.at[1].set(b[0]),
                9: lambda a, b: lax.fori_loop(0, 9, lambda i, s: (s[1], s[0] * 0.5), (a, b))[0],
            }.get(kind, lambda a, b: jnp.sin(a) + b * 0.25)
            values.append(made(a, b))
        return values[-6:]

    return f


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed):
    x = np.random.default_rng(seed).standard_normal((6, 6)).astype(np.float32)
    assert_equal(random_program(seed), x)


@pytest.mark.parametrize("seed", range(12, 16))
def test_gradients_of_random_graphs(seed):
    x = np.random.default_rng(seed).standard_normal((6, 6)).astype(np.float32)
    f = random_program(seed)
    assert_equal(jax.grad(lambda x: sum((v * v).mean() for v in f(x))), x)
