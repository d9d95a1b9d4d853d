"""Accumulators of a pipeline: one on each IPU that adds to a result, or for each large term.

The gradient of a weight that stages on two IPUs use is a sum of two terms. If both went to one
accumulator, one of them would cross the IPUs in each micro-batch. So each IPU accumulates its own,
and the accumulators are added after the loop:

Before: for k: g = g + (g0[k] + g1[k])       After: for k: a = a + g0[k]; b = b + g1[k]
                                                    g = a + b
Terms of one IPU are added as before, so that their sum has the same bits. But two stages make their
terms of a micro-batch in different time slots, and several first terms wait for the others in a
FIFO. If these are large, each stage adds its own, and the compiler joins the accumulators on an IPU
(compiler/sums.py).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jax import lax
from jax.extend.core import ClosedJaxpr

from ipujax import jax_compat
from ipujax.api.pipeline.stages import STAGE_CALL, StageLabel

#: Terms of at least this many bytes do not wait for others: about 3 KB on each tile of an IPU.
LARGE_BYTES = 4 << 20


def divide_by_place(
    jaxpr: ClosedJaxpr, is_accumulated: Sequence[bool], *, overlaps: bool
) -> tuple[ClosedJaxpr, list[int]]:
    """Splits each sum of terms from several places into one sum for each place.

    A place is an IPU, or a stage for results of at least `LARGE_BYTES` whose terms would wait.

    Args:
        jaxpr: the function of a micro-batch.
        is_accumulated: which of its results may be split.
        overlaps: whether stages on several IPUs run at the same time.
    Returns:
        The function, and its number of results for each earlier result.
    """
    opened = jax_compat.inlined(jaxpr, lambda eqn: bool(stages_inside(eqn)))
    makers = {variable: eqn for eqn in opened.eqns for variable in eqn.outvars}
    ipus = {label.ipu for eqn in opened.eqns for label in stages_inside(eqn)}
    least = LARGE_BYTES if overlaps and len(ipus) > 1 else math.inf
    groups = [
        _by_place(result, makers, least) if accumulated else [[result]]
        for result, accumulated in zip(opened.jaxpr.outvars, is_accumulated, strict=True)
    ]
    counts = [len(own) for own in groups]
    if max(counts, default=1) == 1:
        return jaxpr, counts

    def divided(*given: Any) -> list[Any]:
        values = dict(zip(opened.jaxpr.constvars, opened.consts, strict=True))
        values.update(zip(opened.jaxpr.invars, given, strict=True))
        jax_compat.evaluate(opened.eqns, values)
        return [
            functools.reduce(lax.add, [jax_compat.value_of(atom, values) for atom in group])
            for own in groups
            for group in own
        ]

    made = jax_compat.traced_again(divided, opened.in_avals)
    return jax_compat.with_outputs(made, [True] * sum(counts)), counts


def _by_place(result: Any, makers: Mapping[Any, Any], least: float) -> list[list[Any]]:
    """The terms of a sum by the place that makes them; terms without a place join the first.

    From `least` bytes on, each stage is a place.
    """
    is_large = result.aval.size * result.aval.dtype.itemsize >= least
    groups: dict[tuple[int | None, int | None], list[Any]] = {}
    without: list[Any] = []
    for term in _terms(result, makers):
        labels = _stages_of(term, makers)
        places = {(label.ipu, label.index if is_large else None) for label in labels}
        (groups.setdefault(places.pop(), []) if len(places) == 1 else without).append(term)
    if len(groups) < 2:
        return [[result]]
    first, *rest = groups.values()
    return [[*first, *without], *rest]


def _terms(atom: Any, makers: Mapping[Any, Any]) -> Iterator[Any]:
    """The terms that autodiff added up."""
    maker = None if jax_compat.is_literal(atom) else makers.get(atom)
    if maker is not None and maker.primitive.name == "add_any":
        for operand in maker.invars:
            yield from _terms(operand, makers)
    else:
        yield atom


def _stages_of(atom: Any, makers: Mapping[Any, Any]) -> set[StageLabel]:
    """The last stages that the value comes from."""
    found: set[StageLabel] = set()
    pending, seen = [atom], set()
    while pending:
        atom = pending.pop()
        maker = None if jax_compat.is_literal(atom) else makers.get(atom)
        if maker is None or atom in seen:
            continue
        seen.add(atom)
        own = stages_inside(maker)
        found |= own
        if not own:
            pending += maker.invars
    return found


def stages_inside(eqn: Any) -> set[StageLabel]:
    """The stages with an IPU that the equation calls, directly or deeper."""
    if eqn.primitive.name == STAGE_CALL:
        label = eqn.params["label"]
        return set() if label.ipu is None else {label}
    inside = map(stages_inside, jax_compat.inner_equations(eqn))
    return set().union(*inside)
