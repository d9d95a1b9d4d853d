"""Optimistix: root finding, least squares and minimisation."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optimistix as optx

from tests.libraries.program import program

LIBRARIES = ("optimistix",)

TIMES = jnp.linspace(0.0, 3.0, 20)


def _residuals(params, observed):
    height, rate, offset = params
    return height * jnp.exp(-rate * TIMES) + offset - observed


@program(1e-3, "stops where steps are below 1e-4")
def levenberg_marquardt():
    observed = 2.5 * jnp.exp(-1.3 * TIMES) + 0.5
    observed = observed + 0.01 * jax.random.normal(jax.random.key(0), TIMES.shape)

    def fit(observed, solver):
        start = jnp.array([1.0, 1.0, 0.0])
        return optx.least_squares(_residuals, solver, start, args=observed).value

    solver = optx.LevenbergMarquardt(rtol=1e-4, atol=1e-4)
    return {
        "fit": jax.jit(lambda y: fit(y, solver))(observed),
        "dogleg": jax.jit(lambda y: fit(y, optx.Dogleg(rtol=1e-4, atol=1e-4)))(observed),
        "sensitivity": jax.jit(jax.jacobian(lambda y: fit(y, solver)))(observed),
    }


@program(1e-5, "quadratic convergence to the root of two equations")
def newton_and_implicit_gradient():
    def equations(y, a):
        return {"u": y["u"] + 0.3 * y["v"] ** 2 - a, "v": 2 * y["v"] - jnp.cos(y["u"])}

    def root(a):
        start = {"u": jnp.array(1.0), "v": jnp.array(0.5)}
        return optx.root_find(equations, optx.Newton(1e-5, 1e-5), start, args=a).value

    a = jnp.array(0.7)
    return {"root": jax.jit(root)(a), "gradient": jax.jit(jax.jacrev(root))(a)}


@program(1e-3, "stops where steps are below 1e-4")
def minimise():
    def rosenbrock(x, args):
        return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    def convex(x, args):
        return jnp.sum(jnp.array([1.0, 3.0, 10.0]) * x**2) + jax.nn.logsumexp(x)

    def minimum(f, solver):
        start = jnp.array([-0.5, 0.8, 1.2])
        return jax.jit(lambda x: optx.minimise(f, solver, x, max_steps=1000).value)(start)

    return {
        "bfgs": minimum(rosenbrock, optx.BFGS(1e-4, 1e-5)),
        "nonlinear_cg": minimum(convex, optx.NonlinearCG(1e-5, 1e-6)),
    }


@program(1e-5, "a contraction by one third, stopped at 1e-6")
def fixed_point():
    weights = jax.random.normal(jax.random.key(0), (6, 6)) / 9

    def solve(bias):
        contract = lambda y, bias: jnp.tanh(weights @ y + bias)  # noqa: E731
        return optx.fixed_point(
            contract, optx.FixedPointIteration(1e-6, 1e-6), jnp.zeros(6), args=bias
        ).value

    bias = jnp.linspace(-1, 1, 6)
    return {"point": jax.jit(solve)(bias), "jacobian": jax.jit(jax.jacrev(solve))(bias)}
