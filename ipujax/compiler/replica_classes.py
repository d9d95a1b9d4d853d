"""Finds replicas that have equal values, so that they round these with equal random bits.

Parameters that all replicas hold, and sums over all of them, must stay equal: rounded differently
they would be different arrays under one name. Values are followed through a program from its
arguments' shardings and the devices' numbers on; collectives join the values of replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ipujax import jax_compat
from ipujax.compiler.ir import Block, Op, Program, Value, has_effect

#: For each replica, the first replica that has an equal value.
Replicas = tuple[int, ...]


def equal_replicas(
    program: Program, shardings: Sequence[bytes], num_replicas: int
) -> Callable[[Op], Replicas]:
    """For each op, which replicas compute equal results from equal operands.

    Args:
        shardings: of the program's arguments, serialised.
    """
    classes = _Classes(num_replicas)
    for index, value in enumerate(program.main.args):
        seen = program.seen_arguments.get(index, value)
        blocks = _blocks(shardings[index], len(seen.shape)) if num_replicas > 1 else ()
        classes.of[value] = _first(blocks) if blocks else classes.equal
    classes.block(program.main)
    return classes.of_op.__getitem__


def _blocks(sharding: bytes, rank: int) -> Sequence[int]:
    """The block of each device; none if all have the whole array."""
    if not sharding:
        return ()
    return jax_compat.blocks_of(sharding, rank)[1]


def _calls_host(op: Op) -> bool:
    return not op.regions and has_effect(op)


def _first(keys: Iterable[Any]) -> Replicas:
    seen: dict[Any, int] = {}
    return tuple(seen.setdefault(key, index) for index, key in enumerate(keys))


class _Classes:
    """Replicas with equal values, for each value and each op."""

    def __init__(self, num_replicas: int):
        self.equal: Replicas = (0,) * num_replicas
        self.apart: Replicas = tuple(range(num_replicas))
        self.of: dict[Value, Replicas] = {}
        self.of_op: dict[Op, Replicas] = {}
        self.condition = self.equal  #: of the branches and loops around

    def block(self, block: Block) -> list[Replicas]:
        for op in block.ops:
            self._op(op)
        return [self._value(value) for value in block.results]

    def _value(self, value: Value) -> Replicas:
        return self.of.get(value, self.equal)  # constants, and arguments of single elements

    def _join(self, all_: Iterable[Replicas]) -> Replicas:
        """Replicas that are equal in all of these."""
        return _first(zip(*{self.equal, self.condition, *all_}, strict=True))

    def _op(self, op: Op) -> None:
        if op.name == "while":
            results = self._while(op)
        elif op.traits.control_flow:
            results = self._branches(op)
        else:
            result = self._plain(op)
            self.of_op[op] = result
            results = [result] * len(op.results)
        self.of.update(zip(op.results, results, strict=True))

    def _plain(self, op: Op) -> Replicas:
        if op.name in ("partition_id", "replica_id") or op.traits.unique or _calls_host(op):
            return self.apart
        operands = self._join(map(self._value, op.operands))
        if op.traits.collective:
            return self._join([self._met(op, operands)])
        inner = [result for region in op.regions for result in self.block(region)]
        return self._join([operands, *inner])

    def _met(self, op: Op, operands: Replicas) -> Replicas:
        """Equal replicas after a collective; without groups all replicas take part, in order."""
        if op.name == "collective_permute":
            sources = {int(to): int(source) for source, to in op.attrs["source_target_pairs"]}
            return _first(
                operands[sources[r]] if r in sources else None for r in range(len(operands))
            )
        rows = op.attrs.get("replica_groups")
        groups = [[int(i) for i in row if i >= 0] for row in (() if rows is None else rows)]
        groups = [group for group in groups if group] or [list(self.apart)]
        if groups == [[0]]:
            groups = [list(self.apart)]
        divided = op.name in ("reduce_scatter", "all_to_all")
        keys: dict[int, Any] = {}
        for group in groups:
            brought = tuple(operands[member] for member in group)
            keys.update((m, (brought, place if divided else 0)) for place, m in enumerate(group))
        return _first(keys.get(r, r) for r in range(len(operands)))

    def _while(self, op: Op) -> list[Replicas]:
        cond, body = op.regions
        carried = [self._value(value) for value in op.operands]
        outside = self.condition
        while True:
            self.of.update(zip(body.args, carried, strict=True))
            self.of.update(zip(cond.args, carried, strict=True))
            self.condition = self._join(self.block(cond))
            results = self.block(body)
            joined = [self._join(pair) for pair in zip(carried, results, strict=True)]
            if joined == carried:
                break
            carried = joined
        self.of_op[op] = self.condition
        self.condition = outside
        return carried

    def _branches(self, op: Op) -> list[Replicas]:
        outside = self.condition
        self.of_op[op] = self.condition = self._join(map(self._value, op.operands))
        branches = [self.block(region) for region in op.regions]
        results = [self._join(each) for each in zip(*branches, strict=True)]
        self.condition = outside
        return results
