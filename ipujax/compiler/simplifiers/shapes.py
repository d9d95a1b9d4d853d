"""Simplifies ops that only move elements: of constants, of each other, or not at all."""

from __future__ import annotations

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.elements import first
from ipujax.compiler.ir import Op, Shape, Value, Writer, constant, splat
from ipujax.compiler.ir.rewriter import Rule

#: Constants with up to this many elements are computed here instead of on the device.
MAX_FOLDED_ELEMENTS = 4096


def _foldable(value: Value) -> bool:
    return value.const is not None and (value.is_splat or value.num_elements <= MAX_FOLDED_ELEMENTS)


def reshaped(w: Writer, value: Value, shape: Shape) -> Value:
    """The value in another shape, by an op if necessary."""
    return _reshaped(value, shape) or w.reshape(value, shape)


def _reshaped(value: Value, shape: Shape) -> Value | None:
    if value.shape == shape:
        return value
    if value.const is not None:
        if value.is_splat:
            return splat(first(value.const), shape, value.dtype)
        return constant(value.const.reshape(shape), value.dtype)
    if value.op is not None and value.op.name == "reshape" and value.op.operands[0].shape == shape:
        return value.op.operands[0]
    return None


def _reshape(w: Writer, op: Op) -> list[Value] | None:
    (operand,), shape = op.operands, op.results[0].shape
    found = _reshaped(operand, shape)
    if found is None and operand.op is not None and operand.op.name == "reshape":
        op.operands = operand.op.operands
    return [found] if found is not None else None


def _broadcast_in_dim(w: Writer, op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    dims = op.attrs["broadcast_dimensions"]
    if operand.const is not None:
        if operand.is_splat:
            return [splat(first(operand.const), result.shape, result.dtype)]
        if result.num_elements <= MAX_FOLDED_ELEMENTS:
            return [constant(_broadcast_array(operand.const, dims, result.shape), result.dtype)]
    if operand.shape == result.shape and dims == tuple(range(len(dims))):
        return [operand]
    kept, producer = None, operand.op
    if producer is not None and producer.name == "broadcast_in_dim":
        kept = producer.attrs["broadcast_dimensions"]
    elif producer is not None and producer.name == "reshape":
        kept = _dims_without_ones(producer.operands[0].shape, operand.shape)
    if producer is not None and kept is not None:
        op.operands = producer.operands
        op.attrs = {**op.attrs, "broadcast_dimensions": tuple(dims[dim] for dim in kept)}
        return _broadcast_in_dim(w, op)
    if operand.num_elements == result.num_elements and dims == tuple(sorted(dims)):
        op.name, op.attrs = "reshape", {}
    return None


def _dims_without_ones(short: Shape, long: Shape) -> list[int] | None:
    """The places of `short`'s dimensions in `long`, if that only adds dimensions of size 1."""
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


def _transpose(w: Writer, op: Op) -> list[Value] | None:
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
        return _transpose(w, op)
    return None


def _convert(w: Writer, op: Op) -> list[Value] | None:
    if op.operands[0].dtype == op.results[0].dtype:
        return [op.operands[0]]
    return None


def _slice(w: Writer, op: Op) -> list[Value] | None:
    attrs = op.attrs
    bounds = attrs["start_indices"], attrs["limit_indices"], attrs["strides"]
    found = _sliced(op.operands[0], op.results[0].shape, *bounds)
    return [found] if found is not None else None


def sliced(w: Writer, value: Value, begin: Shape, end: Shape) -> Value:
    """The elements from `begin` to `end`, by an op if necessary."""
    shape = tuple(e - b for b, e in zip(begin, end, strict=True))
    found = _sliced(value, shape, begin, end, (1,) * len(begin))
    return found or w.slice(value, begin, end)


def _sliced(value: Value, shape: Shape, begin: Shape, end: Shape, strides: Shape) -> Value | None:
    if value.shape == shape:
        return value
    if value.const is not None and _foldable(value):
        return constant(value.const[tuple(map(slice, begin, end, strides))], value.dtype)
    return None


def _concatenate(w: Writer, op: Op) -> list[Value] | None:
    axis = op.attrs["dimension"]
    op.operands = [value for value in op.operands if value.shape[axis]] or op.operands[:1]
    if len(op.operands) == 1:
        return [op.operands[0]]
    result = op.results[0]
    if result.num_elements <= MAX_FOLDED_ELEMENTS and all(_foldable(v) for v in op.operands):
        arrays = [v.const for v in op.operands if v.const is not None]
        return [constant(np.concatenate(arrays, axis), result.dtype)]
    return None


def _pad(w: Writer, op: Op) -> list[Value] | None:
    attrs = op.attrs
    edges = (*attrs["edge_padding_low"], *attrs["edge_padding_high"], *attrs["interior_padding"])
    return None if any(edges) else [op.operands[0]]


def _reverse(w: Writer, op: Op) -> list[Value] | None:
    operand = op.operands[0]
    return [operand] if all(operand.shape[dim] == 1 for dim in op.attrs["dimensions"]) else None


def _bitcast(w: Writer, op: Op) -> list[Value] | None:
    operand, result = op.operands[0], op.results[0]
    if (operand.shape, operand.dtype) == (result.shape, result.dtype):
        return [operand]
    # A view of a half keeps every NaN's bits, which arithmetic on it would not.
    if operand.shape == result.shape and "f16" not in (operand.dtype, result.dtype):
        op.name = "bitcast"
    return None


def _iota(w: Writer, op: Op) -> list[Value] | None:
    result, axis = op.results[0], op.attrs["iota_dimension"]
    length = result.shape[axis]
    if length <= 1 or result.num_elements == 0:
        return [splat(np.zeros((), DTYPES[result.dtype].numpy), result.shape, result.dtype)]
    if length > MAX_FOLDED_ELEMENTS:
        return None
    line = constant(np.arange(length).astype(DTYPES[result.dtype].numpy), result.dtype)
    if len(result.shape) == 1:
        return [line]
    return [w.broadcast(line, (axis,), result.shape)]


def _dynamic_slice(w: Writer, op: Op) -> list[Value] | None:
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
    return [w.slice(operand, begin, end)]


def _dynamic_update_slice(w: Writer, op: Op) -> list[Value] | None:
    return [op.operands[1]] if op.operands[0].shape == op.operands[1].shape else None


def _optimization_barrier(w: Writer, op: Op) -> list[Value] | None:
    """Lets constants among other operands pass, so that recomputation simplifies alike.

    A barrier of only constants stays: someone hides them on purpose.
    """
    late = [value for value in op.operands if value.const is None]
    if not late or len(late) == len(op.operands):
        return None
    barrier = Op(op.name, late, op.attrs, op.source)
    passed = iter([barrier.add_result(value.shape, value.dtype) for value in late])
    w.ops.append(barrier)
    return [next(passed) if value.const is None else value for value in op.operands]


RULES: dict[str, Rule] = {
    "bitcast_convert": _bitcast,
    "broadcast_in_dim": _broadcast_in_dim,
    "concatenate": _concatenate,
    "convert": _convert,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "iota": _iota,
    "optimization_barrier": _optimization_barrier,
    "pad": _pad,
    "reshape": _reshape,
    "reverse": _reverse,
    "slice": _slice,
    "transpose": _transpose,
}
