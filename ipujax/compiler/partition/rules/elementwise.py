"""Ops that compute each element from those at the same place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from ipujax.compiler.partition.factors import Dims, Factors, localise
from ipujax.compiler.partition.localise import Localiser, localises, replicate

#: Operands of elementwise ops that may be parts; a product may have parts of one operand.
LINEAR = {
    "stablehlo.add": (0, 1),
    "stablehlo.subtract": (0, 1),
    "stablehlo.negate": (0,),
    "stablehlo.select": (1, 2),
    "stablehlo.reduce_precision": (0,),
}


@localises("elementwise")
def elementwise(localiser: Localiser, operation: Any) -> None:
    """Scalars next to tensors (of select and clamp) stay whole."""
    rank = max(len(localiser.shape(value)) for value in operation.results)
    dims: Dims = tuple(range(rank))
    operands = [dims[: len(localiser.shape(value))] for value in operation.operands]
    if any(len(found) not in (0, rank) for found in operands):
        replicate(localiser, operation)
        return
    results = [dims] * len(operation.results)
    localise(localiser, operation, Factors(operands, results, linear=_linear(localiser, operation)))


def _linear(localiser: Localiser, operation: Any) -> Sequence[int]:
    """The operands whose parts suffice to make parts of the result."""
    if operation.name == "stablehlo.multiply":
        layouts = [localiser.layout(value) for value in operation.operands]
        parts = [k for k, layout in enumerate(layouts) if layout is not None and layout.unreduced]
        return parts if len(parts) == 1 else ()
    if operation.name == "stablehlo.convert":
        kinds = (value.type.element_type for value in (*operation.operands, *operation.results))
        return () if any(isinstance(kind, ir.IntegerType) for kind in kinds) else (0,)
    return LINEAR.get(operation.name, ())


@localises("add")
def add(localiser: Localiser, operation: Any) -> None:
    """Parts of two sums are added before they are combined: one collective instead of two."""
    first, second = (localiser.layout(value) for value in operation.operands)
    if first is None or first != second or not first.unreduced or first.kind != "add":
        elementwise(localiser, operation)
        return
    operands, emit = list(operation.operands), localiser.emit
    total = emit.one("stablehlo.add", operands[0].type, operands)
    localiser.adopt(total, localiser.info(operands[0]))
    is_left = is_added(operation.results[0], operation)
    layout = first if is_left else localiser.declared(operation)[0]
    localiser.substitute(operation, localiser.take_as(total, layout), layout)


def is_added(value: Any, operation: Any) -> bool:
    """Whether the value's only use is an addition in the op's block, perhaps transposed."""
    users = [use.owner.operation for use in value.uses]
    if len(users) != 1 or users[0].block != operation.block:
        return False
    if users[0].name == "stablehlo.transpose":
        return is_added(users[0].results[0], operation)
    return bool(users[0].name == "stablehlo.add")


@localises("each")
def each_its_own(localiser: Localiser, operation: Any) -> None:
    """Result k is operand k, independent of the others."""
    layouts = localiser.declared(operation)
    localiser.require_each(operation, layouts)
    localiser.set_each(operation.results, layouts)


@localises("bitcast_convert")
def bitcast(localiser: Localiser, operation: Any) -> None:
    """If widths differ, elements merge or split along a last dimension, which stays whole."""
    ranks = [len(localiser.shape(v)) for v in (operation.operands[0], operation.results[0])]
    shared = tuple(range(min(ranks)))
    operand, result = ((*shared, *(None,) * (rank - len(shared))) for rank in ranks)
    localise(localiser, operation, Factors([operand], [result]))
