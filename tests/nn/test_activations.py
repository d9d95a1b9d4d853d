"""Non-linearities: NumPy and math, derivatives, popnn's numbers and cycles."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule
from tests.nn import oracles

X = np.concatenate([np.linspace(-6, 6, 97), [-30, 30, 0.0, -2.5, 2.5]]).astype(np.float32)


def _each(f: Callable[[float], float]) -> Callable[[Any], Any]:
    return lambda x: np.array([f(float(v)) for v in x])


def _gelu(v: float) -> float:
    return v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


ORACLES: dict[str, tuple[Callable[[Any], jax.Array], Callable[[Any], Any]]] = {
    "gelu": (ipu.nn.gelu, _each(_gelu)),
    "gelu_erf": (
        lambda x: ipu.nn.gelu(x, approximate=False),
        _each(lambda v: v / 2 * (1 + math.erf(v / math.sqrt(2)))),
    ),
    "hard_sigmoid": (ipu.nn.hard_sigmoid, _each(lambda v: min(max(0.2 * v + 0.5, 0), 1))),
    "swish": (ipu.nn.swish, _each(lambda v: v / (1 + math.exp(-v)))),
    "relu": (ipu.nn.relu, _each(lambda v: max(v, 0))),
    "leaky_relu": (lambda x: ipu.nn.leaky_relu(x, 0.2), _each(lambda v: v if v > 0 else 0.2 * v)),
    "elu": (lambda x: ipu.nn.elu(x, 1.5), _each(lambda v: v if v > 0 else 1.5 * math.expm1(v))),
}


@pytest.mark.parametrize("name", ORACLES)
def test_values_and_derivatives(name: str) -> None:
    function, oracle = ORACLES[name]
    smooth = X[(abs(X) > 1e-3) & (abs(abs(X) - 2.5) > 1e-3)]
    ends = (oracle(smooth.astype(np.float64) + step) for step in (1e-6, -1e-6))
    slopes = (next(ends) - next(ends)) / 2e-6
    gradient = jax.grad(lambda x: jnp.sum(function(x)))
    for program in (jax.jit, lambda f: lambda x: oracles.on_cpu(f, x)):
        oracles.assert_close(program(function)(X), oracle(X), 4e-6, 2e-6)
        oracles.assert_close(program(gradient)(smooth), slopes, 1e-4, 1e-4)
    halves = jax.jit(function)(X.astype(np.float16))
    assert halves.dtype == jnp.float16
    oracles.assert_close(halves, oracle(X.astype(np.float16)), 4e-3, 4e-3)
    rows = jax.jit(jax.vmap(function))(X[:100].reshape(4, 25))
    oracles.assert_close(rows, oracle(X[:100]).reshape(4, 25), 4e-6, 2e-6)
    assert function(jnp.zeros((0, 2))).shape == (0, 2)
    assert np.isnan(np.asarray(jax.jit(function)(np.array([np.nan], np.float32)))).all()


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_slopes_of_elu_do_not_cancel(alpha: float) -> None:
    x = np.linspace(-80, 5, 401, dtype=np.float32)
    wanted = np.where(x > 0, 1, alpha * np.exp(x.astype(np.float64)))
    twice = np.where(x > 0, 0, alpha * np.exp(x.astype(np.float64)))
    slope = jax.grad(lambda x: jnp.sum(ipu.nn.elu(x, alpha)))
    np.testing.assert_allclose(jax.jit(slope)(x), wanted, rtol=2e-6)
    np.testing.assert_allclose(oracles.on_cpu(slope, x), wanted, rtol=2e-6)
    curvature = jax.grad(lambda x: jnp.sum(slope(x)))
    np.testing.assert_allclose(jax.jit(curvature)(x), twice, rtol=2e-6)


@pytest.mark.parametrize("name", ["gelu", "hard_sigmoid", "swish", "relu", "leaky_relu", "elu"])
def test_refusals(name: str) -> None:
    with pytest.raises(ipu.ConfigError, match=rf"\[nn\.{name}\] needs x of a float dtype; got int"):
        getattr(ipu.nn, name)(np.arange(3))


@custom_call_rule("ipu_test_nonlinearity")
def nonlinearity(builder: Builder, op: Op) -> Any:
    type_ = getattr(poplar.popnn.NonLinearityType, parameters_of(op)["type"])
    (x,) = builder.operands(op)
    return [poplar.popnn.nonLinearity(builder.graph, type_, x, builder.program, builder.debug(op))]


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("gelu", "GELU"),
        ("gelu_erf", "GELU_ERF"),
        ("hard_sigmoid", "HARD_SIGMOID"),
        ("swish", "SWISH"),
        ("relu", "RELU"),
    ],
)
def test_cycles_are_near_those_of_popnn(name: str, type_: str) -> None:
    """Alone; between others it is fused, which popnn's vertices are not."""
    x = np.linspace(-4, 4, 1 << 17, dtype=np.float32)
    call = jax.ffi.ffi_call("ipu_test_nonlinearity", jax.ShapeDtypeStruct(x.shape, x.dtype))

    def by_popnn(x: Any) -> Any:
        return call(x, config=f'{{"type": "{type_}"}}')

    made = [jax.jit(f).lower(x).compile() for f in (ORACLES[name][0], by_popnn)]
    oracles.assert_close(made[0](x), made[1](x), 4e-6, 2e-6)
    ours, popnn = (program.cost_analysis()["cycles"] for program in made)
    assert ours <= 1.35 * popnn, (ours, popnn)
