"""Parts, which a plan moves between stages. Each has a layer and the operations that follow it.

Operations that depend on no data of a micro-batch, such as a mask or a cast of a weight, belong to
no part: each stage that needs them repeats them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from jax.extend.core import ClosedJaxpr

from ipujax import jax_compat
from ipujax.planner.operations import Listing, Operation, Value, list_operations
from ipujax.planner.work import LAYERS, is_layer


@dataclass(eq=False, slots=True)
class Part:
    """Operations that stay together."""

    name: str
    operations: list[Operation] = field(default_factory=list)

    def reads(self) -> set[Value]:
        return {value for operation in self.operations for value in operation.operands}

    def makes(self) -> set[Value]:
        return {value for operation in self.operations for value in operation.results}


@dataclass(slots=True)
class Divided:
    """A function as parts, and the operations that each part may repeat."""

    listing: Listing
    shared: frozenset[Value]  #: inputs that all micro-batches share
    parts: list[Part] = field(default_factory=list)
    free: dict[Value, Operation] = field(default_factory=dict)  #: by result
    maker: dict[Value, Part] = field(default_factory=dict)  #: the part that makes a value

    def free_before(self, values: Iterable[Value]) -> list[Operation]:
        """The free operations that these values depend on, in order."""
        found: set[Operation] = set()
        pending = list(values)
        while pending:
            operation = self.free.get(pending.pop())
            if operation is not None and operation not in found:
                found.add(operation)
                pending += operation.operands
        return [operation for operation in self.listing.operations if operation in found]


def divide(jaxpr: ClosedJaxpr, shared: Sequence[bool], largest: float) -> Divided:
    """Divides a function of a micro-batch into parts.

    Args:
        shared: for each input, whether all micro-batches share it.
        largest: share of the work above which calls and scans are opened.
    """
    listing = list_operations(jaxpr, largest)
    inputs = [v for v, is_shared in zip(listing.inputs, shared, strict=True) if is_shared]
    found = Divided(listing, frozenset(inputs))
    known = set(inputs)
    for operation in listing.operations:
        is_heavy = is_layer(operation.eqn)
        if not (is_heavy or operation.eqn.effects) and _needs_only(operation, known):
            known.update(operation.results)
            found.free.update(dict.fromkeys(operation.results, operation))
            continue
        if not found.parts or (is_heavy and found.parts[-1].name):
            found.parts.append(Part(""))
        found.parts[-1].operations.append(operation)
        if is_heavy:
            found.parts[-1].name = "/".join((*operation.around, _name(operation)))
    _number(found.parts)
    found.maker = {value: part for part in found.parts for value in part.makes()}
    return found


def _needs_only(operation: Operation, known: Collection[Value]) -> bool:
    return all(v in known or v.constant is not None for v in operation.operands)


def _name(operation: Operation) -> str:
    """The name of the call it makes; for a loop, of the only call in its body."""
    eqn = operation.eqn
    if "label" in eqn.params:
        return str(getattr(eqn.params["label"], "name", eqn.primitive.name))
    if "name" in eqn.params:
        return str(eqn.params["name"])
    if eqn.primitive.name not in LAYERS:
        inner = list(filter(is_layer, jax_compat.inner_equations(eqn)))
        if len(inner) == 1 and "name" in inner[0].params:
            return str(inner[0].params["name"])
    return str(eqn.primitive.name)


def _number(parts: Sequence[Part]) -> None:
    """Makes names unique: "block" twice becomes "block 0" and "block 1"."""
    counts = Counter(part.name for part in parts)
    numbers: Counter[str] = Counter()
    for part in parts:
        name = part.name
        part.name = name or "function"
        if counts[name] > 1:
            part.name += f" {numbers[name]}"
        numbers[name] += 1
