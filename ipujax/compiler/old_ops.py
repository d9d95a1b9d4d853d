"""Replaces ops of older front ends by the ops that define them.

Before:  %2 = dot(%0, %1)        After:  %2 = dot_general(%0, %1) {contracting 1 x 0}
Definitions follow the StableHLO specification; statistics of batch norms are computed in the
operand's type, as in XLA.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from ipujax.compiler.ir import Op, Shape, Term, Value, Writer, number, where
from ipujax.errors import InvalidProgramError


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
    """Takes one operand or two; sums over labels of only one operand before the product."""
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
    """Replaces `...` by unused capitals, one for each dimension, aligned at the last."""
    spare = [chr(c) for c in range(ord("A"), ord("Z") + 1) if chr(c) not in "".join(labels)]
    counts = [
        len(shape) - len(text.replace("...", ""))
        for text, shape in zip(labels[:-1], shapes, strict=True)
        if "..." in text
    ]
    most = max(counts, default=0)
    found, number = [], iter([*counts, most])
    for text in labels:
        dots = "".join(spare[most - next(number) : most]) if "..." in text else ""
        found.append(text.replace("...", dots))
    return found


def _only(w: Writer, text: str, value: Value, wanted: set[str]) -> tuple[str, Value]:
    """Takes diagonals of repeated labels, and sums over labels that appear nowhere else."""
    for label in dict.fromkeys(text):
        while text.count(label) > 1:
            first, second = text.index(label), text.rindex(label)
            ramps = [
                w.term(w.op("iota", [], {"iota_dimension": dim}, shape=value.shape, dtype="i32"))
                for dim in (first, second)
            ]
            on_diagonal = ramps[0].eq(ramps[1])
            value = _sum(w, where(on_diagonal, w.term(value), 0).value, (second,))
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
    """A gather whose indices are clamped; the first `batch_dims` dimensions are batched."""
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


def _of_features(w: Writer, op: Op, value: Value) -> Term:
    """One number per feature, broadcast to the operand's shape."""
    return w.term(w.broadcast(value, [op.attrs["feature_index"]], op.operands[0].shape))


def _normalised(w: Writer, op: Op, mean: Value, variance: Value) -> tuple[Term, Term]:
    """(x - mean) and 1 / sqrt(variance + epsilon), both in x's shape."""
    around = w.term(op.operands[0]) - _of_features(w, op, mean)
    scale = (w.term(variance) + op.attrs["epsilon"]).unary("rsqrt")
    return around, _of_features(w, op, scale.value)


def _batch_norm_inference(w: Writer, op: Op) -> list[Value]:
    _, scale, offset, mean, variance = op.operands
    around, factor = _normalised(w, op, mean, variance)
    scaled = around * factor * _of_features(w, op, scale)
    return [(scaled + _of_features(w, op, offset)).value]


def _others(op: Op) -> tuple[list[int], int]:
    """The dimensions that statistics run over, and their number of elements."""
    shape = op.operands[0].shape
    dims = [dim for dim in range(len(shape)) if dim != op.attrs["feature_index"]]
    return dims, math.prod(shape[dim] for dim in dims)


def _mean(w: Writer, value: Value, dims: list[int], count: int) -> Value:
    return (w.term(_sum(w, value, dims)) / count).value


def _batch_norm_training(w: Writer, op: Op) -> list[Value]:
    x, scale, offset = op.operands
    dims, count = _others(op)
    mean = _mean(w, x, dims, count)
    around = w.term(x) - _of_features(w, op, mean)
    variance = _mean(w, (around * around).value, dims, count)
    inference = Op("batch_norm_inference", [x, scale, offset, mean, variance], op.attrs, op.source)
    return [*_batch_norm_inference(w, inference), mean, variance]


def _batch_norm_grad(w: Writer, op: Op) -> list[Value]:
    _, scale, mean, variance, gradient = op.operands
    dims, count = _others(op)
    around, factor = _normalised(w, op, mean, variance)
    unit = around * factor
    grad_scale = _sum(w, (w.term(gradient) * unit).value, dims)
    grad_offset = _sum(w, gradient, dims)

    def shared(value: Value) -> Term:
        return _of_features(w, op, (w.term(value) / count).value)

    left = w.term(gradient) - shared(grad_offset) - unit * shared(grad_scale)
    return [(_of_features(w, op, scale) * factor * left).value, grad_scale, grad_offset]


#: Writes the ops that define an op; returns the values that replace its results.
Definition = Callable[[Writer, Op], list[Value] | None]

#: For each old op: what it becomes, in the generated table's words, and its definition.
OLD_OPS: dict[str, tuple[str, Definition]] = {
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

#: Ops that take shapes as values; refinement makes them static if these are constants.
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


def _dimension_size(w: Writer, op: Op) -> list[Value]:
    return [number(op.operands[0].shape[op.attrs["dimension"]], (), "i32")]


def _real_dynamic_slice(w: Writer, op: Op) -> list[Value] | None:
    """A window with the size of the result's type; chlo.scan takes each element this way."""
    operand, starts, _, strides = op.operands
    shape = op.results[0].shape
    if strides.const is None or not (strides.const == 1).all():
        return None
    scalars = [w.reshape(w.slice(starts, (d,), (d + 1,)), ()) for d in range(len(shape))]
    return [w.op("dynamic_slice", [operand, *scalars], {"slice_sizes": shape}, shape=shape)]


#: Ops of `DYNAMIC` that become static ops if the types of their values have fixed shapes; the
#: definition returns None if only refinement can tell.
STATIC: dict[str, Definition] = {
    "get_dimension_size": _dimension_size,
    "real_dynamic_slice": _real_dynamic_slice,
}
