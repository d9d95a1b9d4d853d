"""Lineax: linear solvers and least squares."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import lineax

from tests.libraries.program import program

LIBRARIES = ("lineax",)


@program(1e-4, "condition numbers below 100")
def direct_solvers():
    matrix = jax.random.normal(jax.random.key(0), (6, 6)) + 4 * jnp.eye(6)
    definite = matrix @ matrix.T / 6 + jnp.eye(6)
    vector = jnp.arange(6.0)
    solvers = {
        "lu": (matrix, lineax.LU(), ()),
        "qr": (matrix[:, :4], lineax.QR(), ()),
        "svd": (matrix[:4], lineax.SVD(), ()),
        "cholesky": (definite, lineax.Cholesky(), lineax.positive_semidefinite_tag),
        "triangular": (jnp.tril(matrix), lineax.Triangular(), lineax.lower_triangular_tag),
    }

    def solve(matrix, solver, tags):
        operator = lineax.MatrixLinearOperator(matrix, tags)
        return lineax.linear_solve(operator, vector[: matrix.shape[0]], solver).value

    def squares(matrix, solver, tags):
        return jnp.sum(solve(matrix, solver, tags) ** 2)

    return {
        name: (
            jax.jit(solve, static_argnums=(1, 2))(matrix, solver, tags),
            jax.jit(jax.grad(squares), static_argnums=(1, 2))(matrix, solver, tags),
        )
        for name, (matrix, solver, tags) in solvers.items()
    }


@program(1e-3, "iterations stop at residuals of 1e-5")
def iterative_solvers():
    def laplacian(x):
        padded = jnp.pad(x, 1)
        return 2.1 * x - padded[2:] - padded[:-2]

    vector = jnp.sin(jnp.arange(16.0))
    tags = lineax.positive_semidefinite_tag
    operator = lineax.FunctionLinearOperator(laplacian, jax.eval_shape(lambda: vector), tags)
    solvers = {
        "cg": lineax.CG(1e-5, 1e-5),
        "gmres": lineax.GMRES(1e-5, 1e-5),
        "bicgstab": lineax.BiCGStab(1e-5, 1e-5),
    }
    return {
        name: jax.jit(lambda b, s=solver: lineax.linear_solve(operator, b, s).value)(vector)
        for name, solver in solvers.items()
    }


@program(1e-5, "a diagonally dominant matrix")
def structured_operators():
    tridiagonal = lineax.TridiagonalLinearOperator(jnp.full(7, 4.0), jnp.ones(6), -jnp.ones(6))
    jacobian = lineax.JacobianLinearOperator(lambda y, args: y**3 + 2 * y, jnp.arange(7.0))
    vector = jnp.linspace(-1, 1, 7)

    @jax.jit
    def solve(vector):
        both = tridiagonal + jacobian
        return (
            lineax.linear_solve(tridiagonal, vector).value,
            lineax.linear_solve(lineax.linearise(both), vector).value,
            both.mv(vector),
        )

    return solve(vector), jax.jit(jax.jacfwd(lambda b: solve(b)[0]))(vector)
