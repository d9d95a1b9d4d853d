"""Stage 6: orders the ops of each block.

Chooses between the user's own order and a greedy one for low liveness, by peak live bytes: in all
tiles together, since it is not known yet where values lie. If the fullest tile is too full then,
the other order is a remedy (fit.py). In both orders an op that overwrites a value (an update of a
slice, the next value of a loop's carry, the new value of a donated argument) comes after all ops
that still read it, if nothing forbids that: then it can be done in place. Equal programs get equal
orders: ties go to the user's order.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable

from ipujax.compiler.ir import Block, Op, Program, Value, has_effect, inputs_of

#: The user's order is kept unless another one needs less than this part of its memory.
WORTHWHILE = 0.95
#: Below this there is nothing to gain: it is less than 50 bytes for each tile of an IPU.
SMALL_BYTES = 64 * 1024


def schedule(program: Program, order: str = "auto") -> Program:
    """Orders every block that is lowered to a program; `order` as the option `schedule`."""
    main = program.main
    for block in program.blocks_run():
        if block is main:
            ties = [
                (main.args[argument], main.results[result])
                for result, argument in enumerate(program.output_alias)
                if argument >= 0
            ]
        else:
            ties = list(zip(block.args, block.results, strict=False))
        if len(block.ops) > 1:
            scheduler = _Scheduler(block, ties)
            block.ops = [block.ops[index] for index in scheduler.indices(order)]
    return program


class _Scheduler:
    """One block's dependences and sizes. `ties`: (old, new) values to share memory."""

    def __init__(self, block: Block, ties: Iterable[tuple[Value, Value]]):
        self.block = block
        self.ops = block.ops
        self.where = {value: i for i, op in enumerate(self.ops) for value in op.results}
        self.needs: list[set[int]] = []
        self.users: list[set[int]] = [set() for _ in self.ops]
        self.reached: list[int] = []
        self.root: dict[Value, Value] = {}
        self.readers: dict[Value, set[int]] = {}
        self.inputs: list[list[Value]] = []
        self.allocated = [
            0 if _passed_on(op) else sum(value.size_bytes for value in op.results)
            for op in self.ops
        ]
        self.in_place: set[int] = set()  #: ops that overwrite one of their operands
        self._connect()
        self._delay_loads()
        self._order_effects()
        self._order_updates(ties)

    def _connect(self) -> None:
        for index, op in enumerate(self.ops):
            inputs = inputs_of(op)
            passed_on = _passed_on(op)
            roots = [self.root.get(value, value) for value in inputs]
            needs: set[int] = set()
            bits = 0
            for value, root in zip(inputs, roots, strict=True):
                producer = self.where.get(value)
                if producer is not None:
                    needs.add(producer)
                    self.users[producer].add(index)
                    bits |= self.reached[producer] | (1 << producer)
                if not passed_on:
                    self.readers.setdefault(root, set()).add(index)
            for operand, result in passed_on:
                self.root[result] = self.root.get(operand, operand)
            self.needs.append(needs)
            self.reached.append(bits)
            self.inputs.append(roots)

    def _delay_loads(self) -> None:
        """Delays loads from the host's memory until their user's other operands exist."""
        for index, op in enumerate(self.ops):
            if not op.traits.loads:
                continue
            user, own = self._first_user(index)
            others = set()
            for need in self.needs[user] - {own} if user is not None else ():
                others |= self.needs[need] if self.ops[need].traits.loads else {need}
            for other in others - {index}:
                if not self.reached[other] >> index & 1:
                    self._before(other, index)

    def _first_user(self, index: int) -> tuple[int | None, int]:
        """The first op that uses the value, and the op it reads: this one, or a view of it."""
        while users := self.users[index]:
            user = min(users)
            if not self.ops[user].traits.view:
                return user, index
            index = user
        return None, index

    def _order_effects(self) -> None:
        effects = [index for index, op in enumerate(self.ops) if has_effect(op)]
        for first, second in itertools.pairwise(effects):
            self._before(first, second)

    def _order_updates(self, ties: Iterable[tuple[Value, Value]]) -> None:
        for index, op in enumerate(self.ops):
            if op.traits.update:
                old = op.operands[0]
                self._after_readers(index, self.root.get(old, old))
        for old, new in ties:
            made = self.root.get(new, new)
            producer = self.where.get(made)
            if producer is None:
                continue
            self._after_readers(producer, old)
            op = self.ops[producer]
            if old in self.inputs[producer] and (op.name == "fused" or op.traits.update):
                self.allocated[producer] -= made.size_bytes
                self.in_place.add(producer)

    def _after_readers(self, writer: int, value: Value) -> None:
        for reader in self.readers.get(value, ()):
            if reader != writer and not self.reached[reader] >> writer & 1:
                self._before(reader, writer)

    def _before(self, first: int, second: int) -> None:
        if first in self.needs[second]:
            return
        self.needs[second].add(first)
        self.users[first].add(second)
        pending = [(second, self.reached[first] | (1 << first))]
        while pending:
            index, bits = pending.pop()
            if self.reached[index] | bits != self.reached[index]:
                self.reached[index] |= bits
                pending.extend((user, self.reached[index]) for user in self.users[index])

    # Orders --------------------------------------------------------------------------------------

    def indices(self, order: str) -> list[int]:
        """Indices of the ops; `order` as the option `schedule`."""
        if order == "liveness":
            return self._greedily()
        chosen = self._in_own_order()
        if order == "program":
            return chosen
        peak_bytes = self._peak_bytes(chosen)
        if peak_bytes > SMALL_BYTES:
            greedy = self._greedily()
            if self._peak_bytes(greedy) < WORTHWHILE * peak_bytes:
                return greedy
        return chosen

    def _in_own_order(self) -> list[int]:
        """The user's order, but ops that update an old value in place do not wait."""
        waiting = [len(needs) for needs in self.needs]
        ready = [
            (index not in self.in_place, index) for index, count in enumerate(waiting) if count == 0
        ]
        order = []
        while ready:
            _, index = heapq.heappop(ready)
            order.append(index)
            for user in self.users[index]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(ready, (user not in self.in_place, user))
        return order

    def _uses(self) -> dict[Value, set[int]]:
        """The ops that need each root value that the block makes; len(ops) stands for its end."""
        uses: dict[Value, set[int]] = {}
        results = [self.root.get(value, value) for value in self.block.results]
        for index, roots in enumerate([*self.inputs, results]):
            for root in roots:
                if root in self.where:
                    uses.setdefault(root, set()).add(index)
        return uses

    def _peak_bytes(self, order: list[int]) -> int:
        uses = self._uses()
        live = peak = 0
        for index in order:
            live += self.allocated[index]
            peak = max(peak, live)
            for root in set(self.inputs[index]) & uses.keys():
                uses[root].discard(index)
                if not uses[root]:
                    live -= root.size_bytes
        return peak

    def _greedily(self) -> list[int]:
        """Always takes the ready op that adds the fewest bytes; ties go to the user's order."""
        uses = self._uses()
        waiting = [len(needs) for needs in self.needs]

        def added(index: int) -> int:
            known = set(self.inputs[index]) & uses.keys()
            freed = sum(root.size_bytes for root in known if len(uses[root]) == 1)
            return self.allocated[index] - freed

        ready = [(added(i), i) for i, count in enumerate(waiting) if count == 0]
        heapq.heapify(ready)
        done = [False] * len(self.ops)
        order = []
        while ready:
            _, index = heapq.heappop(ready)
            if done[index]:
                continue
            done[index] = True
            order.append(index)
            for root in set(self.inputs[index]) & uses.keys():
                uses[root].discard(index)
                if len(uses[root]) == 1:
                    (last,) = uses[root]
                    if last < len(self.ops) and waiting[last] == 0:
                        heapq.heappush(ready, (added(last), last))
            for user in self.users[index]:
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(ready, (added(user), user))
        return order


def _passed_on(op: Op) -> list[tuple[Value, Value]]:
    """Pairs (operand, result) that share memory."""
    if op.traits.view:
        return [(op.operands[0], op.results[0])]
    is_barrier = op.name == "optimization_barrier"
    return list(zip(op.operands, op.results, strict=True)) if is_barrier else []
