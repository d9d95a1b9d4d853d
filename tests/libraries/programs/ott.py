"""OTT: optimal transport."""

from __future__ import annotations

import jax
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import sinkhorn, sinkhorn_lr
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import soft_sort

from tests.libraries.program import program

LIBRARIES = ("ott-jax",)


def _clouds():
    first = jax.random.normal(jax.random.key(0), (14, 2))
    return first, 0.7 * jax.random.normal(jax.random.key(1), (11, 2)) + 0.5


@program(1e-3, "iterations stop at errors of 1e-3 in the marginals")
def sinkhorn_and_its_gradient():
    first, second = _clouds()

    @jax.jit
    @jax.value_and_grad
    def cost(first):
        geometry = pointcloud.PointCloud(first, second, epsilon=0.1)
        out = sinkhorn.Sinkhorn(threshold=1e-3)(linear_problem.LinearProblem(geometry))
        return out.reg_ot_cost

    return cost(first)


@program(1e-3, "iterations stop at errors of 1e-3 in the marginals")
def gromov_wasserstein_and_low_rank():
    first, second = _clouds()
    geometries = [pointcloud.PointCloud(x, x) for x in (first, second)]
    solver = gromov_wasserstein.GromovWasserstein(
        linear_solver=sinkhorn.Sinkhorn(), epsilon=0.5, max_iterations=5
    )
    problem = quadratic_problem.QuadraticProblem(*geometries)
    geometry = pointcloud.PointCloud(first, second, epsilon=0.1)
    low_rank = sinkhorn_lr.LRSinkhorn(rank=3, max_iterations=50)
    return {
        "gromov": jax.jit(solver)(problem).reg_gw_cost,
        "low_rank": jax.jit(low_rank)(linear_problem.LinearProblem(geometry)).matrix.sum(0),
    }


@program(1e-3, "iterations stop at errors of 1e-3 in the marginals")
def soft_sorting():
    x = jax.random.normal(jax.random.key(0), (9,))
    return {
        "sorted": jax.jit(soft_sort.sort)(x),
        "ranks": jax.jit(soft_sort.ranks)(x),
    }
