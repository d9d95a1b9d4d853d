"""Ops that only move elements: free views, or one copy if arrays are joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, broadcast_to
from ipujax.compiler.rules.elementwise import poplar_type
from ipujax.compiler.rules.registry import rule

_VIEW: dict[str, Any] = {"view": True, "moves": True, "complex": "parts", "integers64": True}
declare("broadcast_in_dim", in_host=True, **_VIEW)
declare("reshape", "transpose", permutes=True, in_host=True, **_VIEW)
declare("reverse", along=("dimensions",), **_VIEW)
declare(
    "concatenate", along=("dimension",), moves=True, cheap=True, complex="parts", integers64=True
)
declare("pad", moves=True, complex="parts")
declare(
    "optimization_barrier",
    partition="each",
    moves=True,
    unique=True,
    complex="pairs",
    integers64=True,
)
declare("bitcast_convert")


@rule("reshape")
def reshape(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    return [builder.tensor(op.operands[0]).reshape(list(op.results[0].shape))]


@rule("optimization_barrier")
def optimization_barrier(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    """Keeps values apart for the compiler; the elements are the same."""
    return [builder.tensor(v) if v.dtype != "token" else None for v in op.operands]


@rule("transpose")
def transpose(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    return [builder.tensor(op.operands[0]).dimShuffle(list(op.attrs["permutation"]))]


@rule("broadcast_in_dim")
def broadcast_in_dim(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Dimensions in the order of the result, new ones of size 1, then repeated."""
    tensor, shape = builder.tensor(op.operands[0]), op.results[0].shape
    dims = op.attrs["broadcast_dimensions"]
    order = sorted(range(len(dims)), key=dims.__getitem__)
    if order != list(range(len(dims))):
        tensor = tensor.dimShuffle(order)
    expanded = [1] * len(shape)
    for axis, dim in enumerate(dims):
        expanded[dim] = op.operands[0].shape[axis]
    return [broadcast_to(tensor.reshape(expanded), shape)]


@rule("reverse")
def reverse(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    tensor = builder.tensor(op.operands[0])
    for dim in op.attrs["dimensions"]:
        tensor = tensor.reverse(dim)
    return [tensor]


@rule("concatenate")
def concatenate(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Each part is copied to its place: readers then see one array."""
    result, axis, debug = op.results[0], op.attrs["dimension"], builder.debug(op)
    whole = builder.variable(builder.type_of(result), result.shape, debug)
    begin = 0
    for value in op.operands:
        end = begin + value.shape[axis]
        builder.copy(builder.tensor(value), whole.slice(begin, end, axis), debug)
        begin = end
    return [whole]


@rule("pad")
def pad(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    tensor, value = builder.operands(op)
    attrs = op.attrs
    padded = ipu.popx.pad(
        builder.graph,
        tensor,
        value,
        list(attrs["edge_padding_low"]),
        list(attrs["edge_padding_high"]),
        list(attrs["interior_padding"]),
        builder.program,
        builder.debug(op),
    )
    return [padded]


@rule("bitcast_convert")
def bitcast_convert(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Between sizes, a wide element is the sum of its shifted narrow ones, lowest first."""
    source, target = op.operands[0], op.results[0]
    (tensor,) = builder.operands(op)
    if len(source.shape) == len(target.shape):
        return [_recast(builder, op, tensor, source.dtype, target.dtype)]
    if len(source.shape) < len(target.shape):
        return [_split(builder, op, tensor, source.dtype, target.dtype)]
    return [_join(builder, op, tensor, target.dtype, source.dtype)]


_UNSIGNED = {1: "ui8", 2: "ui16", 4: "ui32", 8: "ui64"}


def _bits_type(dtype: str) -> ipu.Type:
    return poplar_type(_UNSIGNED[DTYPES[dtype].size])


def _viewed(tensor: ipu.Tensor, dtype: str, target: ipu.Type) -> ipu.Tensor:
    """The same bits; bfloat16 is held in float32, and converted where it is computed."""
    return tensor if dtype == "bf16" else tensor.reinterpret(target)


def _recast(builder: Builder, op: Op, tensor: ipu.Tensor, source: str, target: str) -> ipu.Tensor:
    """Casts between types of the same size, without computing in either."""
    e, debug = ipu.popx.expr, builder.debug(op)
    if source == "bf16":
        tensor, source = builder.each(tensor, e.ToBFloat16, debug), "ui16"
    if target == "bf16":
        return builder.each(tensor.reinterpret(_bits_type(source)), e.FromBFloat16, debug)
    return tensor.reinterpret(builder.type_of(op.results[0]))


def _word(wide: str) -> ipu.Type:
    """The unsigned type in which the bits of a wide element are combined."""
    return ipu.poplar.UNSIGNED_LONGLONG if DTYPES[wide].size == 8 else ipu.poplar.UNSIGNED_INT


def _split(builder: Builder, op: Op, tensor: ipu.Tensor, wide: str, narrow: str) -> ipu.Tensor:
    e, debug = ipu.popops.expr, builder.debug(op)
    size = DTYPES[narrow].size
    word = _word(wide)
    x = e.PlaceHolder(1)
    bits = e.Cast(ipu.popx.expr.ToBFloat16(x) if wide == "bf16" else x, word)
    mask = e.Const(word, (1 << 8 * size) - 1)
    parts = []
    for index in range(DTYPES[wide].size // size):
        shifted = e.Shr(bits, e.Const(word, 8 * size * index))
        part = e.Cast(e.BitwiseAnd(shifted, mask), _bits_type(narrow))
        parts.append(ipu.popx.expr.FromBFloat16(part) if narrow == "bf16" else part)
    result = op.results[0]
    held = builder.type_of(result) if narrow == "bf16" else _bits_type(narrow)
    whole = builder.variable(held, result.shape, debug)
    axis = len(result.shape) - 1
    views = [_viewed(tensor, wide, _bits_type(wide))]
    for index, narrow_tensor in enumerate(builder.map(parts, views, debug)):
        target = whole.slice(index, index + 1, axis).squeeze([axis])
        builder.copy(narrow_tensor, target, debug)
    return _viewed(whole, narrow, builder.type_of(result))


def _join(builder: Builder, op: Op, tensor: ipu.Tensor, wide: str, narrow: str) -> ipu.Tensor:
    e, debug = ipu.popops.expr, builder.debug(op)
    size, axis = DTYPES[narrow].size, len(op.operands[0].shape) - 1
    views, word = [], _word(wide)
    tensor = _viewed(tensor, narrow, _bits_type(narrow))
    whole = e.Const(word, 0)
    for index in range(op.operands[0].shape[axis]):
        views.append(tensor.slice(index, index + 1, axis).squeeze([axis]))
        x = e.PlaceHolder(index + 1)
        bits = e.Cast(ipu.popx.expr.ToBFloat16(x) if narrow == "bf16" else x, word)
        shifted = e.Shl(bits, e.Const(word, 8 * size * index))
        whole = e.BitwiseOr(whole, shifted) if index else shifted
    if DTYPES[wide].size < 4:
        whole = e.Cast(whole, _bits_type(wide))
    if wide == "bf16":
        whole = ipu.popx.expr.FromBFloat16(whole)
    (joined,) = builder.map([whole], views, debug)
    return _viewed(joined, wide, builder.type_of(op.results[0]))
