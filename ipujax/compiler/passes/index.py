"""Gathers, scatters and reductions that are plainer ops: used by the table of `simplify`.

Before:  %1 = gather(%0, [0, 2])                        After:  %1 = reshape(slice(%0) from [0, 2])
         %2 = scatter(%0, 0, %u) over all of %0                 %2 = add(%0, reshape(%u))
         %3 = reduce(%0) over dimensions of size 1              %3 = reshape(%0)
"""

from __future__ import annotations

import math

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Block, Op, Shape, Value, splat

#: The number that a reduction may start from without changing anything.
_IDENTITY = {"add": 0, "multiply": 1, "or": 0, "and": 1}


def binary_name(block: Block) -> str | None:
    """The op's name where the block is just `op(arg 0, arg 1)`, in any order."""
    if len(block.ops) != 1 or len(block.args) != 2 or len(block.results) != 1:
        return None
    (inner,) = block.ops
    if block.results[0] is not inner.results[0] or set(inner.operands) != set(block.args):
        return None
    return inner.name


def _is_identity(name: str, value: Value) -> bool:
    if not value.is_splat or value.const is None:
        return False
    scalar, kind = value.const.flat[0], DTYPES[value.dtype].kind
    if name in ("maximum", "minimum"):
        if kind == "f":
            return bool(scalar == (-np.inf if name == "maximum" else np.inf))
        if kind in "iu":
            info = np.iinfo(value.const.dtype)
            return bool(scalar == (info.min if name == "maximum" else info.max))
    if name in ("and", "or") and kind != "b":
        return False
    return name in _IDENTITY and bool(scalar == _IDENTITY[name])


def reduce_nothing(op: Op) -> list[Value] | str | None:
    """A value, or "reshape" where the op only drops dimensions of size 1."""
    if len(op.results) != 1:
        return None
    operand, init = op.operands
    name = binary_name(op.regions[0])
    if name is None or not _is_identity(name, init):
        return None
    if operand.is_splat and name in ("and", "or", "maximum", "minimum"):
        assert operand.const is not None
        return [splat(operand.const.flat[0:1], op.results[0].shape, operand.dtype)]
    if all(operand.shape[dim] == 1 for dim in op.attrs["dimensions"]):
        return "reshape"
    return None


def gather_window(op: Op) -> tuple[Shape, Shape] | None:
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


def scatters_over_all(op: Op) -> str | None:
    """The combining op's name where a scatter's one window is the whole operand."""
    if len(op.results) != 1:
        return None
    operand, indices, updates = op.operands
    numbers = op.attrs["scatter_dimension_numbers"]
    name = binary_name(op.regions[0])
    if name is None or indices.const is None or numbers.input_batching_dims:
        return None
    starts = indices.num_elements
    if starts != len(numbers.scattered_dims_to_operand_dims) or np.any(indices.const):
        return None
    if starts == 0 or math.prod(updates.shape) != operand.num_elements:
        return None
    return name
