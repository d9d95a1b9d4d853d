"""A traced function as a list of operations that can be divided among stages.

Calls are opened from the outside in, until none is so large that it may be divided among stages,
and a large scan becomes one operation for each iteration, or for each group of iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from ipujax import jax_compat
from ipujax.annotations.placement import BLOCK, read_block
from ipujax.planner.work import is_layer, work_of

#: Calls that may be opened: they mean the same as their body.
CALLS = frozenset({"jit", "closed_call", "core_call"})
#: A scan is cut into at most this many groups of iterations.
MOST_GROUPS = 128


@dataclass(eq=False, slots=True)
class Value:
    """A result of an operation, an input, or a constant."""

    aval: Any
    constant: Any = None


@dataclass(eq=False, slots=True)
class Operation:
    """One equation, or some iterations of a scan.

    Operands and results are those of the equation. A divided scan has groups of iterations. Its
    carried operands and results are those before and after its groups, and its stacked results one
    piece for each group.
    """

    eqn: JaxprEqn
    operands: tuple[Value, ...]
    results: tuple[Value, ...]
    groups: tuple[range, ...] = ()  #: iterations, in the order in which they run
    around: tuple[str, ...] = ()  #: names of its `ipu.block` and of the calls that were opened

    @property
    def num_whole(self) -> int:
        """How many of the operands are not scanned."""
        if not self.groups:
            return len(self.operands)
        return int(self.eqn.params["num_consts"] + self.eqn.params["num_carry"])

    @property
    def rows(self) -> tuple[int, int]:
        """First and last + 1 of the rows of scanned operands that its groups take."""
        first, last = self.groups[0].start, self.groups[-1].stop
        if self.eqn.params["reverse"]:
            length = self.eqn.params["length"]
            return length - last, length - first
        return first, last

    @property
    def work(self) -> float:
        share = 1.0
        if self.groups:
            share = sum(map(len, self.groups)) / self.eqn.params["length"]
        return work_of(self.eqn) * share

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Returns its results; of scanned operands, it gets only its own rows."""
        if not self.groups:
            return _evaluate(self.eqn, operands)
        sizes = [len(group) for group in self.groups]
        is_reversed, count = self.eqn.params["reverse"], self.eqn.params["num_carry"]
        made = self.eqn.primitive.bind(*operands, **{**self.eqn.params, "length": sum(sizes)})
        pieces = [lax.split(x, sizes[::-1] if is_reversed else sizes) for x in made[count:]]
        if is_reversed:
            pieces = [piece[::-1] for piece in pieces]
        return [*made[:count], *(piece[i] for i in range(len(sizes)) for piece in pieces)]

    def joined(self, after: Operation) -> Operation:
        """This and the iterations that follow, as one operation."""
        count = self.eqn.params["num_carry"]
        return replace(
            self,
            results=(*after.results[:count], *self.results[count:], *after.results[count:]),
            groups=(*self.groups, *after.groups),
        )


@dataclass(slots=True)
class Listing:
    """A function's operations, in the order in which they run."""

    inputs: list[Value]
    operations: list[Operation] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)


def list_operations(jaxpr: ClosedJaxpr, largest: float) -> Listing:
    """The operations of a function.

    Args:
        largest: calls and scans that are a larger share of the whole work are opened.
    """
    inputs = [Value(variable.aval) for variable in jaxpr.jaxpr.invars]
    listing = Listing(inputs)
    limit = largest * sum(map(work_of, jaxpr.jaxpr.eqns))
    listing.outputs = _Reader(listing.operations, limit).read(jaxpr.jaxpr, jaxpr.consts, inputs)
    return listing


class _Reader:
    def __init__(self, operations: list[Operation], limit: float):
        self.operations = operations
        self.limit = limit
        self.block: str | None = None  #: around the call that is read, as an attribute
        self.calls: tuple[str, ...] = ()

    def read(self, jaxpr: Jaxpr, consts: Sequence[Any], inputs: Sequence[Value]) -> list[Value]:
        """Appends the operations of a body, and returns its outputs."""
        values: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
        for variable, constant in zip(jaxpr.constvars, consts, strict=True):
            values[variable] = Value(variable.aval, constant)

        def value_of(atom: Any) -> Value:
            return Value(atom.aval, atom.val) if isinstance(atom, Literal) else values[atom]

        for eqn in jaxpr.eqns:
            operands = tuple(map(value_of, eqn.invars))
            values.update(zip(eqn.outvars, self._results(eqn, operands), strict=True))
        return list(map(value_of, jaxpr.outvars))

    def _results(self, eqn: JaxprEqn, operands: tuple[Value, ...]) -> Sequence[Value]:
        is_large = work_of(eqn) > self.limit
        if eqn.primitive.name in CALLS and (is_large or not is_layer(eqn)):
            return self._open(eqn, operands)
        if eqn.primitive.name == "scan" and is_large and is_layer(eqn):
            return self._iterations(eqn, operands)
        return self._add(eqn, operands).results

    def _open(self, eqn: JaxprEqn, operands: tuple[Value, ...]) -> Sequence[Value]:
        body = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
        before = self.block, self.calls
        self.block = jax_compat.metadata_of(eqn).get(BLOCK, self.block)
        self.calls = (*self.calls, str(eqn.params.get("name", eqn.primitive.name)))
        if isinstance(body, ClosedJaxpr):
            results = self.read(body.jaxpr, body.consts, operands)
        else:
            results = self.read(body, (), operands)
        self.block, self.calls = before
        return results

    def _around(self, eqn: JaxprEqn) -> tuple[str, ...]:
        attribute = jax_compat.metadata_of(eqn).get(BLOCK, self.block)
        return self.calls if attribute is None else (read_block(attribute)[0], *self.calls)

    def _add(self, eqn: JaxprEqn, operands: tuple[Value, ...]) -> Operation:
        results = tuple(Value(variable.aval) for variable in eqn.outvars)
        self.operations.append(Operation(eqn, operands, results, (), self._around(eqn)))
        return self.operations[-1]

    def _iterations(self, eqn: JaxprEqn, operands: tuple[Value, ...]) -> Sequence[Value]:
        length, num_carry = eqn.params["length"], eqn.params["num_carry"]
        first, last = eqn.params["num_consts"], eqn.params["num_consts"] + num_carry
        carry = operands[first:last]
        size = -(-length // MOST_GROUPS)
        around = self._around(eqn)
        stacked: list[tuple[Value, ...]] = []
        for start in range(0, length, size):
            group = range(start, min(start + size, length))
            given = (*operands[:first], *carry, *operands[last:])
            pieces = tuple(
                Value(variable.aval.update(shape=(len(group), *variable.aval.shape[1:])))
                for variable in eqn.outvars[num_carry:]
            )
            carry = tuple(Value(x.aval) for x in carry)
            results = (*carry, *pieces)
            self.operations.append(Operation(eqn, given, results, (group,), around))
            stacked.append(pieces)
        if eqn.params["reverse"]:
            stacked.reverse()
        whole = [self._concatenated(pieces) for pieces in zip(*stacked, strict=True)]
        return [*carry, *whole]

    def _concatenated(self, pieces: tuple[Value, ...]) -> Value:
        avals = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in pieces]
        traced = jax.make_jaxpr(lambda *given: jnp.concatenate(given))(*avals)
        return self.read(traced.jaxpr, traced.consts, pieces)[0]


def _evaluate(eqn: JaxprEqn, operands: Sequence[Any]) -> list[Any]:
    """Evaluates the equation on these operands, in the context in which it was traced."""
    values = {v: x for v, x in zip(eqn.invars, operands, strict=True) if not isinstance(v, Literal)}
    jax_compat.evaluate([eqn], values)
    return [values[variable] for variable in eqn.outvars]
