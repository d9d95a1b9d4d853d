"""Stage 3, second half: simpler programs of the same meaning."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax import jax_compat
from ipujax.compiler import ir
from ipujax.compiler.passes.simplify import simplify
from ipujax.compiler.reader import read_program
from ipujax.compiler.rules.registry import RULES
from ipujax.errors import UnsupportedDtypeError
from tests.compiler.programs import find, names, normal

X = np.ones((2, 3), np.float32)
H = np.ones((2, 3), np.float16)
N = np.arange(4, dtype=np.int32)


@pytest.mark.parametrize(
    ("f", "argument", "left"),
    [
        (lambda x: x.reshape(3, 2).reshape(2, 3), X, []),
        (lambda x: x.T.T, X, []),
        (lambda x: x * 1.0, X, []),
        (lambda x: x / 1.0, X, []),
        (lambda x: x - 0.0, X, []),
        (lambda x: x / 8.0, X, ["multiply"]),
        (lambda x: x / 3.0, X, ["divide"]),
        (lambda h: h / jnp.sqrt(jnp.float16(64)), H, ["multiply"]),
        (lambda h: h / jnp.float16(2**-16), H, ["divide"]),  # 65,536 is no float16
        (lambda x: x + 0.0, X, ["add"]),  # -0.0 + 0.0 is 0.0
        (lambda x: x - (-0.0), X, ["subtract"]),
        (lambda n: n + 0, N, []),
        (lambda x: x[:, :], X, []),
        (lambda x: lax.pad(x, 0.0, ((0, 0, 0), (0, 0, 0))), X, []),
        (lambda x: x.astype(jnp.float32), X, []),
        (lambda x: lax.dynamic_slice(x, (1, 5), (1, 2)), X, ["slice"]),
        (lambda x: jnp.where(True, x, -x), X, []),
        (lambda x: x * (jnp.float32(2) * 3 + 1), X, ["multiply"]),
        (lambda x: jnp.broadcast_to(x[:, None], (2, 4, 3)), X, ["broadcast_in_dim"]),
        (lambda x: jnp.exp(x) + jnp.exp(x), X, ["exponential", "add"]),
        (lambda x: x.max(0) + x.max(0), X, ["reduce", "add"]),
        (lambda x: x.max(0) + x.min(0), X, ["reduce", "reduce", "add"]),
        (lambda x: (x.max(0), x.max(1)), X, ["reduce", "reduce"]),
        (lambda x: x + jnp.arange(3.0), X, ["add"]),
        (lambda x: x - lax.broadcasted_iota(jnp.float32, (1, 3), 0), X[:1], []),
        (jax.nn.sigmoid, X, ["logistic"]),
        (lambda x: x[np.array([1])], X, ["slice"]),
        (lambda x: x[:1].sum(0), X, ["slice", "reshape"]),
        (lambda h: h.sum(0), H, ["reduce", "convert"]),
        (lambda h: h.sum(0, jnp.float32), H, ["reduce"]),
        (lambda h: h.astype(jnp.float32).max(0), H, ["convert", "reduce"]),
    ],
)
def test_simplified(f, argument, left):
    assert names(normal(f, argument).main) == left


def test_constants_follow_a_scalar_to_the_shape_it_came_from():
    program = normal(lambda n: n[:1].reshape(()) + 5, N)
    add = find(program, "add")
    assert [value.shape for value in add.operands] == [(1,), (1,)]
    assert program.main.results[0].shape == ()


def test_folding_rounds_as_the_dtype_does():
    half = jnp.float16(2049) * 1  # 2048 in float16
    const = normal(lambda x: (x, jnp.float16(2048) + jnp.float16(1)), X).main.results[1].const
    assert const.dtype == np.float16
    assert float(const) == float(half)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_power_of_two_divides_as_its_reciprocal_multiplies(dtype: str) -> None:
    """Bit by bit, with results that are subnormal or infinite."""
    limits = jnp.finfo(dtype)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, limits.max, limits.tiny, limits.smallest_subnormal]
    spread = np.random.default_rng(0).normal(size=500) * 2.0 ** np.linspace(-9, 9, 500)
    x = jnp.asarray([*edges, *spread], dtype)
    for power in (-14, -9, -1, 3, 12):
        divisor = jnp.asarray(-(2.0**power), dtype)
        quotient = jax.jit(lambda x, d=divisor: x / d)
        assert names(normal(quotient, x).main) == ["multiply"]
        with np.errstate(all="ignore"):
            exact = (np.asarray(x, np.float64) / float(divisor)).astype(x.dtype)
        found = np.asarray(quotient(x)).astype(np.float64)
        np.testing.assert_array_equal(found, exact.astype(np.float64))


def test_scan_becomes_a_counted_loop_without_its_constants():
    weights = np.ones((3, 3), np.float32)

    def f(x, w):
        return lax.scan(lambda c, row: (jnp.tanh(c @ w + row), c), x[0], x)

    x = np.ones((20, 3), np.float32)
    loop = find(normal(f, x, weights), "while")
    assert loop.attrs["trip_count"] == 20
    assert loop.regions[0].ops == []
    # Counter, carry and stacked results; the weights and rows are captured from outside.
    assert [r.shape for r in loop.results] == [(), (3,), (20, 3)]
    assert {v.shape for v in ir.captured(loop.regions[1])} == {(3, 3), (20, 3)}


def test_a_carry_that_nobody_reads_is_dropped():
    def body(i, state):
        used, unused = state
        return used @ used, unused + i

    f = lambda x: lax.fori_loop(0, 50, body, (x, x))[0]  # noqa: E731
    loop = find(normal(f, np.ones((3, 3), np.float32)), "while")
    assert [r.shape for r in loop.results] == [(3, 3)]


def test_dynamic_loops_keep_their_condition():
    f = lambda n, x: lax.fori_loop(0, n, lambda i, c: c @ c, x)  # noqa: E731
    loop = find(normal(f, np.int32(3), np.ones((3, 3), np.float32)), "while")
    assert "trip_count" not in loop.attrs
    assert names(loop.regions[0]) == ["compare"]


def test_short_elementwise_loops_are_unrolled():
    f = lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x)  # noqa: E731
    assert names(normal(f, X).main) == ["multiply", "add"] * 3


def test_effects_are_kept_in_order_even_where_results_are_unused():
    def f(x):
        jax.debug.callback(lambda v: None, x)
        jax.debug.callback(lambda v: None, x * 2)
        return x + 1

    program = normal(f, X)
    assert names(program.main).count("custom_call") == 2


def test_remat_is_not_undone():
    g = jax.value_and_grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum()))
    # Two forward, and the inner one again for the gradient, behind its barrier.
    assert names(normal(g, X).main).count("sine") == 3


def test_counts_of_elements_fit_32_bits():
    program = normal(lambda k: jax.random.bits(k, (3, 5)), np.array([1, 2], np.uint32))
    assert {v.dtype for op in ir.walk_ops(program.main) for v in op.results} <= {"ui32"}


@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_refused_dtypes_name_op_dtype_and_line(dtype, monkeypatch):
    monkeypatch.setenv("IPUJAX_X64", "error")

    def f(x):
        return x * x * 2

    with jax.enable_x64(True), pytest.raises(UnsupportedDtypeError) as error:
        normal(f, np.ones(3, dtype))
    short = {"float64": "f64", "int64": "i64"}[dtype]
    line = f.__code__.co_firstlineno + 1
    assert f"multiply in {short} (at test_passes.py:{line})" in str(error.value)
    assert str(error.value).startswith("[normalise] needs dtypes that IPUs support")


def test_a_scalar_constant_takes_the_shape_that_its_op_is_moved_to():
    program = normal(lambda x: 0.5 * jnp.sin(x)[0:1].reshape(()), X[0])
    for op in ir.walk_ops(program.main):
        if op.name == "multiply":
            assert len({value.shape for value in op.operands}) == 1


SCATTER_OVER_ALL = """
module @f {{ func.func public @main(%x: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {{
  %i = stablehlo.constant dense<0> : tensor<1xi32>
  %r = "stablehlo.scatter"(%x, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0]>}}> ({{
  ^bb0(%old: tensor<f32>, %new: tensor<f32>):
    %d = stablehlo.subtract {operands} : tensor<f32>
    stablehlo.return %d : tensor<f32>
  }}) : (tensor<4xf32>, tensor<1xi32>, tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32> }} }}
"""


@pytest.mark.parametrize(
    ("operands", "left"), [("%old, %new", "subtract"), ("%new, %old", "scatter")]
)
def test_a_scatter_over_all_becomes_its_op_only_in_that_order(operands, left):
    module = jax_compat.parse_module(SCATTER_OVER_ALL.format(operands=operands))
    program = simplify(read_program(module, "f", RULES.__contains__))
    assert names(program.main) == [left]
