"""Combines small collectives: one start and one set of syncs for all.

Before:  %2 = all_reduce(%0) {add}      After:  %3 = multiply(%1, %1)
         %3 = multiply(%1, %1)                  %2, %4 = all_reduce(%0, %3) {add}
         %4 = all_reduce(%3) {add}
A collective waits for others of the same body, groups and dtype until somebody needs its result,
or until more bytes would wait than the option says (the names and meaning of IPUConfig's
`optimizations.maximum_cross_replica_sum_buffer_size` and `maximum_reduce_scatter_buffer_size` in
Graphcore's TensorFlow). Numbers are the same bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ipujax.compiler.ir import Block, Op, Program, Value, inputs_of, walk_blocks
from ipujax.compiler.ir.scopes import ScopedOptions
from ipujax.compiler.rules.collectives import operator_of
from ipujax.config import CompileConfig


def combine_collectives(program: Program) -> Program:
    """Rewrites all blocks."""
    for block in walk_blocks(program.main):
        _combine_in(block, program.options)
    return program


@dataclass
class _Waiting:
    """Collectives of one key that have not been placed yet."""

    ops: list[Op] = field(default_factory=list)
    size_bytes: int = 0


def _limit_bytes(op: Op, options: CompileConfig) -> int:
    if op.name == "all_reduce":
        return options.maximum_cross_replica_sum_buffer_size
    if op.name == "reduce_scatter":
        return options.maximum_reduce_scatter_buffer_size
    return 0


def _combine_in(block: Block, options: ScopedOptions) -> None:
    placed: list[Op] = []
    waiting: dict[Any, _Waiting] = {}
    made: dict[Value, Any] = {}  #: results of waiting collectives, with their keys

    def place(key: Any) -> None:
        group = waiting.pop(key)
        placed.append(_as_one(group.ops))
        for value in placed[-1].results:
            made.pop(value)

    for op in block.ops:
        for value in inputs_of(op):
            if value in made:
                place(made[value])
        limit = _limit_bytes(op, options.of(op))
        size = sum(value.size_bytes for value in op.operands)
        key = _key(op) if 0 < size <= limit else None
        if key is None:
            placed.append(op)
            continue
        if key in waiting and waiting[key].size_bytes + size > limit:
            place(key)
        group = waiting.setdefault(key, _Waiting())
        group.ops.append(op)
        group.size_bytes += size
        made.update((value, key) for value in op.results)
    for key in list(waiting):
        place(key)
    block.ops = placed


def _key(op: Op) -> Any:
    """Equal for collectives that can be combined; None for others."""
    name = operator_of(op)
    if name is None:
        return None
    dtypes = {value.dtype for value in op.operands}
    attrs = ((key, str(value)) for key, value in op.attrs.items() if key != "replica_groups")
    groups = op.attrs.get("replica_groups")
    members = None if groups is None else (groups.shape, groups.tobytes())
    return op.name, name, frozenset(dtypes), tuple(sorted(attrs)), members, op.source.options


def _as_one(ops: list[Op]) -> Op:
    """The first op with the operands of all; results stay the values that they are."""
    first = ops[0]
    for op in ops[1:]:
        first.operands = first.operands + op.operands
        for value in op.results:
            value.op, value.index = first, len(first.results)
            first.results.append(value)
    return first
