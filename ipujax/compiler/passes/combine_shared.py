"""Combines products that share an operand, and lookups that share a table: one plan for all.

Before:  %2 = dot_general(%0, %1)    After:  %5 = concatenate(%1, %4)
         %3 = exponential(%2)                %6 = dot_general(%0, %5)
         %4 = dot_general(%0, %1)            %2 = slice(%6)
                                             %4 = slice(%6)
                                             %3 = exponential(%2)
Inputs of the other ops are computed first. Ops that `jax.checkpoint` recomputes are only combined
with each other. Both are off by default: the names and meaning are those of IPUConfig's
`optimizations.combine_matmuls` and `combine_embedding_lookups` in Graphcore's TensorFlow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from types import SimpleNamespace
from typing import NamedTuple

from ipujax.compiler.ir import (
    Block,
    Op,
    Program,
    Shape,
    Value,
    Writer,
    has_effect,
    inputs_of,
    walk_blocks,
)

LEFT, RIGHT = 0, 1
#: Part of the names of recomputed ops.
REMATTED = "rematted_computation"


class _Share(NamedTuple):
    """One way to combine an op with others.

    Attributes:
        key: equal for ops that can be combined.
        other: index of the operand that is not shared.
    """

    key: Hashable
    other: int


#: Joins the ops of a group: appends to the writer, and makes their results slices of the new one.
_Join = Callable[[Writer, list[Op], int], None]


def combine_shared(program: Program) -> Program:
    """Rewrites all blocks where the options say so."""
    for block in walk_blocks(program.main):
        _combine(program, block, "dot_general", "combine_matmuls", _product_shares, _join_products)
        _combine(program, block, "gather", "combine_embedding_lookups", _table_share, _join_lookups)
    return program


def _combine(
    program: Program,
    block: Block,
    name: str,
    option: str,
    shares_of: Callable[[Op], Sequence[_Share]],
    join: _Join,
) -> None:
    found = {
        op: shares_of(op)
        for op in block.ops
        if op.name == name and getattr(program.options.of(op), option)
    }
    counts = Counter(share.key for shares in found.values() for share in shares)
    groups: dict[Hashable, list[Op]] = {}
    others: dict[Hashable, int] = {}
    for op, shares in found.items():
        if shares:
            best = max(shares, key=lambda share: counts[share.key])
            groups.setdefault(best.key, []).append(op)
            others[best.key] = best.other
    for key, members in groups.items():
        while len(members) > 1:
            order = _order(block.ops, members)
            if len(order.joined) > 1:
                block.ops = order.before
                join(Writer(block.ops, members[0].source), order.joined, others[key])
                block.ops += order.after
            members = [op for op in members if op not in order.joined]


class _Order(NamedTuple):
    """A block's ops around those that are joined."""

    before: list[Op]
    joined: list[Op]
    after: list[Op]


def _order(ops: list[Op], members: Sequence[Op]) -> _Order:
    """Joins the first member with members that do not depend on it or on each other.

    Ops that depend on none of these come before, others after. Ops with effects keep their order.
    """
    at = ops.index(members[0])
    known = set(members)
    before, joined, after = ops[:at], [ops[at]], list[Op]()
    late = set(ops[at].results)
    effect_is_late = False
    for number, op in enumerate(ops[at + 1 :], at + 1):
        if len(joined) == len(members):
            return _Order(before, joined, [*after, *ops[number:]])
        acts = has_effect(op)
        is_late = any(value in late for value in inputs_of(op)) or (acts and effect_is_late)
        effect_is_late |= acts and is_late
        if is_late:
            late.update(op.results)
            after.append(op)
        elif op in known:
            late.update(op.results)
            joined.append(op)
        else:
            before.append(op)
    return _Order(before, joined, after)


def _attributes(op: Op, *without: str) -> Hashable:
    named = ((name, str(item)) for name, item in op.attrs.items() if name not in without)
    source = op.source
    again = REMATTED in source.name
    return tuple(sorted(named)), op.results[0].dtype, source.options, source.placed, again


def _become_slices(w: Writer, combined: Value, ops: list[Op], dim: int, sizes: list[int]) -> None:
    """The ops' results are views of the combined one, cut along a dimension."""
    begin = [0] * len(combined.shape)
    end = list(combined.shape)
    for op, size in zip(ops, sizes, strict=True):
        end[dim] = begin[dim] + size
        part = w.slice(combined, begin, end)
        begin[dim] = end[dim]
        result = op.results[0]
        if part.shape != result.shape:
            part = w.reshape(part, result.shape)
        assert part.op is not None
        part.op.results[0] = result
        result.op, result.index = part.op, 0


# Products ----------------------------------------------------------------------------------------


def _free(op: Op, side: int) -> list[int]:
    numbers = op.attrs["dot_dimension_numbers"]
    taken = (
        (*numbers.lhs_batching_dimensions, *numbers.lhs_contracting_dimensions)
        if side == LEFT
        else (*numbers.rhs_batching_dimensions, *numbers.rhs_contracting_dimensions)
    )
    return [dim for dim in range(len(op.operands[side].shape)) if dim not in taken]


def _product_shares(op: Op) -> list[_Share]:
    """Shares for either operand, if the other has a dimension along which it can be joined."""
    shares = []
    for other in (RIGHT, LEFT):
        value, free = op.operands[other], _free(op, other)
        if not free or not op.results[0].num_elements:
            continue
        rest = _without(value.shape, free[0])
        kind = (other, op.operands[1 - other], rest, value.dtype, free[0])
        shares.append(_Share((kind, _attributes(op)), other))
    return shares


def _without(shape: Shape, dim: int) -> Shape:
    return (*shape[:dim], *shape[dim + 1 :])


def _join_products(w: Writer, ops: list[Op], other: int) -> None:
    first = ops[0]
    free = _free(first, other)[0]
    sizes = [op.operands[other].shape[free] for op in ops]
    joined = _joined(w, [op.operands[other] for op in ops], free)
    operands = [first.operands[LEFT], joined] if other == RIGHT else [joined, first.operands[RIGHT]]
    batch = len(first.attrs["dot_dimension_numbers"].lhs_batching_dimensions)
    dim = batch + (len(_free(first, LEFT)) if other == RIGHT else 0)
    shape = list(first.results[0].shape)
    shape[dim] = sum(sizes)
    dtype = first.results[0].dtype
    product = w.op("dot_general", operands, dict(first.attrs), shape=tuple(shape), dtype=dtype)
    _become_slices(w, product, ops, dim, sizes)


def _joined(w: Writer, values: list[Value], dim: int) -> Value:
    shape = list(values[0].shape)
    shape[dim] = sum(value.shape[dim] for value in values)
    return w.op("concatenate", values, {"dimension": dim}, shape=tuple(shape))


# Lookups -----------------------------------------------------------------------------------------


def _table_share(op: Op) -> list[_Share]:
    """A share for the table, if in the result index dimensions come first and windows last."""
    numbers, (table, indices) = op.attrs["dimension_numbers"], op.operands
    rank, leading = len(op.results[0].shape), len(indices.shape) - 1
    has_batches = numbers.operand_batching_dims or numbers.start_indices_batching_dims
    in_order = tuple(numbers.offset_dims) == tuple(range(leading, rank))
    if has_batches or numbers.index_vector_dim != leading or not in_order:
        return []
    if not indices.num_elements or not op.results[0].num_elements:
        return []
    moved = (tuple(numbers.collapsed_slice_dims), tuple(numbers.start_index_map))
    kind = (table, moved, indices.dtype, indices.shape[-1])
    return [_Share((kind, _attributes(op, "dimension_numbers", "indices_are_sorted")), 1)]


def _join_lookups(w: Writer, ops: list[Op], other: int) -> None:
    first = ops[0]
    table, width = first.operands[0], first.operands[1].shape[-1]
    counts = [op.operands[other].num_elements // width for op in ops]
    flat = [w.reshape(op.operands[1], (n, width)) for op, n in zip(ops, counts, strict=True)]
    window = first.results[0].shape[len(first.operands[1].shape) - 1 :]
    numbers = SimpleNamespace(**vars(first.attrs["dimension_numbers"]))
    numbers.index_vector_dim, numbers.offset_dims = 1, list(range(1, 1 + len(window)))
    attrs = {**first.attrs, "dimension_numbers": numbers, "indices_are_sorted": False}
    shape = (sum(counts), *window)
    rows = w.op("gather", [table, _joined(w, flat, 0)], attrs, shape=shape)
    _become_slices(w, rows, ops, 0, counts)
