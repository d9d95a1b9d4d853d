"""Replaces gathers, scatters and reductions by simpler ops.

Before:  %1 = gather(%0, [0, 2])                        After:  %1 = reshape(slice(%0) from [0, 2])
         %2 = scatter(%0, 0, %u) over all of %0                 %2 = add(%0, reshape(%u))
         %3 = reduce(%0) over dimensions of size 1              %3 = reshape(%0)
"""

from __future__ import annotations

import math

import numpy as np

from ipujax.compiler.elements import first
from ipujax.compiler.ir import Op, Shape, Value, Writer, combiner_of, splat
from ipujax.compiler.ir.fold import is_identity
from ipujax.compiler.ir.rewriter import Rule
from ipujax.compiler.simplifiers.shapes import reshaped, sliced


def _reduce(w: Writer, op: Op) -> list[Value] | None:
    """Replaces reductions of a splat, or only over dimensions of size 1."""
    name = combiner_of(op.regions[0])
    if name is None or not is_identity(op.operands[1], name):
        return None
    operand, result = op.operands[0], op.results[0]
    if operand.is_splat and name in ("and", "or", "maximum", "minimum"):
        assert operand.const is not None
        return [splat(first(operand.const), result.shape, operand.dtype)]
    if all(operand.shape[dim] == 1 for dim in op.attrs["dimensions"]):
        return [w.reshape(operand, result.shape)]
    return None


def _gather(w: Writer, op: Op) -> list[Value] | None:
    """One window at a constant index is a slice."""
    window = _window(op)
    if window is None:
        return None
    begin, end = window
    operand, result = op.operands[0], op.results[0]
    shape = tuple(e - b for b, e in zip(begin, end, strict=True))
    if shape == result.shape != operand.shape:
        return [w.slice(operand, begin, end)]
    return [w.reshape(sliced(w, operand, begin, end), result.shape)]


def _window(op: Op) -> tuple[Shape, Shape] | None:
    """(begin, end) of the one window that a gather at a single constant index reads."""
    operand, indices = op.operands
    numbers, sizes = op.attrs["dimension_numbers"], op.attrs["slice_sizes"]
    if indices.const is None or numbers.operand_batching_dims:
        return None
    if indices.num_elements != len(numbers.start_index_map) or indices.num_elements == 0:
        return None
    # The result has the window's dimensions in order; those of the batch have size 1.
    begin = [0] * len(operand.shape)
    for dim, start in zip(numbers.start_index_map, indices.const.reshape(-1), strict=True):
        begin[dim] = min(max(int(start), 0), operand.shape[dim] - sizes[dim])
    return tuple(begin), tuple(b + size for b, size in zip(begin, sizes, strict=True))


def _scatter(w: Writer, op: Op) -> list[Value] | None:
    """A scatter whose one window is the whole operand is an elementwise op."""
    name = _scatters_over_all(op)
    if name is None:
        return None
    operand, _, updates = op.operands
    return [w.op(name, [operand, reshaped(w, updates, operand.shape)])]


def _scatters_over_all(op: Op) -> str | None:
    """The combining op's name if a scatter's one window is the whole operand."""
    if len(op.results) != 1:
        return None
    operand, indices, updates = op.operands
    numbers = op.attrs["scatter_dimension_numbers"]
    name = combiner_of(op.regions[0])
    if name is None or indices.const is None or numbers.input_batching_dims:
        return None
    starts = indices.num_elements
    if starts != len(numbers.scattered_dims_to_operand_dims) or np.any(indices.const):
        return None
    if starts == 0 or math.prod(updates.shape) != operand.num_elements:
        return None
    return name


RULES: dict[str, Rule] = {"gather": _gather, "reduce": _reduce, "scatter": _scatter}
