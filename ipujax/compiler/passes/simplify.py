"""Folds constants and drops ops that change nothing.

Before:  %1 = broadcast_in_dim(0.5:f32) {()}        After:  %2 = multiply(%0, 0.5:f32)
         %2 = multiply(%0, %1)
         %3 = reshape(%2) to its own shape                  return %2
         return %3
Float identities are only those that hold for every float: x * 1, x / 1, x - 0, never x + 0 (-0 + 0
is 0).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Block, Op, Program, Shape, Value, constant, splat
from ipujax.compiler.passes.effects import EFFECTS
from ipujax.compiler.passes.fold import fold_elementwise
from ipujax.compiler.passes.index import gather_window, reduce_nothing, scatters_over_all

#: Constants with at most so many distinct elements are computed here instead of on the device.
MAX_FOLDED_ELEMENTS = 4096

Simplifier = Callable[[Op], "list[Value] | None"]


def simplify(program: Program) -> Program:
    """Rewrites all blocks, outer ones first, in one walk."""
    _Rewriter().block(program.main)
    return program


class _Rewriter:
    def __init__(self) -> None:
        self.replaced: dict[Value, Value] = {}

    def block(self, block: Block) -> None:
        replaced = self.replaced
        kept: list[Op] = []
        for op in block.ops:
            if replaced:
                op.operands = [replaced.get(value, value) for value in op.operands]
            rule = SIMPLIFIERS.get(op.name)
            result = rule(op) if rule is not None else None
            if result is None:
                result = fold_elementwise(op) or _empty(op)
            if result is not None:
                for old, new in zip(op.results, result, strict=True):
                    if new.op is op:
                        raise AssertionError(op.name)
                    replaced[old] = new
                    if new.op is not None and new.op.name == _NEW:
                        new.op.name = new.op.attrs.pop("_name")
                        before = new.op.attrs.pop("_before", None)
                        kept += [new.op] if before is None else [before, new.op]
                continue
            for region in op.regions:
                self.block(region)
            kept.append(op)
        block.ops = kept
        if replaced:
            block.results = [replaced.get(value, value) for value in block.results]


def _empty(op: Op) -> list[Value] | None:
    """Arrays without elements are constants, whatever would have made them."""
    if not op.results or any(0 not in value.shape for value in op.results):
        return None
    if op.regions or op.name in EFFECTS or any(v.dtype not in DTYPES for v in op.results):
        return None
    return [constant(np.zeros(v.shape, DTYPES[v.dtype].numpy), v.dtype) for v in op.results]


_NEW = "_new"


def _new_op(name: str, like: Op, operands: list[Value], attrs: dict[str, Any]) -> list[Value]:
    """An op that takes the place of `like`."""
    op = Op(_NEW, operands, {**attrs, "_name": name}, like.source)
    op.add_result(like.results[0].shape, like.results[0].dtype)
    return op.results


def _foldable(value: Value) -> bool:
    return value.const is not None and (value.is_splat or value.num_elements <= MAX_FOLDED_ELEMENTS)


def _reshape(op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    if operand.shape == result.shape:
        return [operand]
    if operand.const is not None:
        if operand.is_splat:
            return [splat(operand.const.flat[0:1], result.shape, result.dtype)]
        return [constant(operand.const.reshape(result.shape), result.dtype)]
    if operand.op is not None and operand.op.name == "reshape":
        op.operands = operand.op.operands
        if op.operands[0].shape == result.shape:
            return [op.operands[0]]
    return None


def _broadcast_in_dim(op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    dims = op.attrs["broadcast_dimensions"]
    if operand.const is not None:
        if operand.is_splat:
            return [splat(operand.const.flat[0:1], result.shape, result.dtype)]
        if result.num_elements <= MAX_FOLDED_ELEMENTS:
            return [constant(_broadcast_array(operand.const, dims, result.shape), result.dtype)]
    if operand.shape == result.shape and dims == tuple(range(len(dims))):
        return [operand]
    producer = operand.op
    if producer is not None and producer.name == "broadcast_in_dim":
        inner = producer.attrs["broadcast_dimensions"]
        op.operands = producer.operands
        op.attrs = {**op.attrs, "broadcast_dimensions": tuple(dims[dim] for dim in inner)}
        return _broadcast_in_dim(op)
    if producer is not None and producer.name == "reshape":
        source = producer.operands[0]
        kept = _dims_without_ones(source.shape, operand.shape)
        if kept is not None:
            op.operands = [source]
            op.attrs = {**op.attrs, "broadcast_dimensions": tuple(dims[dim] for dim in kept)}
            return _broadcast_in_dim(op)
    if operand.num_elements == result.num_elements and dims == tuple(sorted(dims)):
        op.name, op.attrs = "reshape", {}
    return None


def _dims_without_ones(short: Shape, long: Shape) -> list[int] | None:
    """Where `short`'s dimensions stand in `long`, if it only adds dimensions of size 1."""
    kept: list[int] = []
    for dim, size in enumerate(long):
        if len(kept) < len(short) and short[len(kept)] == size:
            kept.append(dim)
        elif size != 1:
            return None
    return kept if len(kept) == len(short) else None


def _broadcast_array(
    array: np.ndarray, dims: tuple[int, ...], shape: tuple[int, ...]
) -> np.ndarray:
    order = np.argsort(dims)
    expanded = [1] * len(shape)
    for axis, dim in enumerate(dims):
        expanded[dim] = array.shape[axis]
    return np.broadcast_to(array.transpose(order).reshape(expanded), shape)


def _transpose(op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    permutation = op.attrs["permutation"]
    if permutation == tuple(range(len(permutation))):
        return [operand]
    if operand.const is not None and _foldable(operand):
        return [constant(operand.const.transpose(permutation), result.dtype)]
    if operand.op is not None and operand.op.name == "transpose":
        inner = operand.op.attrs["permutation"]
        op.operands = operand.op.operands
        op.attrs = {**op.attrs, "permutation": tuple(inner[dim] for dim in permutation)}
        return _transpose(op)
    return None


def _convert(op: Op) -> list[Value] | None:
    if op.operands[0].dtype == op.results[0].dtype:
        return [op.operands[0]]
    return None


def _slice(op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    if operand.shape == result.shape:
        return [operand]
    if operand.const is not None and _foldable(operand):
        attrs = op.attrs
        window = tuple(
            slice(*bounds)
            for bounds in zip(
                attrs["start_indices"], attrs["limit_indices"], attrs["strides"], strict=True
            )
        )
        return [constant(operand.const[window], result.dtype)]
    return None


def _concatenate(op: Op) -> list[Value] | None:
    axis = op.attrs["dimension"]
    op.operands = [value for value in op.operands if value.shape[axis]] or op.operands[:1]
    if len(op.operands) == 1:
        return [op.operands[0]]
    result = op.results[0]
    if result.num_elements <= MAX_FOLDED_ELEMENTS and all(_foldable(v) for v in op.operands):
        arrays = [v.const for v in op.operands if v.const is not None]
        return [constant(np.concatenate(arrays, axis), result.dtype)]
    return None


def _pad(op: Op) -> list[Value] | None:
    attrs = op.attrs
    edges = (*attrs["edge_padding_low"], *attrs["edge_padding_high"], *attrs["interior_padding"])
    return None if any(edges) else [op.operands[0]]


def _reverse(op: Op) -> list[Value] | None:
    operand = op.operands[0]
    return [operand] if all(operand.shape[dim] == 1 for dim in op.attrs["dimensions"]) else None


def _select(op: Op) -> list[Value] | None:
    predicate, on_true, on_false = op.operands
    if on_true is on_false:
        return [on_true]
    if predicate.is_splat and predicate.const is not None:
        return [on_true if predicate.const.flat[0] else on_false]
    return None


def _bitcast(op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    if (operand.shape, operand.dtype) == (result.shape, result.dtype):
        return [operand]
    if operand.shape == result.shape:
        op.name = "bitcast"
    return None


def _iota(op: Op) -> list[Value] | None:
    result, axis = op.results[0], op.attrs["iota_dimension"]
    length = result.shape[axis]
    if result.num_elements <= 1:
        return [splat(np.zeros((), DTYPES[result.dtype].numpy), result.shape, result.dtype)]
    if length > MAX_FOLDED_ELEMENTS:
        return None
    line = constant(np.arange(length).astype(DTYPES[result.dtype].numpy), result.dtype)
    if len(result.shape) == 1:
        return [line]
    return _new_op("broadcast_in_dim", op, [line], {"broadcast_dimensions": (axis,)})


def _dynamic_slice(op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    if operand.shape == result.shape:
        return [operand]
    starts = op.operands[1:]
    if any(start.const is None for start in starts):
        return None
    begin = tuple(
        int(min(max(int(start.const), 0), whole - part))  # type: ignore[arg-type]
        for start, whole, part in zip(starts, operand.shape, result.shape, strict=True)
    )
    end = tuple(b + part for b, part in zip(begin, result.shape, strict=True))
    attrs = {"start_indices": begin, "limit_indices": end, "strides": (1,) * len(begin)}
    return _new_op("slice", op, [operand], attrs)


def _dynamic_update_slice(op: Op) -> list[Value] | None:
    return [op.operands[1]] if op.operands[0].shape == op.operands[1].shape else None


def _is_all(value: Value, scalar: float) -> bool:
    return (
        value.is_splat
        and value.const is not None
        and value.num_elements > 0
        and bool(value.const.flat[0] == scalar)
    )


def _multiply(op: Op) -> list[Value] | None:
    lhs, rhs = op.operands
    if op.results[0].dtype == "i1":
        return None
    if _is_all(rhs, 1):
        return [lhs]
    return [rhs] if _is_all(lhs, 1) else None


def _divide(op: Op) -> list[Value] | None:
    if _is_all(op.operands[1], 1):
        return [op.operands[0]]
    x = _argument_of_logistic(op)
    if x is not None:
        op.name, op.operands = "logistic", [x]
    return None


def _argument_of_logistic(op: Op) -> Value | None:
    """x of 1 / (1 + exp(-x)): JAX writes it out, an IPU has it as one instruction."""
    one, below = op.operands
    if not _is_all(one, 1) or below.op is None or below.op.name != "add":
        return None
    lhs, rhs = below.op.operands
    power = rhs if _is_all(lhs, 1) else lhs if _is_all(rhs, 1) else None
    if power is None or power.op is None or power.op.name != "exponential":
        return None
    negated = power.op.operands[0].op
    return negated.operands[0] if negated is not None and negated.name == "negate" else None


def _add(op: Op) -> list[Value] | None:
    if DTYPES[op.results[0].dtype].kind not in "iu":
        return None
    lhs, rhs = op.operands
    if _is_all(rhs, 0):
        return [lhs]
    return [rhs] if _is_all(lhs, 0) else None


def _subtract(op: Op) -> list[Value] | None:
    rhs = op.operands[1]
    if not _is_all(rhs, 0) or rhs.const is None or np.signbit(rhs.const.flat[0]):
        return None
    return [op.operands[0]]


def _and(op: Op) -> list[Value] | None:
    if op.results[0].dtype != "i1":
        return None
    for this, other in (op.operands, op.operands[::-1]):
        if _is_all(this, True):
            return [other]
    return None


def _or(op: Op) -> list[Value] | None:
    for this, other in (op.operands, op.operands[::-1]):
        if _is_all(this, 0):
            return [other]
    return None


def _reduce(op: Op) -> list[Value] | None:
    simpler = reduce_nothing(op)
    if simpler == "reshape":
        return _new_op("reshape", op, op.operands[:1], {})
    return simpler if isinstance(simpler, list) else None


def _gather(op: Op) -> list[Value] | None:
    """One window at a constant index is a slice."""
    window = gather_window(op)
    if window is None:
        return None
    begin, end = window
    shape = tuple(e - b for b, e in zip(begin, end, strict=True))
    attrs = {"start_indices": begin, "limit_indices": end, "strides": (1,) * len(begin)}
    if shape == op.results[0].shape != op.operands[0].shape:
        return _new_op("slice", op, op.operands[:1], attrs)
    part = Op("slice", op.operands[:1], attrs, op.source)
    part.add_result(shape, op.results[0].dtype)
    simpler = _slice(part)
    if simpler is not None:
        return _new_op("reshape", op, simpler, {})
    return _new_op("reshape", op, part.results, {"_before": part})


def _scatter(op: Op) -> list[Value] | None:
    """One window that is all of the operand combines both element by element."""
    name = scatters_over_all(op)
    if name is None:
        return None
    operand, _, updates = op.operands
    seen = Op("reshape", [updates], {}, op.source)
    seen.add_result(operand.shape, updates.dtype)
    simpler = _reshape(seen)
    if simpler is not None:
        return _new_op(name, op, [operand, *simpler], {})
    return _new_op(name, op, [operand, *seen.results], {"_before": seen})


SIMPLIFIERS: dict[str, Simplifier] = {
    "add": _add,
    "and": _and,
    "bitcast_convert": _bitcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "convert": _convert,
    "divide": _divide,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "iota": _iota,
    "gather": _gather,
    "multiply": _multiply,
    "or": _or,
    "pad": _pad,
    "reduce": _reduce,
    "reshape": _reshape,
    "reverse": _reverse,
    "scatter": _scatter,
    "select": _select,
    "slice": _slice,
    "subtract": _subtract,
    "transpose": _transpose,
}
