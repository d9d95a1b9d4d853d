"""The cost of loops whose number of iterations only a run knows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

X = np.ones((64, 256), np.float32)


def _costs(f: Any, *args: Any, **options: Any) -> dict[str, float]:
    named = {f"ipu_{name}": value for name, value in options.items()}
    found = jax.jit(f, compiler_options=named).lower(*args).compile().cost_analysis()
    return dict(found)


def _until_large(x: Any) -> Any:
    return lax.while_loop(lambda x: jnp.max(x) < 100, lambda x: jnp.tanh(x) + x, x)


def _times(n: Any, x: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, x: jnp.tanh(x), x)


@pytest.mark.parametrize(("f", "args"), [(_until_large, (X,)), (_times, (3, X))])
def test_the_assumption_multiplies_one_iteration(f: Any, args: Any) -> None:
    one = _costs(f, *args)
    assert one["unknown trip counts"] == 1
    assert one["assumed trip count"] == 1
    for count in (0, 1, 2, 10, 1000):
        cost = _costs(f, *args, assumed_trip_count=count)
        assert cost["assumed trip count"] == count
        added = (count - 1) * one["cycles per iteration"]
        assert cost["cycles"] - one["cycles"] == pytest.approx(added, abs=2 + count / 100)


def test_results_do_not_depend_on_the_assumption() -> None:
    options = {"ipu_assumed_trip_count": 7}
    assumed = jax.jit(_times, compiler_options=options)(3, X)
    np.testing.assert_array_equal(assumed, jax.jit(_times)(3, X))


def test_known_loops_are_multiplied_by_their_counts() -> None:
    def known(x: Any) -> Any:
        return lax.fori_loop(0, 20, lambda i, x: jnp.tanh(x), x)

    one, many = _costs(known, X), _costs(known, X, assumed_trip_count=50)
    assert one["unknown trip counts"] == 0
    assert "cycles per iteration" not in one
    assert one["cycles"] == many["cycles"]


def test_loops_in_loops_are_multiplied_together() -> None:
    def nested(n: Any, x: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, x: _times(n, x), x)

    inner = _costs(_times, 3, X)["cycles per iteration"]
    cost = _costs(nested, 3, X, assumed_trip_count=10)
    assert cost["unknown trip counts"] == 2
    assert cost["cycles"] > 100 * inner


def test_the_assumption_has_bounds() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="assumed_trip_count"):
        _costs(_times, 3, X, assumed_trip_count=-1)
