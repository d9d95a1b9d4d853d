"""Stage 4: keeps values that one phase makes and another reads in host memory in between.

An op outside all stages belongs to the phase that reads it, if there is only one. A view is made
again in the phase that reads it.

Before, with f in phase 0, g in phase 1:     After:
  %1 = f(%0)                                   %1 = f(%0)
  %2 = g(%1)                                   %2 = to_host(%1)
                                               %3 = to_device(%2)
                                               %4 = g(%3)
"""

from __future__ import annotations

from ipujax.annotations.placement import AFTER_FORWARD, LeavingPhase
from ipujax.compiler.dtypes import TOKEN
from ipujax.compiler.ir import Block, Op, Program, Source, Value, blocks_run, inputs_of, walk_ops
from ipujax.compiler.memories import replace_operands

BACKWARD = "backward"
#: A phase and the direction of its pass.
_Pass = tuple[LeavingPhase, str]


def leave_between_phases(program: Program) -> None:
    """Stores such values after the op that makes them, and loads them again in each phase."""
    if any(op.source.placed.phase for op in walk_ops(program.main)):
        for block in blocks_run(program.main):
            _Phases(block).divide()


class _Phases:
    """Divides one block."""

    def __init__(self, block: Block):
        self.block = block
        self.passes = _passes_of(block)
        self.stored: dict[Value, Value] = {}
        self.loaded: dict[tuple[Value, _Pass], Value] = {}
        self.after: dict[Op, list[Op]] = {}  #: stores, by the op that makes the value

    def divide(self) -> None:
        ops: list[Op] = []
        for op in self.block.ops:
            if (reader := self.passes.get(op)) is not None:
                for value in inputs_of(op):
                    near = self._near(value, reader, op.source, ops)
                    if near is not value:
                        replace_operands([op], value, near)
            ops.append(op)
        self.block.ops = [made for op in ops for made in (op, *self.after.get(op, ()))]

    def _near(self, value: Value, reader: _Pass, source: Source, before: list[Op]) -> Value:
        """The value as the reader gets it; adds the ops that load it."""
        maker = value.op
        if maker is None or value.const is not None or value.dtype == TOKEN:
            return value
        if (value, reader) in self.loaded:
            return self.loaded[value, reader]
        found = value
        if maker.traits.view:
            operand = self._near(maker.operands[0], reader, source, before)
            if operand is not maker.operands[0]:
                operands = [operand, *maker.operands[1:]]
                found = _add(Op(maker.name, operands, maker.attrs, source), value, before)
        elif maker in self.passes and _leaves(value, self.passes[maker], reader):
            if value not in self.stored:
                after = self.after.setdefault(maker, [])
                self.stored[value] = _add(Op("to_host", [value], {}, maker.source), value, after)
            found = _add(Op("to_device", [self.stored[value]], {}, source), value, before)
        self.loaded[value, reader] = found
        return found


def _passes_of(block: Block) -> dict[Op, _Pass]:
    """The pass of each op that has one."""
    users: dict[Value, list[Op]] = {}
    for op in block.ops:
        for value in inputs_of(op):
            users.setdefault(value, []).append(op)
    passes: dict[Op, _Pass] = {}
    for op in reversed(block.ops):
        placed = op.source.placed
        if placed.phase is not None:
            passes[op] = placed.phase, placed.direction
        elif not placed.stage_name:
            own = {passes.get(user) for value in op.results for user in users.get(value, ())}
            only = own.pop() if len(own) == 1 else None
            if only is not None:
                passes[op] = only
    return passes


def _leaves(value: Value, maker: _Pass, reader: _Pass) -> bool:
    """Whether the value leaves the tiles between the two passes."""
    phase, direction = maker
    if maker == reader or value.size_bytes < phase.minimum_bytes:
        return False
    return phase.leaving != AFTER_FORWARD or (direction != BACKWARD and reader[1] == BACKWARD)


def _add(op: Op, like: Value, ops: list[Op]) -> Value:
    ops.append(op)
    return op.add_result(like.shape, like.dtype)
