"""Recomputes cheap values instead of keeping them for long, with `allow_recompute`.

Before:  %1 = exponential(%x)                 After:  %1 = exponential(%x)
         %2 = reduce(%1)                              %2 = reduce(%1)
         ... the memory is fullest here ...           ...
         %9 = multiply(%ct, %1)                       %x', _ = optimization_barrier(%x, %ct)
                                                      %8 = exponential(%x')
                                                      %9 = multiply(%ct, %8)
Only elementwise ops, broadcasts and views are recomputed, from operands that are live anyway or
take less memory. Results are identical to the last bit. Rounds lower the peak of live bytes until
it can get no lower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ipujax.compiler.ir import Block, Op, Program, Value, has_effect, inputs_of
from ipujax.compiler.room import Life, life_of

#: Smaller values are not worth an extra op.
SMALL_BYTES = 64 * 1024
MAX_ROUNDS = 64
MAX_OPS = 24  #: recomputed for one value


def rematerialise(program: Program) -> Program:
    """Recomputes values in every block that is lowered to a program."""
    if program.options.program.allow_recompute:
        for block in program.blocks_run():
            _lower_peak(block)
    return program


def _lower_peak(block: Block) -> None:
    life = life_of(block)
    for _ in range(MAX_ROUNDS):
        before = [(op, op.operands) for op in block.ops]
        if not life.live or not _Round(block, life).run():
            return
        most, life = _most(life), life_of(block)
        if _most(life) >= most:
            for op, operands in before:
                op.operands = operands
            block.ops = [op for op, _ in before]
            return


def _most(life: Life) -> float:
    """Bytes live at one time on the fullest IPU."""
    return float(max(live.max() for live in life.live.values()))


@dataclass
class _Again:
    """Ops to recompute so that a value need not be kept."""

    value: Value
    before: int  #: index of the op that needs it next
    ops: list[Op] = field(default_factory=list)
    kept: list[Value] = field(default_factory=list)  #: values that these ops read from memory
    done: set[Value] = field(default_factory=set)


class _Round:
    """One pass over the values that are live when the memory is fullest."""

    def __init__(self, block: Block, life: Life):
        self.block, self.life = block, life
        ipu = max(life.live, key=lambda ipu: life.live[ipu].max())
        self.ipu, self.peak = ipu, int(life.live[ipu].argmax())
        #: For each value with its own memory: where it is used, and as which value.
        self.uses: dict[Value, list[tuple[int, Value]]] = {}
        for index, op in enumerate(block.ops):
            if not op.traits.view:
                for value in inputs_of(op):
                    self.uses.setdefault(self._root(value), []).append((index, value))
        self.returned = {self._root(value) for value in block.results}

    def run(self) -> bool:
        """Returns whether it changed anything."""
        found = []
        for op in self.block.ops[: self.peak]:
            for value in op.results:
                again = self._again(value) if self._may_go(value) else None
                gained = value.size_bytes - self._extended(again) if again else 0
                if again and gained > 0:
                    found.append((gained, again))
        chosen: list[_Again] = []
        touched: set[Value] = set()
        for _, again in sorted(found, key=lambda pair: -pair[0]):
            part = {self._root(value) for value in (*again.done, *again.kept)}
            if touched.isdisjoint(part):
                touched |= part
                chosen.append(again)
        self._apply(chosen)
        return bool(chosen)

    def _root(self, value: Value) -> Value:
        return self.life.root.get(value, value)

    def _may_go(self, value: Value) -> bool:
        """Whether it has its own memory, and is live but unused when the memory is fullest."""
        return (
            value.ipu == self.ipu
            and value.size_bytes >= SMALL_BYTES
            and self._root(value) is value
            and _is_cheap(value)
            and value not in self.returned
            and self.life.last_use.get(value, 0) > self.peak
            and all(index != self.peak for index, _ in self.uses[value])
        )

    def _again(self, value: Value) -> _Again | None:
        late = [index for index, _ in self.uses[value] if index > self.peak]
        again = _Again(value, min(late))
        if any(self.block.ops[index].regions for index in late):
            return None
        self._redo(value, again)
        return again if len(again.ops) <= MAX_OPS else None

    def _redo(self, value: Value, again: _Again) -> None:
        """Adds the ops that make a value, in order, from kept values."""
        if value.const is not None or value in again.done or len(again.ops) > MAX_OPS:
            return
        again.done.add(value)
        is_there = self.life.last_use.get(self._root(value), 0) > self.peak
        is_view = value.op is not None and value.op.traits.view
        is_small = value.size_bytes < SMALL_BYTES
        stays = value is not again.value and not is_view and (is_there or is_small)
        if stays or not (is_view or _is_cheap(value)):
            again.kept.append(value)
            return
        assert value.op is not None
        for operand in value.op.operands:
            self._redo(operand, again)
        if value.op not in again.ops:
            again.ops.append(value.op)

    def _extended(self, again: _Again) -> int:
        """Bytes that are live when the memory is fullest only because these ops read them."""
        return sum(
            value.size_bytes
            for value in again.kept
            if value.op is not None and self.life.last_use.get(self._root(value), 0) <= self.peak
        )

    def _apply(self, chosen: list[_Again]) -> None:
        added: dict[int, list[Op]] = {}
        for again in chosen:
            ops = added.setdefault(again.before, [])
            env = dict(self._barrier(again, ops))
            ops += [copy_of(op, env) for op in again.ops]
            for index, value in self.uses[again.value]:
                if index >= again.before:
                    user = self.block.ops[index]
                    self._view(value, env, ops)
                    user.operands = [env[v] if v is value else v for v in user.operands]
        old = self.block.ops
        self.block.ops = [op for i, own in enumerate(old) for op in (*added.get(i, ()), own)]
        drop_unused(self.block)

    def _barrier(self, again: _Again, ops: list[Op]) -> Iterator[tuple[Value, Value]]:
        """Passes the kept values through a barrier, so that the ops wait for a value made late."""
        late = self._made_late(again.before)
        source = again.ops[-1].source
        barrier = Op("optimization_barrier", [*again.kept, *late], {}, source)
        barrier.ipu = self.ipu
        for operand in barrier.operands:
            barrier.add_result(operand.shape, operand.dtype).ipu = self.ipu
        ops.append(barrier)
        return zip(again.kept, barrier.results, strict=False)

    def _made_late(self, before: int) -> list[Value]:
        for op in reversed(self.block.ops[self.peak : before]):
            for value in op.results:
                if value.ipu == self.ipu and value.size_bytes and not op.traits.view:
                    return [value]
        return []

    def _view(self, value: Value, env: dict[Value, Value], ops: list[Op]) -> None:
        """Adds the views through which a user sees a recomputed value."""
        if value in env:
            return
        assert value.op is not None
        self._view(value.op.operands[0], env, ops)
        ops.append(copy_of(value.op, env))


def _is_cheap(value: Value) -> bool:
    op = value.op
    if op is None or has_effect(op) or op.regions or len(op.results) != 1:
        return False
    return not op.traits.unique and (op.traits.elementwise or op.name == "iota")


def copy_of(op: Op, env: dict[Value, Value]) -> Op:
    """A copy of the op on the values in `env`; its results are added to `env`."""
    operands = [env.get(value, value) for value in op.operands]
    copy = Op(op.name, operands, dict(op.attrs), op.source, list(op.regions))
    copy.ipu = op.ipu
    for result in op.results:
        env[result] = copy.add_result(result.shape, result.dtype)
        env[result].ipu = result.ipu
    return copy


def drop_unused(block: Block) -> None:
    """Drops ops that are no longer needed, such as views of values that are recomputed."""
    used = set(block.results)
    ops = []
    for op in reversed(block.ops):
        if has_effect(op) or not used.isdisjoint(op.results):
            used.update(inputs_of(op))
            ops.append(op)
    block.ops = ops[::-1]
