"""Programs as functions of JAX: random ones, and each form that an op may have."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from ipujax.convert.importer import Importer
from ipujax.convert.ops import RULES
from tests.fuzz.programs.program import from_seed

SEEDS = range(40)


def exported(function: Any, *args: Any) -> jax.export.Exported:
    return jax.export.export(jax.jit(function), platforms=["ipu"])(*args)


def assert_same(program: jax.export.Exported, *args: Any) -> None:
    """The imported program's results have the bits of the program's own."""
    wanted = jax.tree.leaves(jax.jit(program.call)(*args))
    found = jax.tree.leaves(jax.jit(Importer(program))(*args))
    for one, other in zip(wanted, found, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed: int):
    program = from_seed(seed, "programs")
    with jax.default_device(jax.devices("ipu")[0]):
        assert_same(exported(program.function, *program.arguments), *program.arguments)


X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)
FORMS = {
    "argmax": lambda x: jnp.argmax(x, 1),
    "batched gather": lambda x: jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    "bools": lambda x: (jnp.any(x > 1, 0), jnp.all(x < 9, 1), (x > 0) * (x < 1)),
    "cholesky": lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(4)),
    "complex": lambda x: jnp.fft.fft(x).imag,
    "cond": lambda x: lax.cond(x[0, 0] > 0, lambda: x, lambda: -x),
    "convolution": lambda x: lax.conv(x.reshape(1, 2, 4, 4), x.reshape(4, 2, 2, 2), (1, 1), "SAME"),
    "cumulative": lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0)),
    "pooling": lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 2), "SAME"),
    "random": lambda x: x + jax.random.normal(jax.random.key(3), x.shape),
    "scan": lambda x: lax.scan(lambda c, row: (c + row, c * row), jnp.zeros(8), x),
    "scatter": lambda x: x.at[jnp.array([0, 2, 0])].add(1.5),
    "several sorted": lambda x: lax.sort((x, -x), num_keys=1),
    "special functions": lambda x: (lax.erf(x), lax.erfc(x), lax.lgamma(x), lax.digamma(x + 3)),
    "switch": lambda x: lax.switch(jnp.int32(x[1, 1]) + 5, [lambda: x, lambda: x * 2]),
    "top k": lambda x: lax.top_k(x, 3),
    "total order": lambda x: jnp.sort(x, 0),
    "variance": lambda x: jnp.var(x, 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str):
    assert_same(exported(FORMS[form], X), X)


def test_pytrees_and_unused_arguments():
    program = exported(lambda a, b, c: {"sum": a["x"] + c, "c": c}, {"x": X}, X, X)
    assert program.module_kept_var_idx == (0, 2)
    assert_same(program, {"x": X}, X, X)


def test_other_arguments_are_refused():
    with pytest.raises(TypeError, match="needs arguments like"):
        Importer(exported(jnp.sin, X))(X, X)


def test_names_are_those_of_scopes():
    def function(x: Any) -> Any:
        with jax.named_scope("encoder"), jax.named_scope("dense"):
            return jnp.tanh(x @ x.T)

    names: list[str] = []

    def note(op: Any, operands: Any, compute: Any) -> Any:
        names.append(op.name)
        return compute(operands)

    jax.eval_shape(Importer(exported(function, X), [note]), X)
    assert {"encoder/dense/dot_general", "encoder/dense/tanh"} <= set(names)


def test_ops_keep_their_primitives():
    """What transforms look for: products, reductions, loops."""
    jaxpr = jax.make_jaxpr(
        Importer(exported(lambda x: lax.fori_loop(0, 3, lambda i, a: a * 2, jnp.max(x @ x.T)), X))
    )(X)
    names = {eqn.primitive.name for eqn in jaxpr.eqns}
    assert {"dot_general", "reduce_max", "while"} <= names
    assert "call_exported" not in names


def test_rules_are_ops_of_the_compiler():
    from ipujax.compiler.rules.registry import RULES as COMPILED

    assert {name for name in RULES if name not in COMPILED} <= {
        "constant",
        "optimization_barrier",
        "chlo.erf_inv",
        "chlo.top_k",
        *("complex", "imag", "real"),  # a pass splits complex numbers
        # The partitioner makes programs without them (tests/convert/test_sharded.py).
        *("sdy.manual_computation", "sdy.reshard", "sdy.sharding_constraint"),
    }
