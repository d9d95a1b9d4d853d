"""Stage 4: decides which IPU of the device every op and value of the program lives on.

Ops that `ipu.stage` or `ipu.shard` placed stay there; every other op goes where its users are, or
else where its operands are. A value that is used on another IPU than its own is copied there,
once, as soon as it exists.

Before, with f on IPU 0 and g on IPU 1:     After:
  %1 = f(%0)                                  %1 = f(%0)                        on 0
  %2 = g(%1)                                  %2 = copy_to_ipu(%1) {ipu = 1}    on 1
  %3 = add(%2, %1)                            %3 = g(%2)                        on 1
                                              %4 = add(%3, %2)                  on 1
"""

from __future__ import annotations

from ipujax.compiler.dtypes import TOKEN
from ipujax.compiler.ingest import Request
from ipujax.compiler.ir import NO_SOURCE, Block, Op, Program, Value, blocks_run, inputs_of, walk_ops
from ipujax.compiler.memories import place_memories
from ipujax.compiler.outline import outline
from ipujax.compiler.phases import leave_between_phases
from ipujax.compiler.pipelines import make_pipelines
from ipujax.compiler.recomputation import divide_barriers, is_between_stages
from ipujax.compiler.recompute_layers import recompute_layers
from ipujax.compiler.rematerialise import rematerialise
from ipujax.compiler.rules.poplar import poplar
from ipujax.compiler.slots import Slot, slots_of
from ipujax.compiler.sums import share_sums
from ipujax.config.options import MachineConfig
from ipujax.errors import PlacementError


def place(program: Program, request: Request) -> Program:
    """Places all ops and values, adds copies between IPUs, and makes functions of equal parts.

    Raises:
        PlacementError: an op was placed on an IPU that the device does not have, or works on a
            value in the host's memory.
    """
    leave_between_phases(program)
    place_memories(program)
    _check_remote_buffers(program, request.machine)
    if _is_spread(program, request.machine.ipus_per_device):
        blocks = blocks_run(program.main)
        _Homes(blocks).settle()
        for block in blocks:
            divide_barriers(block, part_of=lambda value: value.ipu)
        make_pipelines(blocks)
        share_sums(blocks)
        _Copies(blocks_run(program.main)).insert()
    machine = request.machine
    program.num_ipus = machine.ipus_per_device
    target = poplar.createTarget(machine.machine, 1, machine.num_tiles)
    program = rematerialise(recompute_layers(program))
    return outline(program, target.getTilesPerIPU())


def _check_remote_buffers(program: Program, machine: MachineConfig) -> None:
    """Refuses streaming memory for IPUs configured without it; attached IPUs always have it."""
    if machine.connection == "always" or machine.enable_remote_buffers:
        return
    arguments = [value for block in blocks_run(program.main) for value in block.args]
    values = [*arguments, *(value for op in walk_ops(program.main) for value in op.results)]
    if any(value.is_remote for value in values):
        raise PlacementError(
            "[place] needs IPUs with streaming memory for arrays of the memory kind "
            f'"pinned_host"; got enable_remote_buffers=False with the connection '
            f'"{machine.connection}". Set IPUJAX_ENABLE_REMOTE_BUFFERS=1, or keep them on the IPU.'
        )


def _is_spread(program: Program, num_ipus: int) -> bool:
    """Whether any op was placed off the first IPU; refuses IPUs that the device does not have."""
    last = 0
    for op in walk_ops(program.main):
        placed = op.source.placed
        if placed.ipu is None:
            continue
        if placed.ipu >= num_ipus:
            what = f"stage {placed.stage_name!r}" if placed.stage_name else op.name
            at = f" (at {op.source.line})" if op.source.line else ""
            raise PlacementError(
                f"[place] needs IPUs of the device, 0 to {num_ipus - 1}; got IPU {placed.ipu} for "
                f"{what}{at}. Set JAX_IPU_IPUS_PER_DEVICE to {placed.ipu + 1} or more before JAX "
                "starts, or place it on another IPU."
            )
        last = max(last, placed.ipu)
    return last > 0


class _Homes:
    """Finds the IPU of each op and value from those that the user placed."""

    def __init__(self, blocks: list[Block]):
        self.ops = [op for block in blocks for op in block.ops]
        self.arguments = [value for block in blocks for value in block.args]
        self.slots = {
            op: slots_of(op) for op in self.ops if op.traits.control_flow or is_between_stages(op)
        }
        self.placed: set[Op] = set()
        self.homes: dict[Value, int] = {}
        self.wanted: dict[Value, int] = {}  #: by the first user that has a place
        for op in self.ops:
            if op.source.placed.ipu is not None:
                self._put(op, op.source.placed.ipu)

    def settle(self) -> None:
        while self._from_users() or self._from_operands():
            pass
        for op in self.ops:
            for value in op.results:
                value.ipu = self._home(value) or 0
        for value in self.arguments:
            value.ipu = self._home(value) or 0

    def _home(self, value: Value) -> int | None:
        found = self.homes.get(value)
        return self.wanted.get(value) if found is None else found

    def _put(self, op: Op, ipu: int) -> None:
        self.placed.add(op)
        op.ipu = ipu
        for value in op.results:
            self.homes[value] = ipu
        for slot in self.slots.get(op, ()):
            self.homes.update(dict.fromkeys(slot.names, ipu))
        for value in inputs_of(op):
            self.wanted.setdefault(value, ipu)

    def _from_users(self) -> bool:
        count = len(self.placed) + len(self.wanted) + len(self.homes)
        for op in reversed(self.ops):
            for slot in self.slots.get(op, ()):
                home = self._settle_slot(slot)
                if home is not None:
                    for values, index in slot.sources:
                        self.wanted.setdefault(values[index], home)
            if op not in self.slots and op not in self.placed:
                homes = [self.wanted[value] for value in op.results if value in self.wanted]
                if homes:
                    self._put(op, homes[0])
        return len(self.placed) + len(self.wanted) + len(self.homes) > count

    def _settle_slot(self, slot: Slot) -> int | None:
        homes = [home for value in slot.names if (home := self._home(value)) is not None]
        if not homes:
            return None
        for value in slot.names:
            self.homes.setdefault(value, homes[0])
        return homes[0]

    def _from_operands(self) -> bool:
        """Places ops that no placed op uses, even indirectly."""
        changed = False
        for op in self.ops:
            for slot in self.slots.get(op, ()):
                home = self._first_home([values[index] for values, index in slot.sources])
                if home is not None and self._settle_slot(slot) is None:
                    self.homes[slot.names[0]] = home
                    changed = True
            if op not in self.slots and op not in self.placed:
                home = self._first_home(inputs_of(op))
                if home is not None:
                    self._put(op, home)
                    changed = True
        return changed

    def _first_home(self, values: list[Value]) -> int | None:
        return next((home for v in values if (home := self._home(v)) is not None), None)


class _Copies:
    """Gives each op its operands on its own IPU."""

    def __init__(self, blocks: list[Block]):
        self.blocks = blocks
        self.after: dict[Op, list[Op]] = {}
        self.first: dict[Block, list[Op]] = {}
        self.owner = {value: block for block in blocks for value in block.args}
        self.made: dict[tuple[Value, int], Value] = {}
        self.original: dict[Value, Value] = {}

    def insert(self) -> None:
        for block in self.blocks:
            for op in block.ops:
                if op.traits.control_flow:
                    for slot in slots_of(op):
                        for values, index in slot.sources:
                            values[index] = self._on(values[index], slot.names[0].ipu)
                else:
                    op.operands = [self._on(value, op.ipu) for value in op.operands]
        for block in self.blocks:
            ops = self.first.get(block, [])
            for op in block.ops:
                ops += [op, *self.after.get(op, ())]
            block.ops = ops

    def _on(self, value: Value, ipu: int) -> Value:
        value = self.original.get(value, value)
        if value.const is not None or value.ipu == ipu or value.dtype == TOKEN or value.is_remote:
            return value
        found = self.made.get((value, ipu))
        if found is None:
            found = self.made[value, ipu] = self._made_there(value, ipu)
            self.original[found] = value
        return found

    def _made_there(self, value: Value, ipu: int) -> Value:
        maker = value.op
        if maker is not None and _is_smaller_before(maker):
            operands = [self._on(operand, ipu) for operand in maker.operands]
            op = Op(maker.name, operands, dict(maker.attrs), maker.source)
        else:
            source = maker.source if maker is not None else NO_SOURCE
            op = Op("copy_to_ipu", [value], {"ipu": ipu}, source)
        op.ipu = ipu
        made = op.add_result(value.shape, value.dtype)
        made.ipu = ipu
        if maker is not None:
            self.after.setdefault(maker, []).append(op)
        else:
            self.first.setdefault(self.owner[value], []).append(op)
        return made


def _is_smaller_before(op: Op) -> bool:
    """Whether less data crosses if a broadcast is done on the other side."""
    given = sum(value.size_bytes for value in op.operands)
    return op.traits.view and given < op.results[0].size_bytes
