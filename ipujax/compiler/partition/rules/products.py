"""Products and reductions: reduced dimensions are combined over the devices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.ir.traits import traits_of
from ipujax.compiler.partition.emit import numbers_of, set_numbers, tensor_type
from ipujax.compiler.partition.factors import (
    Dims,
    Factors,
    Fill,
    bring_operands,
    localise,
    no_factors,
    shard,
    sharded,
)
from ipujax.compiler.partition.localise import Localiser, is_neutral, localises
from ipujax.compiler.partition.mesh import SubAxes, count


@localises("dot_general")
def dot_general(localiser: Localiser, operation: Any) -> None:
    numbers = stablehlo.DotDimensionNumbers(operation.attributes["dot_dimension_numbers"])
    lhs, rhs = (no_factors(localiser.shape(value)) for value in operation.operands)
    result: list[int] = []
    reduced: set[int] = set()
    unused = itertools.count()
    pairs = zip(numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions, strict=True)
    for left, right in pairs:
        lhs[left] = rhs[right] = factor = next(unused)
        result.append(factor)
    pairs = zip(numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions, strict=True)
    for left, right in pairs:
        lhs[left] = rhs[right] = factor = next(unused)
        reduced.add(factor)
    for dims in (lhs, rhs):
        for index, known in enumerate(dims):
            if known is None:
                dims[index] = factor = next(unused)
                result.append(factor)
    factors = Factors([lhs, rhs], [result], frozenset(reduced), fills=zeros_for(operation))
    localise(localiser, operation, factors)


def zeros_for(operation: Any) -> Sequence[Fill] | None:
    """Zeros for all operands; None for complex numbers."""
    kinds = (value.type.element_type for value in operation.operands)
    if any(isinstance(kind, ir.ComplexType) for kind in kinds):
        return None
    return [0] * len(operation.operands)


@localises("convolution")
def convolution(localiser: Localiser, operation: Any) -> None:
    """Batch, features and groups can be sharded; spatial dimensions are whole on every device."""
    attributes = operation.attributes
    numbers = stablehlo.ConvDimensionNumbers(attributes["dimension_numbers"])
    feature_groups = ir.IntegerAttr(attributes["feature_group_count"]).value
    batch_groups = ir.IntegerAttr(attributes["batch_group_count"]).value
    shape = localiser.shape(operation.results[0])
    lhs, rhs, result = no_factors(shape), no_factors(shape), no_factors(shape)
    if batch_groups == 1:
        lhs[numbers.input_batch_dimension] = result[numbers.output_batch_dimension] = 0
    if batch_groups == 1 and feature_groups == 1:
        lhs[numbers.input_feature_dimension] = rhs[numbers.kernel_input_feature_dimension] = 1
        rhs[numbers.kernel_output_feature_dimension] = result[numbers.output_feature_dimension] = 2
        summed = Factors([lhs, rhs], [result], frozenset({1}), fills=zeros_for(operation))
        localise(localiser, operation, summed)
        return
    wanted = localiser.declared(operation)[0]
    groups = wanted.dims[numbers.output_feature_dimension] if wanted else ()
    if batch_groups == 1 and feature_groups % count(groups) == 0:
        lhs[numbers.input_feature_dimension] = 3
        rhs[numbers.kernel_output_feature_dimension] = result[numbers.output_feature_dimension] = 3
    localise(localiser, operation, Factors([lhs, rhs], [result]), _fewer_groups)


def _fewer_groups(operation: Any, axes: dict[int, SubAxes]) -> None:
    attr = ir.IntegerAttr(operation.attributes["feature_group_count"])
    operation.attributes["feature_group_count"] = ir.IntegerAttr.get(
        attr.type, attr.value // count(axes.get(3, ()))
    )


@localises("reduce")
def reduce(localiser: Localiser, operation: Any) -> None:
    reduced = frozenset(numbers_of(operation, "dimensions"))
    if len(operation.results) > 1:
        _reduce_twice(localiser, operation, reduced)
        return
    kind = combiner_of(operation.regions[0])
    if kind is not None and not is_neutral(operation.operands[1], kind):
        kind = None  # each part of the sum would add its start
    dims = range(len(localiser.shape(operation.operands[0])))
    operand = [d if d not in reduced or kind is not None else None for d in dims]
    result = [d for d in dims if d not in reduced]
    combined = reduced if kind is not None else frozenset()
    starts = _starts(localiser, operation)
    linear = [0] if kind == "add" else ()
    factors = Factors([operand, ()], [result], combined, kind or "add", starts, linear)
    localise(localiser, operation, factors)


def _starts(localiser: Localiser, operation: Any) -> Sequence[Fill]:
    """A reduction's start values as fills: they are neutral, so they may be combined once more."""
    inputs = len(operation.results)
    starts = [localiser.take_as(value, None) for value in list(operation.operands)[inputs:]]
    return [*starts, *[None] * inputs]


def _reduce_twice(localiser: Localiser, operation: Any, reduced: frozenset[int]) -> None:
    """Reduces results that depend on each other, as in argmax: each block, then the partial ones.

    %p:2 = reduce(%x, %i) across [0]     ->  all_gather each, of shape [1, ...]
    %r:2 = reduce(%p#0, %p#1) across [0]
    """
    inputs = len(operation.results)
    dims = range(len(localiser.shape(operation.operands[0])))
    result = [d for d in dims if d not in reduced]
    scalars: list[Dims] = [()] * inputs
    factors = Factors(
        [dims] * inputs + scalars,
        [result] * inputs,
        reduced,
        fills=_starts(localiser, operation),
    )
    mesh, axes = shard(localiser, operation, factors)
    combined = factors.combined(axes)
    if mesh is None or not combined:
        operand = [None if d in reduced else d for d in dims]
        localise(localiser, operation, Factors([operand] * inputs + scalars, [result] * inputs))
        return
    bring_operands(localiser, operation, factors, mesh, axes)
    localiser.whole_captures(operation.regions[0])
    layout = sharded(mesh, result, axes)
    first = operation.clone(ip=ir.InsertionPoint(operation))
    emit = localiser.emit
    for index, value in enumerate(first.results):
        shape = list(layout.local(localiser.shape(value)) if layout else localiser.shape(value))
        value.set_type(tensor_type(shape, value.type))
        parts = emit.all_gather(emit.reshape(value, [1, *shape]), 0, mesh.groups(combined))
        operation.operands[index] = parts
    set_numbers(operation, "dimensions", [0])
    for value in operation.results:
        localiser.set(value, layout)


def combiner_of(region: Any) -> str | None:
    """The op that a reducer of two scalars computes, or None if collectives do not know it."""
    block = region.blocks[0]
    ops = [op.operation for op in block.operations]
    if len(ops) != 2 or len(block.arguments) != 2 or len(ops[0].operands) != 2:
        return None
    if {*ops[0].operands} != {*block.arguments}:
        return None
    kind = ops[0].name.removeprefix("stablehlo.")
    if kind in ("and", "or") and ops[0].results[0].type.element_type.width != 1:
        return None
    return kind if traits_of(kind).identity else None
