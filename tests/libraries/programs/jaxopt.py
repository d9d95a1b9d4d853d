"""JAXopt: solvers that are differentiated implicitly. No longer maintained, and widely used."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jaxopt

from tests.libraries.program import program

LIBRARIES = ("jaxopt",)


def _data():
    x = jax.random.normal(jax.random.key(0), (40, 4))
    return x, (x @ jnp.array([1.0, -2.0, 0.0, 0.5]) > 0.1).astype(jnp.int32)


@program(1e-3, "stops at gradients of 1e-3")
def lbfgs():
    x, y = _data()

    def loss_of(params, l2):
        return jaxopt.objective.binary_logreg(params, (x, y)) + l2 * jnp.sum(params**2)

    def solution(l2):
        return jaxopt.LBFGS(loss_of, maxiter=50, tol=1e-4).run(jnp.zeros(4), l2=l2).params

    return {"params": solution(0.1), "jacobian": jax.jit(jax.jacobian(solution))(0.1)}


@program(1e-4, "eighty steps of a contraction")
def proximal_and_projected():
    x, y = _data()
    data = (x, y.astype(jnp.float32))
    lasso = jaxopt.ProximalGradient(
        jaxopt.objective.least_squares, prox=jaxopt.prox.prox_lasso, maxiter=80, tol=1e-4
    )
    simplex = jaxopt.ProjectedGradient(
        jaxopt.objective.least_squares,
        projection=jaxopt.projection.projection_simplex,
        maxiter=80,
        tol=1e-4,
    )
    start = jnp.full(4, 0.25)
    return {
        "lasso": lasso.run(start, hyperparams_prox=0.1, data=data).params,
        "simplex": simplex.run(start, data=data).params,
    }


@program(1e-3, "stops at residuals of 1e-4")
def quadratic_program():
    solver = jaxopt.BoxOSQP(tol=1e-4, maxiter=400)
    Q = jnp.array([[2.0, 0.5], [0.5, 1.0]])
    A = jnp.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]])

    def solution(c):
        bounds = (jnp.array([1.0, 0.0, 0.0]), jnp.array([1.0, 0.9, 0.9]))
        return solver.run(params_obj=(Q, c), params_eq=A, params_ineq=bounds).params.primal[0]

    c = jnp.array([1.0, 1.0])
    return {"solution": jax.jit(solution)(c), "jacobian": jax.jit(jax.jacobian(solution))(c)}


@program(1e-3, "stops at gradients of 1e-4")
def nonlinear_least_squares():
    times = jnp.linspace(0, 2, 15)

    def residuals(params, observed):
        return params[0] * jnp.exp(-params[1] * times) - observed

    observed = 1.5 * jnp.exp(-0.8 * times) + 0.01 * jnp.sin(40 * times)
    chosen = {
        "levenberg_marquardt": jaxopt.LevenbergMarquardt(residuals, tol=1e-4, maxiter=30),
        "gauss_newton": jaxopt.GaussNewton(residuals, tol=1e-4, maxiter=30),
    }
    start = jnp.array([1.0, 0.3])
    return {name: solver.run(start, observed).params for name, solver in chosen.items()}
