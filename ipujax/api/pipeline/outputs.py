"""What a pipeline returns from the results of its micro-batches: `outputs` of `ipu.pipeline`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.pipeline.arguments import WHERE
from ipujax.api.pipeline.loops import ACCUMULATED, ALL, LAST, SUM, Output, accumulator_dtype
from ipujax.errors import PipelineError, check_choice

NONE = "none"
KINDS = (ALL, LAST, *ACCUMULATED, NONE)


class Accumulated:
    """The outputs of `ipu.accumulate`: each has its own dtype, if given."""

    def __init__(self, reduction: str, outputs: Any, dtype: Any):
        self.kinds = reduction if outputs is None else outputs
        self.dtype = dtype

    def of(self, output: Output, result: Any) -> Output:
        if output.dtype is not None or output.kind not in ACCUMULATED:
            return output
        return Output(output.kind, accumulator_dtype(self.dtype, result))


def outputs_of(given: Any, tree: Any, results: Sequence[Any]) -> list[Output | None]:
    """An `Output` for each result of a micro-batch; None for results that are not returned.

    Args:
        given: a pytree prefix of the results, or `Accumulated`.
        tree: the structure of the results.
        results: their abstract values.
    """
    kinds = given.kinds if isinstance(given, Accumulated) else given
    try:
        full = jax.tree.broadcast(kinds, jax.tree.unflatten(tree, results), is_leaf=_is_output)
    except ValueError as error:
        raise PipelineError(
            f"[{WHERE}] needs outputs that are a prefix of the results' pytree; got {kinds!r}: "
            f"{error}. Pass one entry for each branch, or a single one for all."
        ) from None
    found: list[Output | None] = []
    for kind, aval in zip(jax.tree.leaves(full, is_leaf=_is_output), results, strict=True):
        output = _output_of(kind, aval)
        if isinstance(given, Accumulated) and output is not None:
            output = given.of(output, aval)
        found.append(output)
    return found


def _is_output(given: Any) -> bool:
    """Whether this is for one result: a kind, or a pair of a kind and a dtype or function."""
    if isinstance(given, str):
        return True
    if not isinstance(given, tuple) or len(given) != 2 or not isinstance(given[0], str):
        return False
    dtype = given[1]
    return (
        dtype not in KINDS if isinstance(dtype, str) else not isinstance(dtype, (dict, list, tuple))
    )


def _output_of(given: Any, aval: Any) -> Output | None:
    kind, dtype = given if isinstance(given, tuple) else (given, None)
    check_choice(WHERE, "an output", kind, KINDS, PipelineError)
    if kind == NONE:
        return None
    is_whole = kind == SUM and jnp.issubdtype(aval.dtype, jnp.integer)
    if kind in ACCUMULATED and not (is_whole or jnp.issubdtype(aval.dtype, jnp.inexact)):
        raise PipelineError(
            f"[{WHERE}] needs floating-point results to reduce by {kind!r}; got "
            f"{aval.str_short()}. Convert it, or set outputs to 'all', 'last' or 'none' for it."
        )
    chosen = accumulator_dtype(dtype, aval)
    return Output(kind, None if chosen is None else jnp.dtype(chosen))
