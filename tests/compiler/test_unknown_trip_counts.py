"""The cost of loops whose number of iterations only a run knows."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import ipujax as ipu

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


@pytest.mark.parametrize("without", ["", "loops"])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_a_run_counts_iterations(count: int, without: str) -> None:
    """Loops that are one kernel, and loops that are walked, are counted alike."""
    options = {"ipu_assumed_trip_count": 5, "ipu_engine_without": without}
    compiled = jax.jit(_times, compiler_options=options).lower(3, X).compile()
    jax.block_until_ready(compiled(count, X))
    cost = compiled.cost_analysis()
    assert cost["loop 0 measured trip count"] == count
    assumed = _costs(_times, 3, X, assumed_trip_count=count, engine_without=without)
    assert cost["measured cycles"] == pytest.approx(assumed["cycles"], rel=1e-6)
    assert cost["cycles"] == _costs(_times, 3, X, assumed_trip_count=5)["cycles"]


def test_the_last_run_counts() -> None:
    compiled = jax.jit(lambda n, x: _times(n, x) + 1).lower(3, X).compile()
    assert "measured cycles" not in compiled.cost_analysis()
    for count in (2, 12, 4):
        jax.block_until_ready(compiled(count, X))
        assert compiled.cost_analysis()["loop 0 measured trip count"] == count


@pytest.mark.parametrize("seed", range(8))
def test_random_nests_are_counted_as_python_counts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    outer, small = int(rng.integers(1, 9)), jnp.ones(int(rng.integers(1, 300)))
    inner = rng.integers(0, 20, outer).astype(np.int32)
    seen = jnp.asarray(inner)

    def nest(n: Any, counts: Any, x: Any) -> Any:
        def body(i: Any, x: Any) -> Any:
            return lax.fori_loop(0, counts[i], lambda j, x: jnp.sin(x) + x, x)

        return lax.fori_loop(0, n, body, x)

    found = ipu.cost(nest, outer, seen, small, run=True)
    measured = [found.analysis[f"loop {i} measured trip count"] for i in range(2)]
    assert sorted(measured) == pytest.approx(sorted([outer, inner.mean()]), rel=1e-6)
    cycles = ipu.cost(nest, outer, seen, small).analysis["cycles per iteration"]
    assert 0 < found.cycles <= found.cycles + cycles


def test_replicas_are_counted_together() -> None:
    devices = jax.devices("ipu")[:2]

    def until(n: Any) -> Any:
        return lax.while_loop(lambda i: i < n, lambda i: i + 1, 0)

    compiled = ipu.pmap(until, devices=devices).lower(np.array([4, 10])).compile()
    jax.block_until_ready(compiled(np.array([4, 10])))
    assert compiled.cost_analysis()["loop 0 measured trip count"] == 7


def test_cost_runs_what_it_is_asked_to_run() -> None:
    x = jnp.asarray(X)
    donating = jax.jit(_times, donate_argnums=1)
    found = ipu.cost(donating, 9, x, run=True)
    assert not x.is_deleted()
    assert found.cycles == found.analysis["measured cycles"]
    rate = found.seconds / found.cycles
    assert rate == pytest.approx(found.analysis["seconds"] / found.analysis["cycles"])
    with pytest.raises(ipu.ConfigError, match="needs arrays for run=True"):
        ipu.cost(donating, 9, jax.ShapeDtypeStruct(X.shape, X.dtype), run=True)
