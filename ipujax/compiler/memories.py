"""Stage 4: decides which values lie in host memory, as remote buffers, and adds their copies.

A value lies there if the user put it there (`to_host`), if the caller holds it there, or if it is
moved, stacked or carried together with such values: a scan writes one entry of the whole stack each
iteration, and no iteration copies all of it.

Before:  %s = while(0, %zeros)                       After:  %s = while(0, host_empty())
           %h = to_host(%x)                                    %t = write_entry(%a, %x, %i)
           %t = dynamic_update_slice(%a, %h, %i)
         %r = to_device(dynamic_slice(%s, %j))               %r = read_entry(%s, %j)
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ipujax.annotations import placement
from ipujax.compiler.dtypes import TOKEN
from ipujax.compiler.ir import (
    Block,
    Op,
    Program,
    Source,
    Value,
    Writer,
    blocks_run,
    inputs_of,
    walk_blocks,
)
from ipujax.compiler.passes.loops import drop_dead
from ipujax.compiler.recomputation import is_between_stages, mark_again
from ipujax.compiler.slots import slots_of
from ipujax.errors import PlacementError


def place_memories(program: Program) -> None:
    """Marks the values that lie in the host's memory, and rewrites the ops on them.

    Raises:
        PlacementError: an op computes with such a value.
    """
    main = program.main
    blocks = blocks_run(main)
    asked = any(op.name in ("to_host", "to_device") for block in blocks for op in block.ops)
    kinds = [parameter.memory_kind for parameter in program.parameters]
    if not (asked or placement.HOST in kinds or program.result_memories):
        return
    for value, kind in zip(main.args, kinds, strict=True):
        value.is_remote = kind == placement.HOST and _can_be_remote(value)
    while _spread(blocks):
        pass
    for block in blocks:
        _Rewriter(block).run()
        _load_for_each_stage(block)
    _settle_results(program)
    drop_dead(program)
    _share_buffers(main)


def _can_be_remote(value: Value) -> bool:
    return value.dtype != TOKEN and value.num_elements > 0


def _spread(blocks: list[Block]) -> bool:
    """Marks values that lie together with marked ones; returns whether it marked any."""
    changed = False

    def mark(values: list[Value]) -> None:
        nonlocal changed
        for value in values:
            if not value.is_remote and value.const is None and _can_be_remote(value):
                value.is_remote = changed = True

    for block in blocks:
        for op in block.ops:
            if op.name == "to_host" or (op.traits.in_host and op.operands[0].is_remote):
                mark(op.results)
            elif op.name == "dynamic_update_slice":
                if op.operands[0].is_remote or op.operands[1].is_remote:
                    mark(op.results)
            elif op.name == "optimization_barrier":
                for value, result in zip(op.operands, op.results, strict=True):
                    if value.is_remote:
                        mark([result])
            elif op.traits.control_flow:
                for slot in slots_of(op):
                    sources = [values[index] for values, index in slot.sources]
                    if any(value.is_remote for value in (*slot.names, *sources)):
                        mark(slot.names)
    return changed


class _Rewriter:
    """Rewrites the ops of one block."""

    def __init__(self, block: Block):
        self.block = block
        self.writer = Writer([])
        self.replaced: dict[Value, Value] = {}
        self.behind: set[Value] = set()  #: results of barriers between stages
        self.moved: set[Value] = set()  #: parts of arguments on the host; they lie there too

    def run(self) -> None:
        for op in self.block.ops:
            is_again = not self.behind.isdisjoint(inputs_of(op))
            op.operands = [self.replaced.get(value, value) for value in op.operands]
            self.writer.source = op.source
            num_ops = len(self.writer.ops)
            self._visit(op)
            if is_again:
                mark_again(self.writer.ops[num_ops:])
        self.block.ops = self.writer.ops
        self.block.results = [self.replaced.get(v, v) for v in self.block.results]
        for inner in self.block.ops:
            for region in inner.regions:
                for block in walk_blocks(region):
                    block.results = [self.replaced.get(v, v) for v in block.results]
                    for op in block.ops:
                        op.operands = [self.replaced.get(v, v) for v in op.operands]

    def _visit(self, op: Op) -> None:
        if op.traits.control_flow:
            self._place_slots(op)
        elif op.name == "optimization_barrier":
            self._pass_barrier(op)
        elif op.name == "to_host" and not op.results[0].is_remote:
            self.replaced[op.results[0]] = op.operands[0]
        elif op.name == "to_host" and (known := self._on_host(op.operands[0])) is not None:
            self.replaced[op.results[0]] = known
        elif op.name == "to_device":
            self.replaced[op.results[0]] = self._load(op.operands[0])
        elif op.name != "to_host" and any(v.is_remote for v in (*op.operands, *op.results)):
            moved = self._move(op)
            if moved is not None:
                self.replaced[op.results[0]] = moved
        else:
            self.writer.ops.append(op)

    def _on_host(self, value: Value) -> Value | None:
        """The value's copy that is on the host already, or None."""
        if value.is_remote:
            return value
        maker = value.op
        return maker.operands[0] if maker is not None and maker.name == "to_device" else None

    # Single ops ----------------------------------------------------------------------------------

    def _make(self, name: str, operands: list[Value], like: Value, remote: bool) -> Value:
        op = Op(name, operands, {}, self.writer.source)
        self.writer.ops.append(op)
        result = op.add_result(like.shape, like.dtype)
        result.is_remote = remote
        return result

    def _load(self, value: Value) -> Value:
        """The value on the device; an entry of a stack is read alone."""
        if not value.is_remote:
            return value
        maker = value.op
        if maker is not None and maker.name == "host_reshape":
            return self.writer.reshape(self._load(maker.operands[0]), value.shape)
        if maker is not None and maker.name == "read_entry":
            return self._make("read_entry", maker.operands, value, False)
        return self._make("to_device", [value], value, False)

    def _store(self, value: Value) -> Value:
        return value if value.is_remote else self._make("to_host", [value], value, True)

    def _pass_barrier(self, op: Op) -> None:
        """Lets host values bypass the barrier: the pass that would share their users has run.

        Ops that read them are marked, so that a pipeline still knows what is recomputed.
        """
        kept = [index for index, value in enumerate(op.operands) if not value.is_remote]
        for value, result in zip(op.operands, op.results, strict=True):
            if value.is_remote:
                self.replaced[result] = value
                if is_between_stages(op):
                    self.behind.add(result)
        op.operands = [op.operands[index] for index in kept]
        op.results = [op.results[index] for index in kept]
        for index, result in enumerate(op.results):
            result.index = index
        if kept:
            self.writer.ops.append(op)

    def _move(self, op: Op) -> Value | None:
        """The value that replaces the op's only result; None: the op stays, on the device."""
        operands = op.operands
        if not any(result.is_remote for result in op.results):
            self._check_operands(op)
            op.operands = [self._load(value) for value in operands]
            self.writer.ops.append(op)
            return None
        (result,) = op.results
        if op.name in ("reshape", "broadcast_in_dim", "transpose") and _keeps_order(op):
            return self._make("host_reshape", operands, result, True)
        if op.name == "dynamic_slice" and _is_entry(operands[0], result):
            return self._make("read_entry", operands[:2], result, True)
        if op.name == "dynamic_update_slice" and _is_entry(operands[0], operands[1]):
            stack, entry, index = self._store(operands[0]), operands[1], operands[2]
            return self._make("write_entry", [stack, self._before_host(entry), index], result, True)
        near = [self._load(value) for value in operands]
        moved = Op(op.name, near, op.attrs, op.source, op.regions)
        self.writer.ops.append(moved)
        stored = self._store(moved.add_result(result.shape, result.dtype))
        if not any(map(self._was_put_there, operands)):
            self.moved.add(stored)
        return stored

    def _before_host(self, value: Value) -> Value:
        """The value as it was on the device, if it was put on the host only to be stacked."""
        maker = value.op
        if maker is not None and maker.name == "host_reshape":
            before = self._before_host(maker.operands[0])
            return value if before.is_remote else self.writer.reshape(before, value.shape)
        return maker.operands[0] if maker is not None and maker.name == "to_host" else value

    def _check_operands(self, op: Op) -> None:
        if not op.traits.moves and any(map(self._was_put_there, op.operands)):
            raise PlacementError(
                f"[place] needs operands in the memory of the device; got one in "
                f"{placement.HOST!r} for {op.name} (at {op.source.line}). Bring it back with "
                "jax.device_put(x, jax.memory.Space.Device)."
            )

    def _was_put_there(self, value: Value) -> bool:
        """Whether the program put the value on the host; arguments are loaded where used."""
        while value.op is not None and value.op.name == "host_reshape":
            value = value.op.operands[0]
        if not value.is_remote or value in self.moved:
            return False
        return value.op is not None and value.op.name == "to_host"

    # Loops and branches --------------------------------------------------------------------------

    def _place_slots(self, op: Op) -> None:
        for slot in slots_of(op):
            if not slot.names[0].is_remote:
                continue
            for values, index in slot.sources:
                if values[index].is_remote:
                    continue
                if values is op.operands:
                    is_dead = _writes_all(op, index)
                    values[index] = (
                        self._make("host_empty", [], values[index], True)
                        if is_dead
                        else self._store(values[index])
                    )
                else:
                    region = next(r for r in op.regions if r.results is values)
                    _store_result(region, index, op.source)
        self.writer.ops.append(op)


def _store_result(block: Block, index: int, source: Source) -> None:
    """Puts a result of the block into host memory."""
    value = block.results[index]
    op = Op("to_host", [value], {}, source)
    block.ops.append(op)
    block.results[index] = op.add_result(value.shape, value.dtype)
    block.results[index].is_remote = True


def _load_for_each_stage(block: Block) -> None:
    """Makes each stage load a host value itself: it is not on the device between stages.

    The same holds for phases of a strategy whose values leave the tiles.
    """
    users: dict[Value, dict[Any, list[Op]]] = {}
    for op in block.ops:
        for value in inputs_of(op):
            if value.op is not None and value.op.traits.loads:
                placed = op.source.placed
                part = placed.phase if placed.stage is None else placed.stage
                place = None if part is None else (part, placed.direction)
                users.setdefault(value, {}).setdefault(place, []).append(op)
    ops = []
    for op in block.ops:
        ops.append(op)
        for place, group in list(users.get(op.results[0], {}).items())[1:] if op.results else ():
            if place is None:
                continue
            again = Op(op.name, list(op.operands), op.attrs, op.source)
            loaded = op.results[0]
            replace_operands(group, loaded, again.add_result(loaded.shape, loaded.dtype))
            ops.append(again)
    block.ops = ops


def replace_operands(ops: list[Op], old: Value, new: Value) -> None:
    """Replaces an operand of the ops, and of the ops inside them."""
    for op in ops:
        op.operands = [new if value is old else value for value in op.operands]
        for block in (inner for region in op.regions for inner in walk_blocks(region)):
            replace_operands(block.ops, old, new)
            block.results = [new if value is old else value for value in block.results]


def _settle_results(program: Program) -> None:
    """Moves each result to where the caller wants it."""
    main = program.main
    for index, value in enumerate(main.results):
        wanted = program.result_memories.get(index) == placement.HOST and _can_be_remote(value)
        if wanted and not value.is_remote:
            _store_result(main, index, Source())
        elif value.is_remote and not wanted:
            op = Op("to_device", [value], {}, Source())
            main.ops.append(op)
            main.results[index] = op.add_result(value.shape, value.dtype)


def _keeps_order(op: Op) -> bool:
    """Whether the result has the operand's elements in the same order."""
    operand, result = op.operands[0], op.results[0]
    if op.name == "reshape":
        return True
    if operand.num_elements != result.num_elements:
        return False
    order = op.attrs["permutation" if op.name == "transpose" else "broadcast_dimensions"]
    sizes = operand.shape
    moved = [dim for axis, dim in enumerate(order) if _size(op, sizes, axis, dim) > 1]
    return moved == sorted(moved)


def _size(op: Op, sizes: tuple[int, ...], axis: int, dim: int) -> int:
    return sizes[dim] if op.name == "transpose" else sizes[axis]


def _is_entry(stack: Value, entry: Value) -> bool:
    return bool(entry.shape) and entry.shape[0] == 1 and entry.shape[1:] == stack.shape[1:]


# Loops that write a whole stack ------------------------------------------------------------------


def _writes_all(op: Op, index: int) -> bool:
    """Whether a loop writes every entry of a carried stack and reads none before."""
    if op.name != "while" or "trip_count" not in op.attrs:
        return False
    body = op.regions[1]
    stack, write = body.args[index], body.results[index].op
    if write is None or write.name != "dynamic_update_slice" or write.operands[0] is not stack:
        return False
    readers = [
        inner for block in walk_blocks(body) for inner in block.ops if stack in inner.operands
    ]
    if readers != [write] or not _is_entry(stack, write.operands[1]):
        return False
    count = op.attrs["trip_count"]
    line = _linear(op, write.operands[2])
    return line is not None and {line[0] * i + line[1] for i in range(count)} >= set(
        range(stack.shape[0])
    )


def _linear(loop: Op, value: Value) -> tuple[int, int] | None:
    """(a, b) where the value is a * iteration + b."""
    body = loop.regions[1]
    if value.const is not None and value.num_elements == 1:
        return 0, int(value.const.reshape(-1)[0])
    if value in body.args:
        index = body.args.index(value)
        start, step = loop.operands[index].const, body.results[index].op
        if start is None or step is None or step.name != "add" or step.operands[0] is not value:
            return None
        grows = step.operands[1].const
        return None if grows is None else (int(grows), int(start))
    maker = value.op
    if maker is None or maker.name not in ("add", "subtract", "reshape", "convert"):
        return None
    lines = [_linear(loop, operand) for operand in maker.operands]
    if any(line is None for line in lines):
        return None
    (a, b), *rest = (line for line in lines if line is not None)
    sign = -1 if maker.name == "subtract" else 1
    return (a + sign * rest[0][0], b + sign * rest[0][1]) if rest else (a, b)


# Buffers that are changed in place ---------------------------------------------------------------


def _share_buffers(main: Block) -> None:
    """Marks ops that may take over the buffer of an operand, since nothing else needs it.

    The attribute `taken` holds the indices of these operands.
    """
    uses: Counter[Value] = Counter()
    home: dict[Value, Block] = {}
    for block in walk_blocks(main):
        home.update(dict.fromkeys(block.args, block))
        uses.update(block.results)
        for op in block.ops:
            uses.update(op.operands)
            home.update(dict.fromkeys(op.results, block))

    def is_own(value: Value) -> bool:
        if uses[value] > 1 or (value.op is None and home.get(value) is main):
            return False
        is_view = value.op is not None and value.op.name == "host_reshape"
        return not is_view or is_own(value.op.operands[0])  # type: ignore[union-attr]

    for block in walk_blocks(main):
        for op in block.ops:
            if op.name == "write_entry" or op.traits.control_flow:
                given = op.operands[:1] if op.name == "write_entry" else op.operands
                op.attrs["taken"] = tuple(
                    index
                    for index, value in enumerate(given)
                    if value.is_remote and home.get(value) is block and is_own(value)
                )
