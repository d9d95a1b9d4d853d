"""Each precision option changes what it should, for a program and for a `with` block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.compiler.programs import names, normal

HALF = np.float16


def run(f: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """f on the IPU, the options set for the whole program."""
    named = {f"ipu_{name}": value for name, value in options.items()}
    return np.asarray(jax.jit(f, compiler_options=named)(*args))


def scoped(f: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """f on the IPU, the options set around its operations."""

    def inside(*inputs: Any) -> Any:
        with ipu.precision(**options):
            return f(*inputs)

    return np.asarray(jax.jit(inside)(*args))


both = pytest.mark.parametrize("set_by", [run, scoped])


@both
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x + jnp.float16(2.0**-13),  # an eighth of the way to the next half
        lambda x: (x.astype(jnp.float32) + 2.0**-13).astype(jnp.float16),
        lambda x: jnp.stack([x, jnp.full_like(x, 2.0**-13)], 1) @ jnp.ones((2, 1), jnp.float16),
    ],
    ids=["add", "convert", "dot"],
)
def test_stochastic_rounding_has_the_exact_mean(set_by, f):
    ones = np.ones(100_000, HALF)
    assert (run(f, ones) == 1).all()
    rounded = set_by(f, ones, stochastic_rounding=True).ravel()
    assert set(np.unique(rounded)) == {HALF(1), HALF(1 + 2**-10)}
    # 100,000 draws with chance 1/8 lie within 5 deviations of the mean: 12,500 +- 523.
    assert abs((rounded > 1).sum() - 12_500) < 523


def test_stochastic_rounding_differs_from_run_to_run_and_keeps_what_is_exact():
    f = jax.jit(lambda x: x * HALF(1.1), compiler_options={"ipu_stochastic_rounding": True})
    x = np.linspace(-4, 4, 5000).astype(HALF)
    assert (np.asarray(f(x)) != np.asarray(f(x))).any()
    bits = np.arange(1 << 16, dtype=np.uint16).view(HALF)  # every half: subnormals, inf, NaN
    kept = run(lambda x: x * HALF(1), bits, stochastic_rounding=True)
    wide = run(
        lambda x: (x.astype(jnp.float32)).astype(jnp.float16), bits, stochastic_rounding=True
    )
    np.testing.assert_array_equal(kept, bits)
    np.testing.assert_array_equal(wide, bits)


def test_stochastic_rounding_of_small_values():
    tiny = np.full(100_000, 2.0**-24 / 4, np.float32)  # a quarter of the smallest half
    rounded = run(lambda x: x.astype(jnp.float16), tiny, stochastic_rounding=True)
    assert set(np.unique(rounded)) == {HALF(0), HALF(2.0**-24)}
    assert abs((rounded > 0).sum() - 25_000) < 5 * 137


@both
@pytest.mark.parametrize(
    ("overflow", "beyond"), [("infinity", np.inf), ("saturate", 65504), ("nan", np.nan)]
)
def test_half_overflow(set_by, overflow, beyond):
    x = np.array([-300, 2, 300, np.inf, np.nan], HALF)
    squares = set_by(lambda x: x * jnp.abs(x), x, half_overflow=overflow)
    np.testing.assert_array_equal(squares, np.array([-beyond, 4, beyond, np.inf, np.nan], HALF))
    product = set_by(
        lambda a, b: a @ b,
        np.full((1, 2), 250, HALF),
        np.full((2, 1), 250, HALF),
        half_overflow=overflow,
    )
    np.testing.assert_array_equal(product, np.array([[beyond]], HALF))


def test_largest_halves_do_not_overflow():
    x = np.array([65519.0, 65520.0, -65519.0], np.float32)
    for overflow, want in {"saturate": 65504, "nan": np.nan, "infinity": np.inf}.items():
        got = run(lambda x: x.astype(jnp.float16), x, half_overflow=overflow)
        np.testing.assert_array_equal(got, np.array([65504, want, -65504], HALF))


@both
def test_partials_type_changes_sums(set_by):
    a = np.full((1, 4096), 1, HALF)
    b = np.full((4096, 1), 1 + 3 * 2**-10, HALF)
    exact = (a.astype(np.float64) @ b.astype(np.float64)).item()
    in_float = set_by(lambda a, b: a @ b, a, b, partials_type="float")
    in_half = set_by(lambda a, b: a @ b, a, b, partials_type="half")
    assert abs(in_float.item() - exact) <= 2  # half an ulp of a half there
    assert abs(in_half.item() - exact) > 2


def test_available_memory_proportion_changes_the_plan():
    a, b = np.ones((512, 4096), HALF), np.ones((4096, 512), HALF)

    def cycles(proportion: float) -> float:
        options = {"ipu_available_memory_proportion": proportion}
        compiled = jax.jit(jnp.matmul, compiler_options=options).lower(a, b).compile()
        return compiled.cost_analysis()["cycles"]

    assert cycles(0.01) > cycles(0.6)  # less memory, more serial


def test_available_memory_proportions_are_of_ipus():
    a, b = np.ones((512, 4096), HALF), np.ones((4096, 512), HALF)

    def cycles(proportions: str, function: Any = jnp.matmul) -> float:
        options = {"ipu_available_memory_proportions": proportions}
        compiled = jax.jit(function, compiler_options=options).lower(a, b).compile()
        return compiled.cost_analysis()["cycles"]

    def with_its_own(a: Any, b: Any) -> Any:
        with ipu.options(available_memory_proportion=0.6):
            return a @ b

    little, much = cycles("0.01,0.6"), cycles("")
    assert little > much
    assert cycles(",0.01") == cycles("0.6,0.01") == cycles("0.01", with_its_own) == much


POLES = {
    "inv": (lambda x: jnp.sqrt(x), np.array([1.0, -1.0], np.float32)),
    "div0": (lambda x: 1 / x, np.array([1.0, 0.0], np.float32)),
    "oflo": (lambda x: jnp.exp(x), np.array([1.0, 1000.0], np.float32)),
}


@both
@pytest.mark.parametrize("kind", POLES)
def test_exceptions_name_kind_and_line(set_by, kind):
    f, x = POLES[kind]
    others = ",".join(set(POLES) - {kind})
    assert np.isfinite(set_by(f, x[:1], floating_point_exceptions="inv,div0,oflo")).all()
    assert not np.isfinite(set_by(f, x, floating_point_exceptions=others)).all()
    with pytest.raises(jax.errors.JaxRuntimeError, match=rf"{kind}.*test_precision.py:\d+"):
        set_by(f, x, floating_point_exceptions=kind)


def test_exceptions_in_loops_and_products():
    def grow(x):
        return jax.lax.fori_loop(0, 200, lambda i, y: y * 2, x)

    everything = {"floating_point_exceptions": "inv,div0,oflo"}
    with pytest.raises(jax.errors.JaxRuntimeError, match="oflo"):
        run(grow, np.float32(1), **everything)
    big = np.full((4, 4), 1e30, np.float32)
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"oflo.*dot_general"):
        run(jnp.matmul, big, big, **everything)
    masked = run(lambda x: jax.nn.softmax(jnp.where(x > 0, x, -jnp.inf)), np.eye(3), **everything)
    assert np.isfinite(masked).all()


def test_fast_math_rewrites():
    x = np.ones(3, np.float32)

    def left(f: Callable[..., Any]) -> tuple[list[str], list[str]]:
        def fast(x):
            with ipu.precision(fast_math=True):
                return f(x)

        return names(normal(f, x).main), names(normal(fast, x).main)

    assert left(lambda x: x / 3 * 6) == (["divide", "multiply"], ["multiply"])
    assert left(lambda x: x - x + x) == (["subtract", "add"], [])
    assert left(lambda x: x * 0 + 1) == (["multiply", "add"], [])
    got = run(lambda x: x / 3 * 6, x, fast_math=True)
    np.testing.assert_allclose(got, 2 * x, rtol=1e-6)


def test_options_reach_derivatives_and_stay_in_their_block():
    def f(x):
        with ipu.precision(half_overflow="saturate"):
            inner = x * x
        return (inner, x * x)

    big = np.array([300], HALF)
    inner, outer = jax.jit(f)(big)
    assert inner == 65504
    assert np.isinf(outer)
    slope = jax.jit(jax.grad(lambda x: f(x)[0].sum() * HALF(1000)))(big)
    assert slope == 65504


def test_bad_options_are_refused_where_they_are_written():
    with pytest.raises(ipu.ConfigError, match=r"stochastic_rounding.*got 'maybe'"):
        ipu.precision(stochastic_rounding="maybe").__enter__()
    with pytest.raises(ipu.ConfigError, match="got dump_dir"):
        ipu.precision(dump_dir="/").__enter__()
    with pytest.raises(ipu.ConfigError, match="inv, div0, oflo"):
        ipu.precision(floating_point_exceptions="all").__enter__()
