"""Determines the random bits that each op rounds with, if `stochastic_rounding` is on.

An op's bits depend on the key of a run, the iterations of the loops around it, and its stream: a
number for what it computes from which operands. Equal ops have equal streams, so an op that a
backward pass recomputes rounds as before, wherever `jax.checkpoint` or the compiler put it:
  %1 = tanh(%0)                           stream A
  %2 = optimization_barrier(%0)
  %3 = tanh(%2)                           stream A
A backward loop is matched to the forward loop by entries that both read by iteration: of an array,
or of a stack to which the forward loop wrote one entry in each iteration. Here both ops read the
same entry, and the second one takes its bits from iteration 3 - j, its turn:
  while i < 4: %1 = tanh(%xs[i])          stream B, turn 0 + 1 i
  while j < 4: %2 = tanh(%xs[3 - j])      stream B, turn 3 - 1 j
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from math import prod
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from ipujax.compiler.ir import (
    Block,
    Op,
    Program,
    Value,
    captured,
    has_effect,
    splat_of,
    walk_ops,
)
from ipujax.compiler.replica_classes import Replicas, equal_replicas

#: (offset, factor): iteration offset + factor * i, where i is the innermost loop's own iteration.
Turn = tuple[int, int]
OWN: Turn = (0, 1)

#: The attribute of ops that round at random, and of loops that hold such ops.
ROUNDING = "rounding"
#: The attribute of calls that makes a call's random bits differ from those of the other calls.
SALT = "rounding_salt"


class Rounding(NamedTuple):
    """How an op draws its random bits."""

    stream: int
    turn: Turn | None  #: None: it is in no loop
    replicas: Replicas  #: for each replica, the one whose key it takes


class _Number(NamedTuple):
    """Identifies a value: equal digests mean equal values at equal turns."""

    digest: bytes
    turn: Turn | None = None  #: None: the same in all iterations


def set_rounding_streams(program: Program, shardings: Sequence[bytes], num_replicas: int) -> None:
    """Gives ops that round at random their attribute.

    Args:
        shardings: of the program's arguments, serialised; none for a program on one device.
    """
    rounding = {op for op in walk_ops(program.main) if _rounds(program, op)}
    if not rounding:
        return
    for op in walk_ops(program.main):
        if any(inner in rounding for region in op.regions for inner in walk_ops(region)):
            rounding.add(op)
    replicas = equal_replicas(program, shardings, num_replicas)

    def label(op: Op, number: _Number) -> None:
        op.attrs = {**op.attrs, ROUNDING: Rounding(_stream(number), number.turn, replicas(op))}

    _Numbering(rounding, label).program(program.main)


def rounding_of(op: Op) -> dict[str, Any]:
    """The attribute, for an op that replaces this one."""
    return {ROUNDING: op.attrs[ROUNDING]} if ROUNDING in op.attrs else {}


def key_of(op: Op) -> tuple[Turn | None, Replicas] | None:
    """What distinguishes keys of ops in one block; None if the op does not round at random."""
    rounding: Rounding | None = op.attrs.get(ROUNDING)
    return None if rounding is None else (rounding.turn, rounding.replicas)


def salt_of(ops: Iterable[Op]) -> int:
    """The salt of a call that replaces these ops; 31 bits."""
    found = (op.attrs[ROUNDING].stream for op in ops if ROUNDING in op.attrs)
    return next(found, 0) % 2**31


def renumber(function: Block) -> None:
    """Gives the ops of a new function streams of their own, from what they compute in it."""

    def label(op: Op, number: _Number) -> None:
        rounding = op.attrs[ROUNDING]._replace(stream=_stream(number))
        op.attrs = {**op.attrs, ROUNDING: rounding}

    rounding = {op for op in walk_ops(function) if ROUNDING in op.attrs}
    if rounding:
        _Numbering(rounding, label).program(function)


def _rounds(program: Program, op: Op) -> bool:
    if not program.options.of(op).stochastic_rounding:
        return False
    return any(value.dtype == "f16" for value in (*op.operands, *op.results))


class _Scope:
    """A loop's body while its values are numbered, or the whole program."""

    def __init__(self, turn: Turn | None, numbers: dict[Value, _Number], read: set[Turn]):
        self.turn = turn  #: of the loop in the loop around it
        self.numbers = numbers
        self.places: dict[Value, Turn] = {}  #: integers that depend only on the iteration
        self.read = read  #: turns whose entries the body reads

    def enter(self, number: _Number) -> _Number:
        """The number of a value from outside."""
        if number.turn in (None, self.turn):
            return _Number(number.digest)
        return _Number(_hash(number.digest, _seen_from(number.turn, self.turn)))

    def count(self, loop: Op) -> None:
        """Finds carried integers that grow by the same amount in each iteration."""
        for operand, argument, result in zip(
            loop.operands, loop.regions[1].args, loop.regions[1].results, strict=True
        ):
            made = result.op
            if made is None or made.name != "add" or made.operands[0] is not argument:
                continue
            first, step = splat_of(operand), splat_of(made.operands[1])
            if operand.shape == () and isinstance(first, np.integer) and step is not None:
                self.places[argument] = (int(first), int(step))

    def follow(self, op: Op) -> None:
        """Sums and differences of places and constants are places, too."""
        parts = [self._place(value) for value in op.operands]
        if op.name in ("reshape", "convert") and parts[0] is not None:
            self.places[op.results[0]] = parts[0]
        elif op.name in ("add", "subtract") and None not in parts:
            sign = 1 if op.name == "add" else -1
            (a, b), (c, d) = ((part or OWN) for part in parts)
            self.places[op.results[0]] = (a + sign * c, b + sign * d)

    def _place(self, value: Value) -> Turn | None:
        constant = splat_of(value)
        if value.shape == () and isinstance(constant, np.integer):
            return int(constant), 0
        return self.places.get(value)


class _Numbering:
    """Walks a program and numbers its values; calls `label` with the numbers of ops that round."""

    def __init__(self, rounding: set[Op], label: Callable[[Op, _Number], None]):
        self.rounding = rounding
        self.label = label
        self.scopes: list[_Scope] = []
        #: Stacks that loops wrote, with each entry's digest and the turn that its place gives.
        self.stacks: dict[bytes, tuple[bytes, Turn | None]] = {}
        self.steady: set[bytes] = set()  #: ops of loops whose operands are always the same
        self.drawn = 0  #: ops so far whose results do not depend on anything known here

    def program(self, block: Block) -> None:
        numbers = {value: _Number(_hash("argument", i)) for i, value in enumerate(block.args)}
        self.scopes = [_Scope(None, numbers, set())]
        self._block(block)

    def _block(self, block: Block) -> list[_Number]:
        for op in block.ops:
            self._op(op)
            if len(self.scopes) > 1 and op.results and op.results[0].shape == ():
                self.scopes[-1].follow(op)
        return [self._number(value) for value in block.results]

    def _number(self, value: Value) -> _Number:
        if value.const is not None:
            # Reshapes do not count, so neither do shapes.
            elements = value.const.flat[0:1] if value.is_splat else value.const
            return _Number(_hash("constant", value.dtype, elements.tobytes()))
        depth = len(self.scopes) - 1
        while value not in self.scopes[depth].numbers:
            depth -= 1
        number = self.scopes[depth].numbers[value]
        for scope in self.scopes[depth + 1 :]:
            number = scope.numbers[value] = scope.enter(number)
        return number

    # Ops -----------------------------------------------------------------------------------------

    def _op(self, op: Op) -> None:
        numbers: Iterable[_Number]
        entry = self._entry(op) if op.name == "dynamic_slice" else None
        if op.name == "while":
            numbers = self._while(op)
        elif op.name in ("optimization_barrier", "reshape"):
            numbers = map(self._number, op.operands)
        elif entry is not None:
            numbers = [entry]
        else:
            made = self._labelled(op, self._plain(op))
            several = len(op.results) > 1
            if _widens(op):  # sums read its operand instead
                made = self._number(op.operands[0])
            numbers = [
                _Number(_hash(made.digest, index) if several else made.digest, made.turn)
                for index in range(len(op.results))
            ]
        self.scopes[-1].numbers.update(zip(op.results, numbers, strict=True))

    def _labelled(self, op: Op, number: _Number) -> _Number:
        """The number, with a turn if the op rounds in a loop."""
        if op not in self.rounding:
            return number
        if number.turn is None and len(self.scopes) > 1:
            number = number._replace(turn=self._steady_turn(number.digest))
        self.label(op, number)
        return number

    def _steady_turn(self, digest: bytes) -> Turn:
        """The turn of an op whose operands are always the same; each iteration rounds anew."""
        read = self.scopes[-1].read - {OWN}
        if digest in self.steady and len(read) == 1:  # recomputed in a backward loop
            return next(iter(read))
        self.steady.add(digest)
        return OWN

    def _plain(self, op: Op) -> _Number:
        if op.traits.unique or (not op.regions and has_effect(op)):
            self.drawn += 1
            return _Number(_hash("drawn", self.drawn), self._own())
        numbers = [self._number(value) for value in op.operands]
        regions: Any = ()
        if op.traits.control_flow:
            numbers += [number for region in op.regions for number in self._block(region)]
        else:
            regions = tuple(map(self._body, op.regions))
        shapes = tuple((_shape_in(op, value), value.dtype) for value in op.results)
        digests = tuple(number.digest for number in numbers)
        key = (op.name, _attributes(op), op.source.options, shapes, regions, digests)
        base = _base(numbers)
        seen = tuple(_seen_from(number.turn, base) for number in numbers)
        return _Number(_hash(key, seen), base)

    def _own(self) -> Turn | None:
        return OWN if len(self.scopes) > 1 else None

    def _body(self, region: Block) -> Any:
        """A key for a function of single elements: what its ops do."""
        names: dict[Value, Any] = {value: index for index, value in enumerate(region.args)}

        def use(value: Value) -> Any:
            return names[value] if value in names else self._number(value)

        rows = []
        for op in region.ops:
            inner = tuple(map(self._body, op.regions))
            rows.append((op.name, _text(op.attrs), tuple(map(use, op.operands)), inner))
            for value in op.results:
                names[value] = len(names)
        return tuple(rows), tuple(map(use, region.results))

    def _entry(self, op: Op) -> _Number | None:
        """The number of an array's entry, if the op reads one by the loop's iteration."""
        place = self.scopes[-1].places.get(op.operands[1]) if len(op.operands) > 1 else None
        array = self._number(op.operands[0])
        others = [splat_of(start) for start in op.operands[2:]]
        if place is None or place[1] == 0 or array.turn is not None or None in others:
            return None
        sizes = tuple(map(int, op.attrs["slice_sizes"]))
        written = self.stacks.get(array.digest)
        if written is not None and sizes == (1, *op.operands[0].shape[1:]):
            digest, turn = written
            entry = _Number(digest, None if turn is None else _composed(turn, place))
        else:
            starts = tuple(map(int, others))
            entry = _Number(_hash("entry", array.digest, starts, sizes), place)
        if entry.turn is not None:
            self.scopes[-1].read.add(entry.turn)
        return entry

    # Loops ---------------------------------------------------------------------------------------

    def _while(self, op: Op) -> list[_Number]:
        """Numbers a loop; carried values are identified by their first value and their update."""
        inputs = [self._number(value) for value in op.operands]
        outside = [*inputs, *(self._number(v) for region in op.regions for v in captured(region))]
        base = _base(outside)
        seen = tuple((number.digest, _seen_from(number.turn, base)) for number in outside)
        turn = self._labelled(op, _Number(_hash("while", seen), base)).turn
        entering = _Scope(turn, {}, set())
        begins = [entering.enter(number).digest for number in inputs]
        carried = [_Number(_hash("carried", digest), OWN) for digest in begins]
        drawn = self.drawn
        scope, made = self._turns(op, turn, carried, set())
        self.drawn = drawn
        carried = [_Number(_hash(a, b.digest), OWN) for a, b in zip(begins, made, strict=True)]
        scope, made = self._turns(op, turn, carried, scope.read)
        ends = []
        for index, number in enumerate(carried):
            stack = self._stack(op.regions[1], index, scope)
            end = stack or _hash("end", number.digest, _text(op.attrs.get("trip_count")))
            ends.append(_Number(end, turn))
        return ends

    def _turns(
        self, op: Op, turn: Turn | None, carried: Sequence[_Number], read: set[Turn]
    ) -> tuple[_Scope, list[_Number]]:
        cond, body = op.regions
        scope = _Scope(turn, dict(zip(body.args, carried, strict=True)), read)
        scope.numbers.update(zip(cond.args, carried, strict=True))
        scope.count(op)
        self.scopes.append(scope)
        self._block(cond)
        made = self._block(body)
        self.scopes.pop()
        return scope, made

    def _stack(self, body: Block, index: int, scope: _Scope) -> bytes | None:
        """The digest of an array of which each iteration wrote one entry."""
        write = body.results[index].op
        if write is None or write.name != "dynamic_update_slice":
            return None
        array, entry, start, *others = write.operands
        place, number = scope.places.get(start), scope.numbers.get(entry)
        if place is None or abs(place[1]) != 1 or number is None:
            return None
        is_whole = entry.shape == (1, *array.shape[1:]) and not any(map(splat_of, others))
        if array is not body.args[index] or not is_whole:
            return None
        turn = None if number.turn is None else _seen_from(number.turn, place)
        digest = _hash("stack", number.digest, turn)
        self.stacks[digest] = (number.digest, turn)
        return digest


def _composed(turn: Turn, of: Turn) -> Turn:
    return turn[0] + turn[1] * of[0], turn[1] * of[1]


def _base(numbers: Iterable[_Number]) -> Turn | None:
    """The turn of a value computed from values at several turns: that of the first."""
    turns = [number.turn for number in numbers if number.turn is not None]
    if len(set(turns)) <= 1:
        return turns[0] if turns else None
    return next((turn for turn in turns if abs(turn[1]) == 1), OWN)


def _seen_from(turn: Turn | None, base: Turn | None) -> Turn | None:
    """The turn relative to the base: the same in a loop and in its backward loop."""
    if turn is None or base is None or turn == base:
        return None if turn is None else OWN
    offset, factor = base
    return _composed(turn, (-factor * offset, factor)) if abs(factor) == 1 else turn


def _shape_in(op: Op, result: Value) -> tuple[int, ...]:
    """The result's shape; for elementwise ops, which reshapes may move past, just its size."""
    return (prod(result.shape),) if op.traits.elementwise else result.shape


def _widens(op: Op) -> bool:
    return op.name == "convert" and (op.operands[0].dtype, op.results[0].dtype) == ("f16", "f32")


def _attributes(op: Op) -> Any:
    """The op's attributes as a key; broadcasts of reshapes read the reshapes' operands."""
    if op.name != "broadcast_in_dim":
        return _text(op.attrs)
    dims = op.attrs["broadcast_dimensions"]
    return tuple(d for d, size in zip(dims, op.operands[0].shape, strict=True) if size != 1)


def _text(item: Any) -> Any:
    """Attributes as a key that equal ones share."""
    if isinstance(item, dict):
        pairs = sorted(item.items())
        return tuple((name, _text(own)) for name, own in pairs if name != ROUNDING)
    if isinstance(item, SimpleNamespace):
        return _text(vars(item))
    if isinstance(item, (tuple, list)):
        return tuple(map(_text, item))
    if isinstance(item, Block):
        return "function"
    if isinstance(item, np.ndarray):
        return item.shape, item.dtype.str, item.tobytes()
    return item if isinstance(item, (int, float, bytes)) else str(item)


def _hash(*parts: Any) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def _stream(number: _Number) -> int:
    """40 bits, never all 0; the bits below number the op's own steps."""
    return int.from_bytes(number.digest[:5], "little") or 1
