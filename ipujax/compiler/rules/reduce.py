"""Reductions: over whole dimensions, over windows, and the gradient of a windowed maximum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.elementwise import body_expressions
from ipujax.compiler.rules.registry import rule


@rule("reduce")
def reduce(builder: Builder, op: Op) -> Sequence[Any]:
    """Several arrays at once; the body is any expression of two elements per array."""
    count = len(op.results)
    tensors = builder.operands(op)
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


@rule("reduce_window")
def reduce_window(builder: Builder, op: Op) -> Sequence[Any]:
    """Windows with stride, dilation and padding; sums over all before (cumsum) are windows too."""
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


def _window(attrs: dict[str, Any], rank: int) -> Any:
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
def select_and_scatter(builder: Builder, op: Op) -> Sequence[Any]:
    """Each window's chosen element takes the window's source value."""
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
