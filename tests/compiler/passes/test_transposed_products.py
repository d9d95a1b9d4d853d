"""Products that are only read transposed: the same numbers, without the transpose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.compiler.programs import find, names, normal

RNG = np.random.default_rng(0)


def whole(*shape: int) -> np.ndarray:
    """Whole numbers, whose sums are exact in any order."""
    return RNG.integers(-4, 5, shape).astype(np.float32)


def weight_gradient(w: Any, x: Any) -> Any:
    return jax.grad(lambda w: ((x @ w) ** 2).sum())(w)


def scores_gradient(k: Any, q: Any) -> Any:
    return jax.grad(lambda k: (jnp.einsum("bthd,bshd->bhts", q, k) ** 2).sum())(k)


#: name -> function, operands, names of what moves elements afterwards
SWAPPED: dict[str, tuple[Callable[..., Any], list[np.ndarray], list[str]]] = {
    "product": (lambda a, b: (a @ b).T, [whole(5, 7), whole(7, 3)], []),
    "weight": (weight_gradient, [whole(7, 3), whole(4, 5, 7)], []),
    "groups": (
        lambda a, b: jnp.einsum("gij,gjk->gki", a, b),
        [whole(2, 4, 5), whole(2, 5, 3)],
        [],
    ),
    "two free dimensions": (
        lambda a, b: jnp.einsum("ijk,kl->lij", a, b),
        [whole(2, 3, 4), whole(4, 5)],
        [],
    ),
    "attention": (scores_gradient, [whole(2, 3, 4, 5), whole(2, 6, 4, 5)], ["transpose"]),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_rows_of_a_transposed_product_stay_whole(name: str) -> None:
    function, operands, moves = SWAPPED[name]
    block = normal(function, *operands).main
    assert [n for n in names(block) if n in ("transpose", "reshape")] == moves
    if moves:
        assert find(normal(function, *operands), "transpose").attrs["permutation"][-1] == 3
    # The oracle: JAX's CPU backend has neither the pass nor the engine that are tested.
    with jax.default_device(jax.devices("cpu")[0]):
        want = np.asarray(function(*operands))
    np.testing.assert_array_equal(jax.jit(function)(*operands), want)


def read_twice(a: Any, b: Any) -> Any:
    product = a @ b
    return product.T, product + 1


def test_a_product_that_is_read_twice_is_made_once() -> None:
    operands = whole(5, 7), whole(7, 3)
    assert names(normal(read_twice, *operands).main).count("dot_general") == 1
    for got, want in zip(jax.jit(read_twice)(*operands), read_twice(*operands), strict=True):
        np.testing.assert_array_equal(got, want)


def test_each_side_keeps_its_precision() -> None:
    def product(a: Any, b: Any) -> Any:
        return jax.lax.dot(a, b, precision=("highest", "default")).T

    found = find(normal(product, whole(5, 7), whole(7, 3)), "dot_general")
    assert found.attrs["precision_config"] == ["DEFAULT", "HIGHEST"]
