"""Replaces arrays without elements by constants: they have nothing to shard.

%1 = slice %0 [0:0] : 0x8                    before
%2 = dot_general %1, %1 : 8x8
%1 = constant dense<> : 0x8                  after
%2 = constant dense<0> : 8x8

Results are then reported as XLA reports them: replicated, unless something else shards them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from ipujax.compiler.ir.traits import TRAITS
from ipujax.compiler.modules import main_of, ops_in

_PREFIX = "stablehlo."


def fold_empty(module: Any) -> None:
    """Replaces ops on arrays without elements, in place."""
    for operation in list(_each(main_of(module))):
        if all(map(_is_empty, operation.results)) and _can_drop(operation):
            _replace(operation, [_zeros(operation, result.type) for result in operation.results])
        elif operation.name == "stablehlo.dot_general" and any(map(_is_empty, operation.operands)):
            _replace(operation, [_zeros(operation, operation.results[0].type)])
        elif operation.name == "stablehlo.reduce" and _is_empty(operation.operands[0]):
            starts = list(operation.operands)[len(operation.results) :]
            pairs = zip(starts, operation.results, strict=True)
            _replace(operation, [_broadcast(operation, x, result.type) for x, result in pairs])


def _each(root: Any) -> Iterator[Any]:
    """All ops but those in functions of single elements."""
    for operation in ops_in(root):
        yield operation
        traits = _traits(operation)
        if traits is None or traits.control_flow:
            yield from _each(operation)


def _traits(operation: Any) -> Any:
    name = operation.name
    return TRAITS.get(name.removeprefix(_PREFIX)) if name.startswith(_PREFIX) else None


def _can_drop(operation: Any) -> bool:
    traits = _traits(operation)
    if traits is None or not len(operation.results) or operation.name == "stablehlo.constant":
        return False
    return not (traits.effect or traits.control_flow or traits.collective)


def _is_empty(value: Any) -> bool:
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and kind.has_static_shape and 0 in kind.shape


def _zeros(operation: Any, kind: Any) -> Any:
    """Zeros, made from text: Python has no attribute class for complex elements."""
    kind = ir.RankedTensorType(kind)
    text = "0" if isinstance(kind.element_type, ir.IntegerType) else "0.0"
    if isinstance(kind.element_type, ir.ComplexType):
        text = "(0.0, 0.0)"
    elements = "" if 0 in kind.shape else text
    made = ir.Operation.parse(
        f'"stablehlo.constant"() {{value = dense<{elements}> : {kind}}} : () -> {kind}'
    )
    ir.InsertionPoint(operation).insert(made)
    return made.results[0]


def _broadcast(operation: Any, start: Any, kind: Any) -> Any:
    return ir.Operation.create(
        "stablehlo.broadcast_in_dim",
        results=[kind],
        operands=[start],
        attributes={"broadcast_dimensions": ir.DenseI64ArrayAttr.get([])},
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    ).results[0]


def _replace(operation: Any, values: list[Any]) -> None:
    for old, new in zip(operation.results, values, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()
