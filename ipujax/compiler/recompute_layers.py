"""Recomputes layers that the user names for their backward pass, with `recompute_layers`.

Before, with layer a:  %1 = dot_general(%x, %w)   After:  %1 = dot_general(%x, %w)
                       %2 = tanh(%1)                      %2 = tanh(%1)
                       ...                                ...
                       (a's backward pass)                %x', %w', _ = barrier(%x, %w, %ct)
                       %9 = multiply(%ct, %2)             %8 = tanh(dot_general(%x', %w'))
                                                          %9 = multiply(%ct, %8)
Between the two passes only the values that the layer reads are kept, as with `ipu.remat` around it.
The same ops run on the same values: results are identical to the last bit. Results of ops with
effects, loops and collectives are kept, and so are values that other parts of the backward pass
read anyway.
"""

from __future__ import annotations

from ipujax.annotations.layers import is_backward, named_layer
from ipujax.compiler.ir import Block, Op, Program, Value, has_effect, inputs_of
from ipujax.compiler.rematerialise import copy_of, drop_unused
from ipujax.compiler.sources import layer_at


def recompute_layers(program: Program) -> Program:
    """Recomputes layers in every block that is lowered to a program."""
    patterns = [each for each in program.options.program.recompute_layers.split(",") if each]
    for block in program.blocks_run() if patterns else ():
        _Layers(block, patterns).run()
    return program


class _Layers:
    """The named layers of one block."""

    def __init__(self, block: Block, patterns: list[str]):
        self.block = block
        self.forward: dict[str, dict[Op, None]] = {}
        self.backward: dict[str, set[Op]] = {}
        self.late: set[Op] = set()  #: ops of backward passes, and ops added for them
        for op in block.ops:
            layer = named_layer(layer_at(op.source), patterns)
            if is_backward(op.source.name):
                self.late.add(op)
                self.backward.setdefault(layer, set()).add(op)
            elif layer:
                self.forward.setdefault(layer, {})[op] = None

    def run(self) -> None:
        for layer, ops in reversed(self.forward.items()):
            self._recompute(ops, self.backward.get(layer, set()))
        drop_unused(self.block)

    def _recompute(self, forward: dict[Op, None], backward: set[Op]) -> None:
        ipus = {op.ipu for op in (*forward, *backward)}
        if len(ipus) > 1 or not backward:
            return
        kept = self._kept(forward, backward)
        wanted = {
            value: None
            for op in self.block.ops
            if op in backward
            for value in op.operands
            if value.op in forward and value not in kept
        }
        again: dict[Op, None] = {}
        inputs: dict[Value, None] = {}
        for value in wanted:
            _collect(value, forward, kept, again, inputs)
        users = [
            i for i, op in enumerate(self.block.ops) if not wanted.keys().isdisjoint(op.operands)
        ]
        first = next((i for i in users if self.block.ops[i] in backward), None)
        made_late = self._made_late(first) if first is not None else []
        if not made_late or first is None:
            return  # nothing runs between the two passes
        self._insert(first, backward, list(again), [*inputs], made_late)

    def _kept(self, forward: dict[Op, None], backward: set[Op]) -> set[Value]:
        """Values that stay in memory in any case, or cannot be recomputed."""
        kept = set(self.block.results)
        for op in self.block.ops:
            if op in self.late:
                stays = inputs_of(op) if op not in backward else set(inputs_of(op)) - {*op.operands}
                kept.update(stays)
        for op in forward:
            if not _can_run_again(op):
                kept.update(op.results)
        return kept

    def _made_late(self, before: int) -> list[Value]:
        """A value that the backward pass made before; recomputed ops wait for it."""
        for op in reversed(self.block.ops[:before]):
            if op in self.late and not op.traits.view and op.name != "optimization_barrier":
                for value in op.results:
                    if value.size_bytes:
                        return [value]
        return []

    def _insert(
        self, first: int, backward: set[Op], again: list[Op], inputs: list[Value], late: list[Value]
    ) -> None:
        barrier = Op("optimization_barrier", [*inputs, *late], {}, self.block.ops[first].source)
        barrier.ipu = self.block.ops[first].ipu
        for operand in barrier.operands:
            barrier.add_result(operand.shape, operand.dtype).ipu = barrier.ipu
        env = dict(zip(inputs, barrier.results, strict=False))
        order = {op: i for i, op in enumerate(self.block.ops)}
        copies = [copy_of(op, env) for op in sorted(again, key=order.__getitem__)]
        made = {value for op in again for value in op.results}
        for op in self.block.ops[first:]:
            if op in backward:
                op.operands = [env[v] if v in made else v for v in op.operands]
        self.block.ops[first:first] = [barrier, *copies]
        self.late.update((barrier, *copies))


def _can_run_again(op: Op) -> bool:
    traits = op.traits
    fixed = traits.unique or traits.collective or traits.control_flow or traits.loads
    return not (
        fixed or has_effect(op) or op.name in {"call", "copy_to_ipu", "optimization_barrier"}
    )


def _collect(
    value: Value,
    forward: dict[Op, None],
    kept: set[Value],
    again: dict[Op, None],
    inputs: dict[Value, None],
) -> None:
    """Adds the ops that make a value, and the kept values that they read."""
    pending = [value]
    while pending:
        value = pending.pop()
        op = value.op
        if value.const is not None:
            continue
        if op is None or op not in forward or value in kept:
            inputs[value] = None
        elif op not in again:
            again[op] = None
            pending += inputs_of(op)
