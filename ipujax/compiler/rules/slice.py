"""Slices: known at compile time (views), and at run time (dynamicSlice, dynamicUpdate)."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, Value, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule

declare("slice", view=True, moves=True, complex="parts", in_host=True, integers64=True)
declare(
    "dynamic_slice",
    moves=True,
    reads_part=True,
    in_host=True,
    integers64=True,
    complex="parts",
    indices=lambda op: range(1, len(op.operands)),
)
declare(
    "dynamic_update_slice",
    moves=True,
    integers64=True,
    update=True,
    complex="parts",
    indices=lambda op: range(2, len(op.operands)),
)


@rule("slice")
def slice_static(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """A view; a stride of n takes every n-th element."""
    attrs = op.attrs
    tensor = builder.tensor(op.operands[0]).slice(
        list(attrs["start_indices"]), list(attrs["limit_indices"])
    )
    for dim, stride in enumerate(attrs["strides"]):
        if stride != 1:
            tensor = tensor.subSample(stride, dim)
    return [tensor]


@rule("dynamic_slice")
def dynamic_slice(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Starts are clamped so that the slice lies inside."""
    operand, starts = op.operands[0], op.operands[1:]
    sizes = op.attrs["slice_sizes"]
    tensor = builder.tensor(operand)
    tensor, dims, offsets = _known_starts(operand, starts, sizes, tensor)
    if not dims:
        return [tensor]
    indices = _offsets(builder, offsets, op)
    debug = builder.debug(op)
    return [
        ipu.popx.dynamicSlice(
            builder.graph, tensor, indices, dims, [sizes[d] for d in dims], builder.program, debug
        )
    ]


@rule("dynamic_update_slice")
def dynamic_update_slice(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """A copy of the operand, changed in place; the copy is free at the operand's last use."""
    operand, update = op.operands[:2]
    debug, sizes = builder.debug(op), update.shape
    whole = builder.materialise(builder.tensor(operand), debug)
    target, dims, offsets = _known_starts(operand, op.operands[2:], sizes, whole)
    if not dims:
        builder.copy(builder.tensor(update), target, debug)
        return [whole]
    indices = _offsets(builder, offsets, op)
    ipu.popx.dynamicUpdate(
        builder.graph,
        target,
        builder.tensor(update),
        indices,
        dims,
        [sizes[d] for d in dims],
        builder.program,
        debug,
    )
    return [whole]


def _known_starts(
    operand: Value, starts: list[Value], sizes: Sequence[int], tensor: ipu.Tensor
) -> tuple[ipu.Tensor, list[int], list[Value]]:
    """Slices dimensions with constant starts; returns the view, and remaining dims and starts."""
    dims, offsets = [], []
    for dim, start in enumerate(starts):
        whole, part = operand.shape[dim], sizes[dim]
        if whole == part:
            continue
        if start.const is not None:
            begin = min(max(int(start.const), 0), whole - part)
            tensor = tensor.slice(begin, begin + part, dim)
        else:
            dims.append(dim)
            offsets.append(start)
    return tensor, dims, offsets


def _offsets(builder: Builder, offsets: list[Value], op: Op) -> ipu.Tensor:
    """Starts as one vector; popx clamps them so that the slice lies inside."""
    if len(offsets) == 1:
        return builder.tensor(offsets[0]).reshape([1])
    debug = builder.debug(op)
    vector = builder.variable(builder.type_of(offsets[0]), [len(offsets)], debug)
    for index, offset in enumerate(offsets):
        builder.copy(builder.tensor(offset).reshape([1]), vector.slice(index, index + 1, 0), debug)
    return vector
