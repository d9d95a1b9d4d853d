"""Ops of older front ends, read as the ops that define them.

Before:  %2 = dot(%0, %1)        After:  %2 = dot_general(%0, %1) {contracting 1 x 0}
Each definition is the one of the StableHLO specification; statistics of batch norms are computed
in the operand's type, as XLA does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from ipujax.compiler.ir import Op, Shape, Value, Writer, number, splat
from ipujax.errors import InvalidProgramError


def _all(scalar: float, like: Value) -> Value:
    """The same number everywhere, in the shape and dtype of `like`."""
    return number(scalar, like.shape, like.dtype)


def _sum(w: Writer, value: Value, dims: Sequence[int]) -> Value:
    return w.reduce(value, dims, "add", 0)


def _broadcast(w: Writer, op: Op) -> list[Value]:
    shape, new = op.results[0].shape, len(op.attrs["broadcast_sizes"])
    return [w.broadcast(op.operands[0], range(new, len(shape)), shape)]


def _dot(w: Writer, op: Op) -> list[Value]:
    left, _ = op.operands
    numbers = _contraction((), (), (len(left.shape) - 1,), (0,))
    return [_product(w, op, op.operands, op.results[0].shape, numbers)]


def _contraction(
    left_batch: Sequence[int],
    right_batch: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
) -> SimpleNamespace:
    return SimpleNamespace(
        lhs_batching_dimensions=tuple(left_batch),
        rhs_batching_dimensions=tuple(right_batch),
        lhs_contracting_dimensions=tuple(left),
        rhs_contracting_dimensions=tuple(right),
    )


def _product(
    w: Writer, op: Op, operands: Sequence[Value], shape: Shape, numbers: SimpleNamespace
) -> Value:
    attrs: dict[str, Any] = {"dot_dimension_numbers": numbers}
    if "precision_config" in op.attrs:
        attrs["precision_config"] = op.attrs["precision_config"]
    return w.op("dot_general", operands, attrs, shape=shape, dtype=op.results[0].dtype)


def _einsum(w: Writer, op: Op) -> list[Value]:
    """One operand or two; labels of one operand alone are summed before the product."""
    inputs, _, output = op.attrs["einsum_config"].replace(" ", "").partition("->")
    labels = _without_dots([*inputs.split(","), output], [v.shape for v in op.operands])
    *sides, wanted = labels
    values: list[Value] = []
    for index, (text, value) in enumerate(zip(sides, op.operands, strict=True)):
        others = set(wanted).union(*(other for j, other in enumerate(sides) if j != index))
        sides[index], reduced = _only(w, text, value, others)
        values.append(reduced)
    text, made = sides[0], values[0]
    if len(sides) == 2:
        text, made = _pair(w, op, sides, values, wanted)
    if sorted(text) != sorted(wanted):
        raise InvalidProgramError(
            f"[read] needs an einsum whose result is labelled by its operands; got "
            f"{op.attrs['einsum_config']!r}. Name each label of the result in an operand."
        )
    order = tuple(text.index(label) for label in wanted)
    if order != tuple(range(len(order))):
        shape = tuple(made.shape[dim] for dim in order)
        made = w.op("transpose", [made], {"permutation": order}, shape=shape)
    return [made]


def _without_dots(labels: list[str], shapes: Sequence[Shape]) -> list[str]:
    """Capitals that no label uses for the dimensions of `...`, aligned at the last one."""
    spare = [chr(c) for c in range(ord("A"), ord("Z") + 1) if chr(c) not in "".join(labels)]
    counts = [
        len(shape) - len(text.replace("...", ""))
        for text, shape in zip(labels[:-1], shapes, strict=True)
        if "..." in text
    ]
    counts.append(max(counts, default=0))
    found, number = [], iter(counts)
    for text in labels:
        found.append(text.replace("...", "".join(spare[: next(number)])) if "..." in text else text)
    return found


def _only(w: Writer, text: str, value: Value, wanted: set[str]) -> tuple[str, Value]:
    """Diagonals of repeated labels, and sums over labels that nobody else has."""
    for label in dict.fromkeys(text):
        while text.count(label) > 1:
            first, second = text.index(label), text.rindex(label)
            ramps = [
                w.op("iota", [], {"iota_dimension": dim}, shape=value.shape, dtype="i32")
                for dim in (first, second)
            ]
            attrs = {"comparison_direction": "EQ"}
            equal = w.op("compare", ramps, attrs, dtype="i1")
            value = w.op("select", [equal, value, _all(0, value)], like=value)
            value = _sum(w, value, (second,))
            text = text[:second] + text[second + 1 :]
    dims = tuple(dim for dim, label in enumerate(text) if label not in wanted)
    return "".join(label for label in text if label in wanted), _sum(w, value, dims)


def _pair(
    w: Writer, op: Op, sides: list[str], values: list[Value], wanted: str
) -> tuple[str, Value]:
    left, right = sides
    both = [label for label in left if label in right]
    batch = [label for label in both if label in wanted]
    inner = [label for label in both if label not in wanted]
    free = [[label for label in side if label not in both] for side in sides]
    numbers = _contraction(
        *([side.index(label) for label in batch] for side in sides),
        *([side.index(label) for label in inner] for side in sides),
    )
    size = {
        label: n
        for side, value in zip(sides, values, strict=True)
        for label, n in zip(side, value.shape, strict=True)
    }
    text = "".join([*batch, *free[0], *free[1]])
    shape = tuple(size[label] for label in text)
    return text, _product(w, op, values, shape, numbers)


def _torch_index_select(w: Writer, op: Op) -> list[Value]:
    """A gather whose indices are clamped; the first `batch_dims` dimensions go together."""
    operand, index = op.operands
    dim, batch = op.attrs["dim"], op.attrs["batch_dims"]
    inside = len(index.shape) - batch  # dimensions of each batch's index
    rank = len(operand.shape) - 1 + inside
    placed = {*range(batch), *range(dim, dim + inside)}
    sizes = [1 if d < batch or d == dim else n for d, n in enumerate(operand.shape)]
    numbers = SimpleNamespace(
        offset_dims=tuple(d for d in range(rank) if d not in placed),
        collapsed_slice_dims=(dim,),
        operand_batching_dims=tuple(range(batch)),
        start_indices_batching_dims=tuple(range(batch)),
        start_index_map=(dim,),
        index_vector_dim=len(index.shape),
    )
    attrs = {"dimension_numbers": numbers, "slice_sizes": tuple(sizes)}
    return [w.op("gather", op.operands, attrs, shape=op.results[0].shape)]


def _normalised(w: Writer, op: Op, mean: Value, variance: Value) -> tuple[Value, Value]:
    """(x - mean) and 1 / sqrt(variance + epsilon), both in x's shape."""
    x, feature = op.operands[0], op.attrs["feature_index"]
    around = w.op("subtract", [x, w.broadcast(mean, [feature], x.shape)])
    stable = w.op("add", [variance, _all(op.attrs["epsilon"], variance)])
    scale = w.op("rsqrt", [stable])
    return around, w.broadcast(scale, [feature], x.shape)


def _batch_norm_inference(w: Writer, op: Op) -> list[Value]:
    x, scale, offset, mean, variance = op.operands
    feature = [op.attrs["feature_index"]]
    around, factor = _normalised(w, op, mean, variance)
    unit = w.op("multiply", [around, factor])
    scaled = w.op("multiply", [unit, w.broadcast(scale, feature, x.shape)])
    return [w.op("add", [scaled, w.broadcast(offset, feature, x.shape)])]


def _others(op: Op) -> tuple[list[int], int]:
    """Dimensions that statistics run over, and how many elements that is."""
    shape = op.operands[0].shape
    dims = [dim for dim in range(len(shape)) if dim != op.attrs["feature_index"]]
    return dims, math.prod(shape[dim] for dim in dims)


def _mean(w: Writer, value: Value, dims: list[int], count: int) -> Value:
    total = _sum(w, value, dims)
    return w.op("divide", [total, _all(count, total)])


def _batch_norm_training(w: Writer, op: Op) -> list[Value]:
    x, scale, offset = op.operands
    dims, count = _others(op)
    mean = _mean(w, x, dims, count)
    around = w.op("subtract", [x, w.broadcast(mean, [op.attrs["feature_index"]], x.shape)])
    variance = _mean(w, w.op("multiply", [around, around]), dims, count)
    inference = Op("batch_norm_inference", [x, scale, offset, mean, variance], op.attrs, op.source)
    return [*_batch_norm_inference(w, inference), mean, variance]


def _batch_norm_grad(w: Writer, op: Op) -> list[Value]:
    x, scale, mean, variance, gradient = op.operands
    feature = [op.attrs["feature_index"]]
    dims, count = _others(op)
    around, factor = _normalised(w, op, mean, variance)
    unit = w.op("multiply", [around, factor])
    grad_scale = _sum(w, w.op("multiply", [gradient, unit]), dims)
    grad_offset = _sum(w, gradient, dims)

    def shared(value: Value) -> Value:
        part = w.op("divide", [value, _all(count, value)])
        return w.broadcast(part, feature, x.shape)

    centred = w.op("subtract", [gradient, shared(grad_offset)])
    along_unit = w.op("multiply", [unit, shared(grad_scale)])
    left = w.op("subtract", [centred, along_unit])
    outer = w.op("multiply", [w.broadcast(scale, feature, x.shape), factor])
    return [w.op("multiply", [outer, left]), grad_scale, grad_offset]


#: Each old op: what it becomes, for the generated table, and how.
OLD_OPS: dict[str, tuple[str, Callable[[Writer, Op], list[Value]]]] = {
    "batch_norm_grad": ("arithmetic and reductions", _batch_norm_grad),
    "batch_norm_inference": ("arithmetic", _batch_norm_inference),
    "batch_norm_training": ("arithmetic and reductions", _batch_norm_training),
    "broadcast": ("broadcast_in_dim", _broadcast),
    "dot": ("dot_general", _dot),
    "einsum": ("reductions and a dot_general", _einsum),
    "torch_index_select": ("gather", _torch_index_select),
    "unary_einsum": ("reductions and a transpose", _einsum),
}


DYNAMIC_REASON = "shapes must be known when compiling; an IPU program has fixed shapes"

#: Ops that take shapes as values: where those are constants, refinement makes them static ops.
DYNAMIC: dict[str, str] = {
    "dynamic_broadcast_in_dim": "broadcast_in_dim",
    "dynamic_conv": "convolution",
    "dynamic_gather": "gather",
    "dynamic_iota": "iota",
    "dynamic_pad": "pad",
    "dynamic_reshape": "reshape",
    "get_dimension_size": "a constant",
    "real_dynamic_slice": "slice",
}


Form = tuple[list[Op], list[Value]]


def _dimension_size(op: Op) -> Form | None:
    size = np.asarray(op.operands[0].shape[op.attrs["dimension"]], np.int32)
    return [], [splat(size, (), "i32")]


def _real_dynamic_slice(op: Op) -> Form | None:
    """A window whose size its result's type tells; chlo.scan takes each element so."""
    operand, starts, _, strides = op.operands
    shape = op.results[0].shape
    if strides.const is None or not (strides.const == 1).all():
        return None
    w = Writer([], op.source)
    scalars = []
    for dim in range(len(shape)):
        scalars.append(w.reshape(w.slice(starts, (dim,), (dim + 1,)), ()))
    window = w.op("dynamic_slice", [operand, *scalars], {"slice_sizes": shape}, shape=shape)
    return w.ops, [window]


#: Of `DYNAMIC`, those that are static ops wherever the types of their values have fixed shapes;
#: None where only refinement can tell.
STATIC: dict[str, Callable[[Op], Form | None]] = {
    "get_dimension_size": _dimension_size,
    "real_dynamic_slice": _real_dynamic_slice,
}


def expand(op: Op) -> Form:
    """The ops that define an old op, and the values that take its results' places."""
    writer = Writer([], op.source)
    results = OLD_OPS[op.name][1](writer, op)
    return writer.ops, results
