"""Makes functions of equal parts of a program: compiled once, called from several places.

Before, with the calls of an outlined f inlined:                After:
  %1 = dot_general(%w0, %x)                                        %2 = call(%w0, %x) {function=0}
  %2 = tanh(%1)                                                    %4 = call(%w1, %2) {function=0}
  %3 = dot_general(%w1, %2)                                      function 0 (%a, %b):
  %4 = tanh(%3)                                                    %c = dot_general(%a, %b)
                                                                   %d = tanh(%c); return %d
Parts are equal if they agree op by op: in names, attributes, constants, shapes, dtypes, IPUs,
options and how values flow between ops. With outline=marked, parts are calls of `ipu.outlined`;
with outline=auto, also sequences of ops that repeat, if that saves code (`repeats.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ipujax.compiler.ir import Block, Op, Program, Value, has_effect, inputs_of, walk_blocks
from ipujax.compiler.repeats import is_transfer, repeats
from ipujax.compiler.rounding_streams import SALT, renumber, salt_of
from ipujax.compiler.structure import Part, Structures


def outline(program: Program, num_tiles: int) -> Program:
    """Replaces equal parts by calls, as the program's options say; an IPU has `num_tiles` tiles."""
    options = program.options.program
    if options.outline == "off":
        return program
    structures = Structures()
    _outline_marked(program, structures)
    if options.outline == "auto":
        while _outline_repeats(program, structures, num_tiles):
            pass
    return program


def _outline_repeats(program: Program, structures: Structures, num_tiles: int) -> bool:
    """Makes functions of repeated parts, in functions too; returns whether it made any."""
    functions, threshold = _Functions(program), program.options.program.outline_threshold
    found = repeats(program.blocks_run(), structures, threshold, num_tiles)
    made = [functions.share(parts) for parts in list(found)]  # all found before any is replaced
    return any(function is not None for function in made)


def _outline_marked(program: Program, structures: Structures) -> None:
    """Makes functions of equal calls of `ipu.outlined`; a call on several IPUs is split by IPU.

    Outer calls come first: calls inside one that became a function are in its body, once.
    """
    functions = _Functions(program)
    pending = [(program.main, 0)]
    while pending:
        found = [pair for root, depth in pending for pair in _blocks(root, depth)]
        pending = []
        groups: dict[Any, list[Part]] = defaultdict(list)
        for block, depth in found:
            calls: dict[tuple[int, int], list[Op]] = defaultdict(list)
            for op in block.ops:
                path = op.source.placed.outlined
                if len(path) > depth and not is_transfer(op):
                    calls[path[depth], op.ipu].append(op)
            for ops in calls.values():
                part = structures.part(block, ops)
                groups[depth, part.key].append(part)
        for (depth, _), parts in groups.items():
            function = functions.share(parts, depth)
            if function is not None:
                pending.append((function, depth + 1))
        for block, depth in found:
            if any(len(op.source.placed.outlined) > depth for op in block.ops):
                pending.append((block, depth + 1))


def _blocks(block: Block, depth: int) -> Iterator[tuple[Block, int]]:
    """The block, and those inside it at the same depth of outlined calls."""
    yield block, depth
    for op in block.ops:
        if op.traits.control_flow and len(op.source.placed.outlined) == depth:
            for region in op.regions:
                yield from _blocks(region, depth)


@dataclass(slots=True)
class _Gap:
    """The ops of a block around a part that becomes one op."""

    before: list[Op]
    after: list[Op]


class _Functions:
    """Makes functions of equal parts of the program."""

    def __init__(self, program: Program):
        self.program = program
        self.users: dict[Block, dict[Value, set[Op]]] = {}

    def share(self, parts: list[Part], depth: int | None = None) -> Block | None:
        """Replaces equal parts by calls of one function, and returns it.

        A part that depends on itself through other ops stays, as does one that has no equal.

        Args:
            depth: number of outlined calls around the parts, if they are such calls.
        """
        parts = [part for part in parts if _gap_of(part) is not None]
        if len(parts) < 2:
            return None
        used = sorted({index for part in parts for index in self._used(part)})
        function = _function(parts[0], used)
        self.program.functions.append(function)
        for part in parts:
            gap = _gap_of(part)
            if gap is not None:  # other parts are one op each by now
                part.block.ops = [*gap.before, self._call(part, function, used, depth), *gap.after]
        return function

    def _call(self, part: Part, function: Block, used: list[int], depth: int | None) -> Op:
        last = part.ops[-1]
        source = last.source
        path = source.placed.outlined[:depth]
        if path != source.placed.outlined:
            source = replace(source, placed=replace(source.placed, outlined=path))
        made, own = part.made(), self._used(part)
        returns = tuple(result for result, index in enumerate(used) if index in own)
        attrs = {"function": function, "returns": returns, SALT: salt_of(part.ops)}
        call = Op("call", list(part.inputs), attrs, source)
        call.ipu = last.ipu
        call.results = [made[used[result]] for result in returns]
        for index, value in enumerate(call.results):
            value.op, value.index = call, index
        return call

    def _used(self, part: Part) -> set[int]:
        """Indices of the part's values that are used outside it."""
        users = self.users.get(part.block)
        if users is None:
            users = self.users[part.block] = _users(part.block)
        inside = set(part.ops)
        return {i for i, value in enumerate(part.made()) if users.get(value, inside) - inside}


def _function(part: Part, used: list[int]) -> Block:
    """A block of the part's ops, with arguments for its inputs and values of its own."""
    names: dict[Value, Value] = {}
    for value in (*part.inputs, *part.made()):
        names[value] = Value(value.shape, value.dtype)
        names[value].ipu = value.ipu
    made = part.made()
    function = Block([names[value] for value in part.inputs])
    function.results = [names[made[index]] for index in used]
    for op in part.ops:
        body = Op(op.name, op.operands, op.attrs, op.source, op.regions)
        body.ipu = op.ipu
        body.operands = [names.get(value, value) for value in op.operands]
        body.results = [names[value] for value in op.results]
        for index, value in enumerate(body.results):
            value.op, value.index = body, index
        for region in op.regions:
            _rename(region, names)
        function.ops.append(body)
    renumber(function)
    return function


def _users(block: Block) -> dict[Value, set[Op]]:
    """The ops of the block that use each value; an extra op stands for the block's end."""
    found: dict[Value, set[Op]] = defaultdict(set)
    for op in block.ops:
        for value in inputs_of(op):
            found[value].add(op)
    end = Op("return", [], {})
    for value in block.results:
        found[value].add(end)
    return found


def _rename(region: Block, names: dict[Value, Value]) -> None:
    for block in walk_blocks(region):
        block.results = [names.get(value, value) for value in block.results]
        for op in block.ops:
            op.operands = [names.get(value, value) for value in op.operands]


def _gap_of(part: Part) -> _Gap | None:
    """The block's other ops, in an order that lets the part be one op; None if impossible."""
    ops, members = part.block.ops, set(part.ops)
    where = {op: index for index, op in enumerate(ops)}
    first, last = where[part.ops[0]], where[part.ops[-1]]
    late: list[Op] = []
    early: list[Op] = []
    made_late: set[Value] = set()
    following = set(part.made())
    has_effects = any(has_effect(op) for op in part.ops)
    for op in ops[first : last + 1]:
        inputs = inputs_of(op)
        if op in members:
            if not made_late.isdisjoint(inputs):
                return None
        elif has_effects and has_effect(op):
            return None  # effects keep their order
        elif following.isdisjoint(inputs):
            early.append(op)
        else:
            late.append(op)
            made_late.update(op.results)
            following.update(op.results)
    return _Gap([*ops[:first], *early], [*late, *ops[last + 1 :]])
