"""Accumulators: one on each IPU that adds to a result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax import jax_compat
from ipujax.api.pipeline import accumulators
from ipujax.api.pipeline.accumulators import divide_by_place

TABLE = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)), jnp.float32)
X = jnp.asarray(np.random.default_rng(1).normal(size=(4, 2, 5)), jnp.float32)


def embed(table: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ table)


def head(table: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.mean((x @ table.T) ** 2)


def tied(
    ipus: tuple[int, ...], around: Callable[..., Any] = lambda stage: stage
) -> Callable[..., Any]:
    first, second, last = (
        around(ipu.stage(f, i)) for f, i in zip((embed, embed, head), ipus, strict=True)
    )
    return lambda table, x: last(table, first(table, x) + second(table, x))


IDS = np.array([4, 0, 2])


def holding(ipus: tuple[int, ...], around: Callable[..., Any] = ipu.stage) -> Callable[..., Any]:
    """Arrays of indices in stages, in the calls of them, and in what calls these."""

    def with_rows(fun: Callable[..., Any]) -> Callable[..., Any]:
        return lambda table, x: fun(table, x) + 0.1 * jnp.sum(table[IDS])

    first, second, last = (
        jax.jit(with_rows(around(with_rows(f), i)))
        for f, i in zip((embed, embed, head), ipus, strict=True)
    )
    return with_rows(jax.jit(lambda t, x: last(t, first(t, x) + second(t, x))))


MODELS: dict[str, Callable[..., Any]] = {
    "plain": tied,
    "jitted": lambda ipus: jax.jit(jax.jit(tied(ipus))),
    "jitted stages": lambda ipus: tied(ipus, jax.jit),
    "holding arrays": holding,
    "checkpoints": lambda ipus: tied(ipus, jax.checkpoint),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("ipus", "count"), [((0, 0, 0), 1), ((0, 1, 0), 2), ((0, 0, 1), 2), ((2, 0, 1), 3)]
)
def test_terms_of_each_ipu_are_one_sum(model: str, ipus: tuple[int, ...], count: int) -> None:
    with jax.default_device(jax.devices("cpu")[0]):
        table, x = np.asarray(TABLE), np.asarray(X[0])
        gradient = jax.grad(MODELS[model](ipus))
        traced, captured = jax_compat.trace_call(lambda t, x: [gradient(t, x), x], [table, x])
        divided, counts = divide_by_place(traced, [True, True], overlaps=True)
        assert counts == [count, 1]
        *terms, same = jax.jit(jax.extend.core.jaxpr_as_fun(divided))(*captured, table, x)
        np.testing.assert_allclose(sum(terms), gradient(table, x), 1e-5)
        np.testing.assert_array_equal(same, x)


@pytest.mark.parametrize("large_bytes", [4 << 20, 0])
def test_a_sum_on_one_ipu_has_the_bits_of_the_plain_loop(
    large_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accumulators, "LARGE_BYTES", large_bytes)
    pipeline = ipu.pipeline(tied((0, 0, 0)), micro_batches=4, reduction="sum")

    def plain(table: jax.Array, batch: jax.Array) -> jax.Array:
        def add(total: jax.Array, x: jax.Array) -> Any:
            return total + jax.grad(tied((0, 0, 0)))(table, x), None

        return jax.lax.scan(add, jnp.zeros_like(table), batch)[0]

    got, wanted = jax.jit(jax.grad(pipeline))(TABLE, X), jax.jit(plain)(TABLE, X)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("serial", [1, 2])
def test_arrays_that_called_functions_hold(serial: int) -> None:
    schedule = {"schedule": "sequential", "batch_serialization_iterations": serial}
    loss = ipu.pipeline(holding((0, 0, 0)), micro_batches=4, reduction="sum", **schedule)
    plain = holding((0, 0, 0), lambda fun, _: fun)
    got = jax.jit(jax.value_and_grad(loss))(TABLE, X)
    wanted = jax.value_and_grad(lambda t, xs: sum(plain(t, x) for x in xs))(TABLE, X)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, 1e-4, 1e-4), got, wanted)
