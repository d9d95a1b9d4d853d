"""Reductions: over whole dimensions, over windows, and the gradient of a windowed maximum."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ipujax.compiler.ir import Op, combiner_of, declare
from ipujax.compiler.ir.fold import identity_of
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.elementwise import body_expressions, body_of, typed_constant
from ipujax.compiler.rules.registry import rule

declare("reduce", combines=True, complex="pairs")
declare("reduce_window", partition="windows", combines=True, complex="pairs")
declare("select_and_scatter", partition="windows", combines=True)


@rule("reduce")
def reduce(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Reduces one array by an operation of popops, or several at once by any body."""
    count = len(op.results)
    tensors = builder.operands(op)
    operation = "SQUARE_ADD" if op.attrs.get("squares") else _operation(op)
    if operation is not None:
        params = ipu.popops.ReduceParams(getattr(ipu.popops.Operation, operation))
        result = ipu.popops.reduce(
            builder.graph,
            tensors[0],
            builder.type_of(op.results[0]),
            list(op.attrs["dimensions"]),
            params,
            builder.program,
            builder.debug(op),
        )
        return builder.round_bfloat16(op, [result])
    results = ipu.popx.reduce(
        builder.graph,
        tensors[:count],
        tensors[count:],
        body_expressions(op.regions[0]),
        list(op.attrs["dimensions"]),
        builder.program,
        builder.debug(op),
    )
    return builder.round_bfloat16(op, results)


#: The popops::Operation of a body.
_OPERATIONS = {"add": "ADD", "multiply": "MUL", "minimum": "MIN", "maximum": "MAX"}
#: Types that popops::reduce supports: none of 64 bits.
_REDUCED_DTYPES = frozenset({"f32", "f16", "bf16", "i32", "ui32"})


def _operation(op: Op) -> str | None:
    """The popops::Operation of an op that reduces one array from its operation's identity."""
    name = combiner_of(op.regions[0]) or ""
    init = op.operands[1]
    if init.const is None or init.dtype not in _REDUCED_DTYPES or name not in _OPERATIONS:
        return None
    identity = np.asarray(identity_of(name, init.const.dtype)).astype(init.const.dtype)
    return _OPERATIONS[name] if init.const.reshape(-1)[0].tobytes() == identity.tobytes() else None


@rule("reduce_window")
def reduce_window(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Windows with stride, dilation and padding; cumulative sums (cumsum) are windows too."""
    count = len(op.results)
    tensors = builder.operands(op)
    rank = len(op.operands[0].shape)
    attrs = op.attrs
    results = ipu.popx.reduceWindow(
        builder.graph,
        tensors[:count],
        tensors[count:],
        body_expressions(op.regions[0]),
        _window(attrs, rank),
        builder.program,
        builder.debug(op),
    )
    return builder.round_bfloat16(op, results)


def _window(attrs: dict[str, Any], rank: int) -> ipu.popx.Window:
    ones = (1,) * rank
    padding = [list(map(int, pair)) for pair in attrs.get("padding", [(0, 0)] * rank)]
    window = ipu.popx.Window()
    window.sizes = list(attrs["window_dimensions"])
    window.strides = list(attrs.get("window_strides", ones))
    window.base_dilations = list(attrs.get("base_dilations", ones))
    window.window_dilations = list(attrs.get("window_dilations", ones))
    window.padding_low = [pair[0] for pair in padding]
    window.padding_high = [pair[1] for pair in padding]
    return window


@rule("select_and_scatter")
def select_and_scatter(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Each window's chosen element takes the window's source value."""
    if _windows_tile(op):
        return [_choose_in_tiles(builder, op)]
    operand, source, init = builder.operands(op)
    select, scatter = op.regions
    result = ipu.popx.selectAndScatter(
        builder.graph,
        operand,
        source,
        init,
        body_expressions(select)[0],
        body_expressions(scatter)[0],
        _window(op.attrs, len(op.operands[0].shape)),
        builder.program,
        builder.debug(op),
    )
    return builder.round_bfloat16(op, [result])


#: Larger windows go to the library: here each element of a window is an operand of one map.
MAX_TILE_ELEMENTS = 9


def _windows_tile(op: Op) -> bool:
    """Whether the windows are adjacent, cover all, and start from a constant."""
    operand, _, init = op.operands
    sizes = op.attrs["window_dimensions"]
    padding = op.attrs.get("padding")
    return (
        init.is_splat
        and 1 < math.prod(sizes) <= MAX_TILE_ELEMENTS
        and tuple(op.attrs.get("window_strides", (1,) * len(sizes))) == tuple(sizes)
        and (padding is None or not any(int(edge) for pair in padding for edge in pair))
        and all(n and n % size == 0 for n, size in zip(operand.shape, sizes, strict=True))
    )


def _choose_in_tiles(builder: Builder, op: Op) -> ipu.Tensor:
    """One map over the windows: its operands are the n-th elements of all windows."""
    operand, source, init = op.operands
    select, scatter = op.regions
    e, debug = ipu.popops.expr, builder.debug(op)
    tensor, sizes = builder.tensor(operand), op.attrs["window_dimensions"]
    result = builder.variable(builder.type_of(operand), operand.shape, debug)
    taps, targets = [], []
    for position in itertools.product(*(range(size) for size in sizes)):
        taps.append(_every(tensor, position, sizes))
        targets.append(_every(result, position, sizes))
    places = [e.PlaceHolder(i + 1) for i in range(len(taps) + 1)]
    best, where = places[0], e.Const(ipu.poplar.INT, 0)
    for index in range(1, len(taps)):
        (keeps,) = body_of(select, (best, places[index]))
        best = e.Select(best, places[index], keeps)
        where = e.Select(where, e.Const(ipu.poplar.INT, index), keeps)
    start = typed_constant(init)
    (taken,) = body_of(scatter, (start, places[-1]))
    chosen = [
        e.Select(taken, start, e.Equal(where, e.Const(ipu.poplar.INT, index)))
        for index in range(len(taps))
    ]
    for part, target in zip(
        builder.map(chosen, [*taps, builder.tensor(source)], debug), targets, strict=True
    ):
        builder.copy(part, target, debug)
    return result


def _every(tensor: ipu.Tensor, position: Sequence[int], sizes: Sequence[int]) -> ipu.Tensor:
    """The elements at `position` of each window: every size-th one, from there on."""
    for dim, (begin, size) in enumerate(zip(position, sizes, strict=True)):
        if size > 1:
            tensor = tensor.slice(begin, tensor.dim(dim), dim).subSample(size, dim)
    return tensor
