"""Accumulators of a pipeline: one on each IPU that adds to a result.

The gradient of a weight that stages on two IPUs use is a sum of two terms. If both went to one
accumulator, one of them would cross the IPUs in each micro-batch. So each IPU accumulates its own,
and the accumulators are added after the loop:

Before: for k: g = g + (g0[k] + g1[k])       After: for k: a = a + g0[k]; b = b + g1[k]
                                                    g = a + b
Terms of one IPU are added as before, so that their sum has the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jax import lax
from jax.extend.core import ClosedJaxpr

from ipujax import jax_compat
from ipujax.api.stages import STAGE_CALL


def divide_by_ipu(
    jaxpr: ClosedJaxpr, is_accumulated: Sequence[bool]
) -> tuple[ClosedJaxpr, list[int]]:
    """Returns each sum of terms from several IPUs as one sum for each of them.

    Args:
        jaxpr: the function of a micro-batch.
        is_accumulated: which of its results may be divided.
    Returns:
        The function, and how many results it has for each of those before.
    """
    opened = jax_compat.inlined(jaxpr, lambda eqn: bool(_ipus_inside(eqn)))
    makers = {variable: eqn for eqn in opened.eqns for variable in eqn.outvars}
    groups = [
        _by_ipu(result, makers) if accumulated else [[result]]
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

    made, captured = jax_compat.trace_avals(divided, opened.in_avals)
    assert not captured, "a jaxpr captures nothing"
    return jax_compat.with_outputs(made, [True] * sum(counts)), counts


def _by_ipu(result: Any, makers: Mapping[Any, Any]) -> list[list[Any]]:
    """The terms of a sum by the IPU that makes them; those that no stage makes with the first."""
    groups: dict[int, list[Any]] = {}
    without: list[Any] = []
    for term in _terms(result, makers):
        ipus = _ipus_of(term, makers)
        (groups.setdefault(min(ipus), []) if len(ipus) == 1 else without).append(term)
    if len(groups) < 2:
        return [[result]]
    first, *rest = groups.values()
    return [[*first, *without], *rest]


def _terms(atom: Any, makers: Mapping[Any, Any]) -> Iterator[Any]:
    """What autodiff added up."""
    maker = None if jax_compat.is_literal(atom) else makers.get(atom)
    if maker is not None and maker.primitive.name == "add_any":
        for operand in maker.invars:
            yield from _terms(operand, makers)
    else:
        yield atom


def _ipus_of(atom: Any, makers: Mapping[Any, Any]) -> set[int]:
    """The IPUs of the last stages that the value comes from."""
    found: set[int] = set()
    pending, seen = [atom], set()
    while pending:
        atom = pending.pop()
        maker = None if jax_compat.is_literal(atom) else makers.get(atom)
        if maker is None or atom in seen:
            continue
        seen.add(atom)
        own = _ipus_inside(maker)
        found |= own
        if not own:
            pending += maker.invars
    return found


def _ipus_inside(eqn: Any) -> set[int]:
    """Of the stages that the equation calls, itself or deeper."""
    if eqn.primitive.name == STAGE_CALL:
        return {eqn.params["label"].ipu} - {None}
    jaxprs = jax_compat.inner_jaxprs(eqn)
    return {ipu for jaxpr in jaxprs for inner in jaxpr.eqns for ipu in _ipus_inside(inner)}
