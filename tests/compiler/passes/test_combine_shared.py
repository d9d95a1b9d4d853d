"""Products that share an operand, lookups that share a table: results, costs, what stays apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

RNG = np.random.default_rng(0)
MATMULS = {"ipu_combine_matmuls": True}
LOOKUPS = {"ipu_combine_embedding_lookups": True}


def whole(*shape: int) -> np.ndarray:
    """Whole numbers, whose sums are exact in any order."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


def attention(x: Any, q: Any, k: Any, v: Any) -> Any:
    """The second product is needed before the third one comes."""
    return jnp.maximum(x @ k, 0), jnp.maximum(x @ q, 0).sum(), x @ v


def gradients(x: Any, *weights: Any) -> Any:
    return jax.grad(lambda w: sum(((x @ each) ** 2).sum() for each in w))(weights)


def same_weights(x: Any, y: Any, z: Any, w: Any) -> Any:
    return x @ w, y @ w, z @ w


def batched(x: Any, a: Any, b: Any) -> Any:
    """Products of one left operand, of which two dimensions are free."""
    one = jnp.einsum("bij,bjkl->bikl", x, a)
    return one, jnp.einsum("bij,bjkl->bikl", x, b)


def in_a_loop(x: Any, a: Any, b: Any) -> Any:
    def step(_: Any, row: Any) -> Any:
        return row.sum(), (row @ a, row @ b)

    return jax.lax.scan(step, jnp.float32(0), x)


IDS = RNG.integers(0, 1000, 50).astype(np.int32), RNG.integers(0, 1000, (4, 5)).astype(np.int32)


def lookups(table: Any, i: Any, j: Any) -> Any:
    return table[i], table[j].sum(), table[i][:, 1], jnp.take(table, j, axis=0)


def lookup_gradients(table: Any, i: Any, j: Any) -> Any:
    return jax.grad(lambda t: (t[i] ** 2).sum() + (t[j] ** 3).sum())(table)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "left": (attention, (whole(32, 64), whole(64, 48), whole(64, 48), whole(64, 16)), MATMULS),
    "right": (
        same_weights,
        (whole(8, 64), whole(3, 64), whole(64, 64), whole(64, 32)),
        MATMULS,
    ),
    "gradients": (gradients, (whole(32, 32), whole(32, 48) // 2, whole(32, 48) // 2), MATMULS),
    "batched": (batched, (whole(4, 5, 6), whole(4, 6, 3, 7), whole(4, 6, 2, 7)), MATMULS),
    "scan": (in_a_loop, (whole(3, 4, 64), whole(64, 48), whole(64, 48)), MATMULS),
    "lookups": (lookups, (whole(1000, 16), *IDS), LOOKUPS),
    "lookup-gradients": (lookup_gradients, (whole(1000, 16), *IDS), LOOKUPS),
}


#: Whose operands have to be moved to be joined, which costs more than is saved.
MOVED = ("batched", "gradients")


def compiled(f: Callable[..., Any], arguments: Any, options: dict[str, Any] | None = None) -> Any:
    return jax.jit(f, compiler_options=options).lower(*arguments).compile()


@pytest.mark.parametrize("name", CASES)
def test_equal_results_and_fewer_cycles(name: str) -> None:
    f, arguments, options = CASES[name]
    apart, together = compiled(f, arguments), compiled(f, arguments, options)
    jax.tree.map(np.testing.assert_array_equal, together(*arguments), apart(*arguments))
    with jax.default_device(jax.devices("cpu")[0]):
        jax.tree.map(np.testing.assert_array_equal, together(*arguments), f(*arguments))
    before, after = (each.cost_analysis()["cycles"] for each in (apart, together))
    assert after != before
    if name not in MOVED:
        assert after < before


def test_what_depends_on_another_product_stays_apart() -> None:
    w = whole(16, 16)

    def f(x: Any) -> Any:
        return (x @ w) @ w

    x = whole(4, 16)
    apart, together = compiled(f, (x,)), compiled(f, (x,), MATMULS)
    assert together.cost_analysis()["cycles"] == apart.cost_analysis()["cycles"]
    np.testing.assert_array_equal(together(x), (x @ w) @ w)


def test_products_of_different_kinds_stay_apart() -> None:
    """Other dtypes of results, other options, other contracted dimensions, and recomputation."""
    x, a, b = whole(16, 16), whole(16, 16), whole(16, 16)

    def dtypes(x: Any, a: Any, b: Any) -> Any:
        half = jnp.dot(x.astype(jnp.float16), a.astype(jnp.float16))
        wide = jnp.dot(
            x.astype(jnp.float16), b.astype(jnp.float16), preferred_element_type=jnp.float32
        )
        return half, wide

    def scoped(x: Any, a: Any, b: Any) -> Any:
        with ipu.precision(partials_type="half"):
            y = x @ a
        return y, x @ b

    def turned(x: Any, a: Any, b: Any) -> Any:
        return x @ a, x.T @ b

    def recomputed(x: Any, a: Any, b: Any) -> Any:
        layer = jax.checkpoint(lambda a: jnp.sin(jnp.sin(x @ a) @ b).sum())
        return jax.grad(layer)(a)

    for f in (dtypes, scoped, turned, recomputed):
        apart, together = compiled(f, (x, a, b)), compiled(f, (x, a, b), MATMULS)
        assert together.cost_analysis()["cycles"] == apart.cost_analysis()["cycles"], f.__name__


def test_lookups_of_other_forms_stay_as_they_are() -> None:
    table, i, j = whole(20, 6), np.arange(4, dtype=np.int32), np.arange(3, dtype=np.int32)

    def f(table: Any, i: Any, j: Any) -> Any:
        columns = table[:, i], table[:, j]
        batched = jax.vmap(lambda row, k: row[k])(table[:3], j)
        return *columns, batched, table[j, 0], table[i, 1]

    arguments = (table, i, j)
    together = compiled(f, arguments, LOOKUPS)
    wanted = (table[:, i], table[:, j], table[[0, 1, 2], j], table[j, 0], table[i, 1])
    jax.tree.map(np.testing.assert_array_equal, together(*arguments), wanted)


def test_a_product_joins_one_group_only() -> None:
    """x @ a shares x with one product and a with two others, which are more."""
    x, y, z, a, b = (whole(8, 8) for _ in range(5))

    def f(x: Any, y: Any, z: Any, a: Any, b: Any) -> Any:
        return x @ a, x @ b, y @ a, z @ a, (y @ a) @ b

    found = compiled(f, (x, y, z, a, b), MATMULS)(x, y, z, a, b)
    wanted = (x @ a, x @ b, y @ a, z @ a, (y @ a) @ b)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
