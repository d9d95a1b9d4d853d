"""Ops that move elements: dimensions that they leave alone can be sharded."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ipujax.compiler.partition.emit import numbers_of, tensor_type
from ipujax.compiler.partition.factors import (
    Factors,
    kept,
    local_sizes,
    localise,
    localise_beside,
)
from ipujax.compiler.partition.localise import Localiser, localises, replicate, shape_of
from ipujax.compiler.partition.mesh import (
    Shape,
    SubAxes,
    count,
    is_even,
    layout_of,
    reduced,
)
from ipujax.compiler.partition.rules.elementwise import is_added
from ipujax.compiler.partition.shardings import SHARDING


@localises("broadcast_in_dim")
def broadcast_in_dim(localiser: Localiser, operation: Any) -> None:
    source = localiser.shape(operation.operands[0])
    result = localiser.shape(operation.results[0])
    to = numbers_of(operation, "broadcast_dimensions")
    operand = tuple(d if source[k] == result[d] else None for k, d in enumerate(to))
    localise(localiser, operation, Factors([operand], [range(len(result))], linear=[0]))


@localises("transpose")
def transpose(localiser: Localiser, operation: Any) -> None:
    order = numbers_of(operation, "permutation")
    layout = localiser.layout(operation.operands[0])
    if layout is not None and layout.unreduced and is_added(operation.results[0], operation):
        dims = tuple(layout.dims[d] for d in order)
        localiser.set(operation.results[0], layout._replace(dims=dims))
        return
    localise(localiser, operation, Factors([range(len(order))], [order], linear=[0]))


@localises("pad")
def pad(localiser: Localiser, operation: Any) -> None:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    padding = np.array([numbers_of(operation, name) for name in names])
    padded = [d for d, each in enumerate(padding.T) if each.any()]
    localise_beside(localiser, operation, padded, linear=[0, 1])


@localises("slice")
def slice_(localiser: Localiser, operation: Any) -> None:
    """A dimension that is taken whole can be sharded."""
    dims = kept(localiser.shape(operation.operands[0]), localiser.shape(operation.results[0]))
    factors = Factors([dims], [dims], linear=[0])
    localise(localiser, operation, factors, local_sizes("limit_indices", dims))


@localises("iota", always=True)
def iota(localiser: Localiser, operation: Any) -> None:
    """Each device counts from where its block begins."""
    layout = reduced(localiser.declared(operation)[0])
    if layout is None:
        return
    result = operation.results[0]
    dim = ir.IntegerAttr(operation.attributes["iota_dimension"]).value
    shape = shape_of(result)
    local, axes = layout.local(shape), layout.dims[dim]
    if not axes:
        localiser.set(result, layout)
        return
    element = result.type.element_type
    if isinstance(element, ir.ComplexType):
        return
    # Floats and narrow integers would round, or wrap, before the start is added.
    is_wide = isinstance(element, ir.IntegerType) and element.width >= 32
    number = element if is_wide else ir.IntegerType.get_signless(32)
    emit = localiser.emit
    made = emit.count(dim, local, number)
    start = emit.by_device(layout.mesh.values(axes) * local[dim], number)
    made = emit.one("stablehlo.add", made.type, [made, emit.broadcast(start, local)])
    if not is_even(shape[dim], axes):
        last = emit.filled(shape[dim] - 1, made.type)
        made = emit.one("stablehlo.minimum", made.type, [made, last])
    if not is_wide:
        made = emit.one("stablehlo.convert", tensor_type(local, result.type), [made])
    localiser.substitute(operation, made, layout)


@localises("constant", "sdy.constant", always=True)
def constant(localiser: Localiser, operation: Any) -> None:
    """A splat is written in the block's shape; other constants stay whole."""
    result = operation.results[0]
    layout = reduced(localiser.declared(operation)[0])
    if isinstance(result.type.element_type, ir.ComplexType):
        if operation.name != "stablehlo.constant":
            _respell(localiser, operation)
        return
    value = operation.attributes["value"]
    emit = localiser.emit
    if layout is not None:
        made = emit.resplat(value, layout.local(shape_of(result)))
        if made is not None:
            localiser.substitute(operation, made, layout)
            return
    if operation.name != "stablehlo.constant":
        made = emit.one("stablehlo.constant", result.type, [], value=value)
        localiser.substitute(operation, made, None)


def _respell(localiser: Localiser, operation: Any) -> None:
    """Rewrites the op through its text: the bindings cannot read complex attributes."""
    if SHARDING in operation.attributes:
        del operation.attributes[SHARDING]  # the text alone has no mesh of that name
    text = operation.get_asm(print_generic_op_form=True, use_local_scope=True)
    named = text.split(" = ", 1)[1].replace('"sdy.constant"', '"stablehlo.constant"', 1)
    made = ir.Operation.parse(named)
    ir.InsertionPoint(operation).insert(made)
    localiser.substitute(operation, made.operation.results[0], None)


@localises("reshape")
def reshape(localiser: Localiser, operation: Any) -> None:
    """Dimensions that are merged or split can be sharded from the major one on."""
    (wanted,) = localiser.declared(operation)
    before = localiser.shape(operation.operands[0])
    after = localiser.shape(operation.results[0])
    if wanted is None or 0 in before:
        replicate(localiser, operation)
        return
    source: list[SubAxes] = [()] * len(before)
    target: list[SubAxes] = [()] * len(after)
    for old, new in _segments(before, after):
        if len(old) == len(new) == 1:
            source[old[0]] = target[new[0]] = wanted.dims[new[0]]
            continue
        axes = _leading([after[d] for d in new], [wanted.dims[d] for d in new])
        sharded = _sharded([before[d] for d in old], axes)
        kept = tuple(x for found in sharded for x in found)
        for d, found in zip(old, sharded, strict=True):
            source[d] = found
        for d, found in zip(new, _sharded([after[d] for d in new], kept), strict=True):
            target[d] = found
    if _flat(source) != _flat(target):
        source, target = [()] * len(before), [()] * len(after)
    given = localiser.layout(operation.operands[0])
    parts = wanted.unreduced if given is not None and given.unreduced == wanted.unreduced else ()
    localiser.require(operation, 0, layout_of(wanted.mesh, source, parts))
    localiser.set(operation.results[0], layout_of(wanted.mesh, target, parts))


def _flat(dims: list[SubAxes]) -> SubAxes:
    return tuple(axis for axes in dims for axis in axes)


def _segments(before: Shape, after: Shape) -> list[tuple[list[int], list[int]]]:
    """The shortest runs of dimensions that hold the same elements before and after."""
    segments = []
    i = j = 0
    while i < len(before) or j < len(after):
        first, second = i, j
        have = need = 1
        if i < len(before):
            have, i = before[i], i + 1
        if j < len(after):
            need, j = after[j], j + 1
        while have != need:
            if have < need:
                have, i = have * before[i], i + 1
            else:
                need, j = need * after[j], j + 1
        segments.append((list(range(first, i)), list(range(second, j))))
    return segments


def _leading(sizes: list[int], dims: list[SubAxes]) -> SubAxes:
    """The axes that shard the joined dimensions in runs, up to the first block above size 1."""
    found: SubAxes = ()
    for size, axes in zip(sizes, dims, strict=True):
        found += axes
        if count(axes) != size:
            break
    return found


def _sharded(sizes: list[int], axes: SubAxes) -> list[SubAxes]:
    """Distributes the axes over dimensions of these sizes, major first; as many as fit."""
    sharded: list[SubAxes] = []
    rest = list(axes)
    open_ = True
    for size in sizes:
        found: SubAxes = ()
        while open_ and rest and size % rest[0].size == 0:
            size //= rest[0].size
            found += (rest.pop(0),)
        open_ = open_ and size == 1
        sharded.append(found)
    return sharded
