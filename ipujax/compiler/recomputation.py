"""Recomputed ops, and the `optimization_barrier` that keeps them apart, on several IPUs.

`jax.checkpoint` begins the backward pass with a barrier around everything that it needs:
  %x', %w', %ct' = optimization_barrier(%x, %w, %ct)
  %1 = F(%x', %w')                                      computed again
  %2 = B(%1, %ct')
Ops after it are never shared with ops before it. If the barrier is inside a stage, all of it is on
one IPU and in one slot of a pipeline. If the stages are inside the checkpoint, its values belong to
several IPUs and slots: then it becomes one barrier for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from ipujax.compiler.ir import Block, Op, Value

BACKWARD = "backward"
_AGAIN = "again"


def is_between_stages(op: Op) -> bool:
    """Whether it is a barrier whose values may belong to several IPUs."""
    return op.name == "optimization_barrier" and op.source.placed.ipu is None


def mark_again(ops: Iterable[Op]) -> None:
    """Marks ops after a barrier that no longer holds their operands."""
    for op in ops:
        op.attrs = {**op.attrs, _AGAIN: True}


def divide_barriers(block: Block, part_of: Callable[[Value], Hashable]) -> None:
    """Splits each barrier between stages into one for the results of each part."""
    ops: list[Op] = []
    for op in block.ops:
        ops += _divided(op, part_of) if is_between_stages(op) else [op]
    block.ops = ops


def _divided(barrier: Op, part_of: Callable[[Value], Hashable]) -> Iterable[Op]:
    made: dict[Hashable, Op] = {}
    for operand, result in zip(barrier.operands, barrier.results, strict=True):
        part = part_of(result)
        if part not in made:
            made[part] = Op(barrier.name, [], barrier.attrs, barrier.source)
            made[part].ipu = result.ipu
        op = made[part]
        result.op, result.index = op, len(op.results)
        op.operands.append(operand)
        op.results.append(result)
    return made.values()


def computed_again(ops: Iterable[Op], makers_of: Callable[[Op], list[Op]]) -> set[Op]:
    """The barriers between stages, and the forward ops after them that need no backward op."""
    found: set[Op] = set()
    backward: set[Op] = set()
    for op in ops:
        makers = makers_of(op)
        if op.source.placed.direction == BACKWARD or not backward.isdisjoint(makers):
            backward.add(op)
        begins = is_between_stages(op) or (_AGAIN in op.attrs and op not in backward)
        if begins or (op not in backward and not found.isdisjoint(makers)):
            found.add(op)
    return found


def latest_place(
    op: Op, users: Iterable[tuple[Op | None, tuple[int, int]]], again: set[Op]
) -> tuple[int, int]:
    """The slot and the IPU of a recomputed op: just before it is needed.

    A stage runs again in the slot before its backward one, or in the same slot if the one before
    is still its first. Values for another IPU are made one slot earlier.

    Args:
        users: ops with their slots and IPUs; None stands for the backward pass if no op uses it.
    """
    slots = []
    for user, (slot, ipu) in users:
        first, is_early = op.source.placed.stage, ipu != op.ipu
        if first is not None and user not in again:
            is_early = is_early or slot - 1 > first
        slots.append(slot - is_early)
    return min(slots), op.ipu
