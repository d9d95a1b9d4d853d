"""A program of `bench --ops`: a function of ipu.nn, ipu.ops or ipu.optim, or its gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from tests.bench.workload import Workload


class Program(NamedTuple):
    """`bound` is the largest ratio to the CPU backend; None: only the mean over all has one."""

    workload: Workload
    bound: float | None = None


def forward(
    name: str,
    function: Callable[..., Any],
    arguments: Callable[[], Sequence[Any]],
    bound: float | None = None,
) -> Iterator[Program]:
    """One program: `function(*arguments())`."""
    yield Program(Workload(name, function, arguments), bound)


def both(
    name: str,
    function: Callable[..., Any],
    arguments: Callable[[], Sequence[Any]],
    wrt: Sequence[int] = (0,),
    bound: float | None = None,
) -> Iterator[Program]:
    """Two programs: the function, and its results with the gradients of the arguments `wrt`.

    Cotangents are arrays of the results' shapes, which are arguments of the second program.
    """
    yield Program(Workload(name, function, arguments), bound)

    def with_gradient(cotangents: Any, *given: Any) -> Any:
        def of_chosen(*chosen: Any) -> Any:
            whole = list(given)
            for place, value in zip(wrt, chosen, strict=True):
                whole[place] = value
            return function(*whole)

        results, pull = jax.vjp(of_chosen, *(given[place] for place in wrt))
        return results, pull(cotangents)

    def with_cotangents() -> Sequence[Any]:
        given = arguments()
        shapes = jax.eval_shape(function, *given)
        return [jax.tree.map(lambda y: jnp.ones(y.shape, y.dtype), shapes), *given]

    yield Program(Workload(f"{name}, gradient", with_gradient, with_cotangents), bound)
