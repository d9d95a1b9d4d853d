"""Lookups and updates of tables against plain loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

UPDATES = ("add", "sorted", "combined")
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(12, 5)).astype(np.float32)
IDS = RNG.integers(0, 12, (3, 7))


def gradient_of(ids: np.ndarray, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape)
    for index, row in zip(ids.ravel(), rows.reshape(-1, *shape[1:]), strict=True):
        out[index] += row
    return out


@pytest.mark.parametrize("platform", ["ipu", "cpu"])
@pytest.mark.parametrize("factor", [1, 4])
@pytest.mark.parametrize("update", UPDATES)
def test_rows_and_gradient(platform: str, factor: int, update: str):
    weight = RNG.normal(size=(3, 7, 5)).astype(np.float32)

    def total(table, ids):
        rows = ipu.ops.embedding_lookup(table, ids, factor, update=update)
        return jnp.sum(rows * weight), rows

    device = jax.devices(platform)[0]
    step = jax.jit(jax.grad(total, has_aux=True))
    got, rows = step(*jax.device_put((TABLE, IDS), device))
    np.testing.assert_array_equal(rows, TABLE[IDS])
    np.testing.assert_allclose(got, gradient_of(IDS, weight, TABLE.shape), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("update", UPDATES)
def test_second_order_and_forward_mode(update: str):
    ids = np.array([3, 3, 0])

    def total(table):
        return jnp.sum(ipu.ops.embedding_lookup(table, ids, update=update) ** 3) / 6

    def along(table):
        return jnp.vdot(jax.grad(total)(table), jnp.ones_like(table))

    second = jax.jit(jax.grad(along))(TABLE)
    want = np.bincount(ids, minlength=12)[:, None] * TABLE
    np.testing.assert_allclose(second, want, rtol=1e-5, atol=1e-6)
    _, tangent = jax.jvp(total, (TABLE,), (np.ones_like(TABLE),))
    np.testing.assert_allclose(tangent, (TABLE[ids] ** 2).sum() / 2, rtol=1e-5)


def test_several_arrays_are_one_lookup():
    ids = {"true": IDS, "one": np.int32(4)}
    lookup = jax.jit(ipu.ops.embedding_lookup)
    found = lookup(TABLE, ids)
    np.testing.assert_array_equal(found["true"], TABLE[IDS])
    np.testing.assert_array_equal(found["one"], TABLE[4])
    assert lookup.lower(TABLE, ids).as_text().count('"stablehlo.gather"(') == 1


def test_unknown_ids_outside_are_clipped():
    got = jax.jit(ipu.ops.embedding_lookup)(TABLE, jnp.array([-1, 12, 100]))
    np.testing.assert_array_equal(got, TABLE[[0, 11, 11]])


def test_combined_updates_add_up_in_float32():
    """A thousand small rows of one id: float16 sums stop growing, the combined one does not."""
    table, ids = jnp.zeros((4, 2), jnp.float16), np.full(4000, 2)

    def total(table):
        rows = ipu.ops.embedding_lookup(table, ids, update="combined")
        return jnp.sum(rows.astype(jnp.float32)) * 0.1

    grad = jax.jit(jax.grad(total))(table)
    assert grad.dtype == jnp.float16
    np.testing.assert_allclose(grad[2].astype(np.float32), 400, rtol=1e-3)
    np.testing.assert_array_equal(grad[np.array([0, 1, 3])], 0)


@pytest.mark.parametrize("update", UPDATES)
def test_batches_and_empty(update: str):
    def lookup(table, ids):
        return ipu.ops.embedding_lookup(table, ids, update=update)

    rows = jax.jit(jax.vmap(lookup, in_axes=(None, 0)))(TABLE, IDS)
    np.testing.assert_array_equal(rows, TABLE[IDS])
    assert lookup(TABLE, jnp.zeros((0, 2), jnp.int32)).shape == (0, 2, 5)


REFUSED = [
    (lambda: ipu.ops.embedding_lookup(TABLE, jnp.ones(2)), "ids of an integer dtype; got float32"),
    (lambda: ipu.ops.embedding_lookup(TABLE, IDS, 5), "divide the 12 rows; got 5. Use a divisor"),
    (lambda: ipu.ops.embedding_lookup(TABLE, IDS, 0), "divide the 12 rows; got 0"),
    (lambda: ipu.ops.embedding_lookup(jnp.zeros((0, 3)), IDS), r"one row; got float32 \[0, 3\]"),
    (lambda: ipu.ops.embedding_lookup(jnp.ones(3, int), IDS), "floating-point dtype.*got int32"),
    (lambda: ipu.ops.embedding_lookup(TABLE, IDS, update="max"), "one of add, sorted, combined"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_refused(call, text: str):
    with pytest.raises(ipu.ConfigError, match=text):
        call()
