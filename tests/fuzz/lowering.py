"""From a traced function to the bytes that every oracle gets."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

#: Assumed number of iterations of loops for which it is known only at run time.
_TURNS = 20


def lower(function: Callable[..., Any], arguments: Sequence[np.ndarray]) -> tuple[bytes, str]:
    """StableHLO for the IPU, as bytecode and as text; every parameter is kept."""
    return lowered(jax.jit(function, keep_unused=True).trace(*arguments))


def lowered(traced: Any) -> tuple[bytes, str]:
    """The same of a function that is traced already."""
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir()
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return bytecode.getvalue(), str(module)


def work(jaxpr: Any) -> int:
    """About how many elements are computed; loops count once for each iteration."""
    total = 0
    for equation in jaxpr.eqns:
        total += sum(math.prod(v.aval.shape) for v in (*equation.invars, *equation.outvars))
        if equation.primitive.name == "dot_general":
            total += math.prod(equation.outvars[0].aval.shape) * max(
                equation.invars[0].aval.shape, default=1
            )
        turns = {"scan": equation.params.get("length", 1), "while": _TURNS}
        inside = sum(work(inner) for inner in _inner(equation.params))
        total += inside * turns.get(equation.primitive.name, 1)
    return total


def _inner(params: dict[str, Any]) -> Iterator[Any]:
    """The jaxprs among an equation's parameters."""
    for leaf in jax.tree.leaves(list(params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
        if hasattr(leaf, "eqns"):
            yield leaf
