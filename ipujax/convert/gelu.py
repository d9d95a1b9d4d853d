"""Finds GELUs that were written as several ops, and computes them as `ipu.nn.gelu`.

A candidate is a value computed from one other value by elementwise ops and constants alone, with an
erf, erfc or tanh among them. It is a GELU if it equals one on points from -6 to 6.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ipujax import nn
from ipujax.compiler.elements import elements, first
from ipujax.convert.changes import Names
from ipujax.convert.importer import Compute, ImportedOp, kind_of, name_of_op

#: More ops than any form of a GELU has.
MOST_OPS = 24
POINTS = np.linspace(-6.0, 6.0, 97)
#: Largest difference between a GELU of float32 ops and one in double precision.
TOLERANCE = 2e-6

_CURVES = frozenset({"chlo.erf", "chlo.erfc", "tanh"})
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "negate": np.negative,
    "power": np.power,
    "tanh": np.tanh,
    "chlo.erf": np.vectorize(math.erf),
    "chlo.erfc": np.vectorize(math.erfc),
}
#: Ops that a constant may pass through.
_MOVES = frozenset({"broadcast_in_dim", "reshape"})


@dataclass
class Found:
    """One GELU."""

    result: Any
    argument: Any
    approximate: bool
    operations: list[Any]


def find(block: Any) -> list[Found]:
    """The GELUs among the ops of a block."""
    found: list[Found] = []
    for op in block.operations:
        if kind_of(op.operation) not in _CURVES:
            continue
        for result in reversed(_following(op.operation)):
            gelu = _as_gelu(result)
            if gelu is not None:
                found.append(gelu)
                break
    return found


class Replaced:
    """The change around ops that computes the GELUs of `find`."""

    def __init__(
        self,
        found: Sequence[Found],
        inside: Names | None = None,
        inputs: Names | None = None,
        outputs: Names | None = None,
    ):
        """`inside`: names that all ops of a GELU must have; `inputs`: names of the ops that make
        its argument; `outputs`: names of the ops that read its result. None: any."""

        def wanted(gelu: Found) -> bool:
            makers = [gelu.argument.owner] if _has_maker(gelu.argument) else []
            readers = [use.owner for use in gelu.result.uses]
            rules = ((inside, gelu.operations), (inputs, makers), (outputs, readers))
            return all(
                names is None or all(names.match(name_of_op(op)) for op in ops)
                for names, ops in rules
            )

        self.found = [gelu for gelu in found if wanted(gelu)]
        self._by_op = {gelu.result.owner: gelu for gelu in self.found}

    def __call__(self, op: ImportedOp, operands: Sequence[Any], compute: Compute) -> list[Any]:
        gelu = self._by_op.get(op.operation)
        if gelu is None:
            return compute(operands)
        return [nn.gelu(op.value_of(gelu.argument), approximate=gelu.approximate)]


def _has_maker(value: Any) -> bool:
    return hasattr(value.owner, "operands")


def _following(operation: Any) -> list[Any]:
    """Results of elementwise ops that depend on an op's result, in order of distance."""
    found: list[Any] = []
    pending = [operation.results[0]]
    while pending and len(found) < MOST_OPS:
        value = pending.pop(0)
        found.append(value)
        for use in value.uses:
            reader = use.owner.operation
            if kind_of(reader) in _FUNCTIONS and reader.results[0] not in found:
                pending.append(reader.results[0])
    return found


def _as_gelu(result: Any) -> Found | None:
    """The GELU that computes a value from another one; None if it is not a GELU."""
    for argument in _sources(result):
        operations: list[Any] = []
        try:
            values = _evaluate(result, {argument: POINTS}, operations)
        except _NotAFunction:
            continue
        for approximate in (False, True):
            if np.max(np.abs(values - _gelu(approximate))) < TOLERANCE:
                return Found(result, argument, approximate, operations)
    return None


def _sources(result: Any) -> list[Any]:
    """Values that a value may depend on, the nearest first."""
    found: list[Any] = []
    pending, seen = [result], {result}
    while pending and len(seen) < MOST_OPS:
        owner = pending.pop(0).owner
        if not hasattr(owner, "operands") or kind_of(owner.operation) not in _FUNCTIONS:
            continue
        for value in owner.operation.operands:
            if value not in seen:
                seen.add(value)
                pending.append(value)
                found.append(value)
    return [value for value in found if value.type == result.type]


class _NotAFunction(Exception):  # noqa: N818 (not an error: it is not a candidate)
    pass


def _evaluate(value: Any, known: dict[Any, Any], operations: list[Any]) -> Any:
    """The value at all points, given other known values."""
    if value in known:
        return known[value]
    if not _has_maker(value) or len(operations) > MOST_OPS:
        raise _NotAFunction
    operation = value.owner.operation
    kind = kind_of(operation)
    if kind == "constant":
        made = _scalar(operation)
    elif kind in _MOVES:
        made = _evaluate(operation.operands[0], known, operations)
        if np.ndim(made):
            raise _NotAFunction
    elif kind in _FUNCTIONS:
        made = _FUNCTIONS[kind](*(_evaluate(v, known, operations) for v in operation.operands))
        operations.append(operation)
    else:
        raise _NotAFunction
    known[value] = made
    return made


def _scalar(operation: Any) -> float:
    const = np.asarray(elements(operation.attributes["value"]))
    if const.size != 1 and (const.size == 0 or any(const.strides)):
        raise _NotAFunction
    return float(first(const)[0])


def _gelu(approximate: bool) -> Any:
    if approximate:
        inner = math.sqrt(2 / math.pi) * (POINTS + 0.044715 * POINTS**3)
        return POINTS / 2 * (1 + np.tanh(inner))
    return POINTS / 2 * (1 + _FUNCTIONS["chlo.erf"](POINTS / math.sqrt(2)))
