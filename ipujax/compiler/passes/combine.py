"""Combines small collectives: one start and one set of syncs for all.

Before:  %2 = all_reduce(%0) {add}      After:  %3 = multiply(%1, %1)
         %3 = multiply(%1, %1)                  %2, %4 = all_reduce(%0, %3) {add}
         %4 = all_reduce(%3) {add}
A collective waits for others of the same body, groups and dtype until an op needs its result,
or until more bytes would wait than the option allows (the names and meaning of IPUConfig's
`optimizations.maximum_cross_replica_sum_buffer_size` and `maximum_reduce_scatter_buffer_size` in
Graphcore's TensorFlow). Results are identical bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ipujax.compiler.ir import Block, Op, Program, Value, inputs_of, walk_blocks
from ipujax.compiler.rules.collectives import operator_of
from ipujax.config.options import PER_CALL_PREFIX
from ipujax.host.logs import logger_of

logger = logger_of("compiler")

#: The option that limits each kind of collective.
OPTIONS = {
    "all_reduce": "maximum_cross_replica_sum_buffer_size",
    "reduce_scatter": "maximum_reduce_scatter_buffer_size",
}
#: The limit that a warning proposes, and how many collectives it must save.
PROPOSED_BYTES, WORTH_A_WARNING = 1 << 20, 8


def combine_collectives(program: Program) -> Program:
    """Rewrites all blocks; warns if many small collectives remain, which each cost latency."""
    all_blocks = [(block, {op.name for op in block.ops}) for block in walk_blocks(program.main)]
    for name, option in OPTIONS.items():
        blocks = [block for block, names in all_blocks if name in names]

        def limit_bytes(op: Op, option: str = option) -> int:
            return int(getattr(program.options.of(op), option))

        placed = [_grouped(block, name, limit_bytes) for block in blocks]
        for block, groups in zip(blocks, placed, strict=True):
            block.ops = [_as_one(group) for group in groups]
        _warn_of_latency(blocks, name)
    return program


@dataclass
class _Waiting:
    """Collectives of one key that have not been placed yet."""

    ops: list[Op] = field(default_factory=list)
    size_bytes: int = 0


def _grouped(block: Block, name: str, limit_bytes: Callable[[Op], int]) -> list[list[Op]]:
    """The block's ops in a new order; collectives of that name to combine are together."""
    placed: list[list[Op]] = []
    waiting: dict[Any, _Waiting] = {}
    made: dict[Value, Any] = {}  #: results of waiting collectives, with their keys

    def place(key: Any) -> None:
        group = waiting.pop(key)
        placed.append(group.ops)
        for op in group.ops:
            for value in op.results:
                made.pop(value)

    for op in block.ops:
        for value in inputs_of(op):
            if value in made:
                place(made[value])
        limit = limit_bytes(op) if op.name == name else 0
        size = sum(value.size_bytes for value in op.operands)
        key = _key(op) if 0 < size <= limit else None
        if key is None:
            placed.append([op])
            continue
        if key in waiting and waiting[key].size_bytes + size > limit:
            place(key)
        group = waiting.setdefault(key, _Waiting())
        group.ops.append(op)
        group.size_bytes += size
        made.update((value, key) for value in op.results)
    for key in list(waiting):
        place(key)
    return placed


def _warn_of_latency(blocks: list[Block], name: str) -> None:
    groups = [
        group for block in blocks for group in _grouped(block, name, lambda op: PROPOSED_BYTES)
    ]
    joined = [group for group in groups if len(group) > 1]
    before = sum(len(group) for group in joined)
    if before - len(joined) >= WORTH_A_WARNING:
        logger.warning(
            "[combine] %d small collectives (%s) each wait for the latency of the links. "
            "Set %s%s=%d to run them as %d.",
            before,
            name,
            PER_CALL_PREFIX,
            OPTIONS[name],
            PROPOSED_BYTES,
            len(joined),
        )


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
    """The first op with the operands of all; results stay the same values."""
    first = ops[0]
    for op in ops[1:]:
        first.operands = first.operands + op.operands
        for value in op.results:
            value.op, value.index = first, len(first.results)
            first.results.append(value)
    return first
