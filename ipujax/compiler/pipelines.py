"""Turns loops over micro-batches into pipelines, whose stages work at the same time.

Before, with F on IPU 0 and 1, B the backward pass:
  %g = while(0, %zero) {trip_count = 16}  body: %1 = F0(k); %2 = F1(%1); %3 = B1(%2); ... = B0(%3)
After:
  %g = pipeline(0, 0, ..., %zero) {runs = [F0 at 0, F1 at 1, B1 at 2, B0 at 3]}
       regions: F0: (k) -> (k + 1, %1)    F1: (%1) -> %2    B1: (%2) -> %3    B0: (%3, %g) -> %g'
A run is one region: the ops of one stage and direction. Each counts micro-batches itself. In slot t
of the "grouped" schedule the run at place p works on micro-batch t - p; values go from run to run
through copies at the ends of slots, and through a FIFO if the reader is later than the next slot.
With the "interleaved" schedule a run works in every second slot.

A loop without such a form (a stage reads state before a later one changes it) stays a loop: one
IPU works at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ipujax.compiler.dtypes import TOKEN
from ipujax.compiler.ir import Block, Op, Value, inputs_of, walk_blocks
from ipujax.compiler.recomputation import computed_again, divide_barriers, latest_place
from ipujax.compiler.rounding_streams import rounding_of
from ipujax.host.logs import logger_of

log = logger_of("compiler")

#: Slots from one micro-batch to the next, by schedule.
PERIODS = {"grouped": 1, "interleaved": 2}
#: Ops with at most this many elements that depend only on counters are recomputed in every run.
MAX_COUNTED = 16

#: Elementwise ops that a later run recomputes instead of having their results wait for it.
CHEAP = {"abs", "add", "and", "clamp", "compare", "convert", "maximum", "minimum", "multiply"}
CHEAP |= {"negate", "not", "or", "select", "sign", "subtract", "xor"}
#: Removing one FIFO is worth this many more bytes in the others: an estimate, not measured.
FIFO_BYTES = 64 * 1024


@dataclass(slots=True)
class Edge:
    """A value that one run makes and another reads."""

    producer: int  #: index of the run
    result: int  #: index among the results of its region
    capacity: int  #: micro-batches that a FIFO between them holds; 0: read in the next slot


@dataclass(slots=True)
class Run:
    """One region of a pipeline.

    Its arguments are values that it carries from micro-batch to micro-batch, then the values of its
    edges; its results are the carried values, then values that others read. The op's operands and
    results are slots: one for each value that a run carries.
    """

    place: int  #: the time slot in which it has the first micro-batch
    ipu: int
    slots: list[int] = field(default_factory=list)  #: of the values that it carries
    edges: list[Edge] = field(default_factory=list)


class NotAPipeline(Exception):  # noqa: N818 (not an error: the loop stays a loop)
    """Why the loop stays as it is."""


def make_pipelines(blocks: Iterable[Block]) -> None:
    """Replaces loops over micro-batches whose stages are on several IPUs."""
    for block in blocks:
        for index, op in enumerate(block.ops):
            if not _is_pipeline(op):
                continue
            try:
                block.ops[index] = _Splitter(op).split()
            except NotAPipeline as reason:
                at = f" at {op.source.line}" if op.source.line else ""
                log.warning("the pipeline%s runs one stage at a time: %s", at, reason)


def _is_pipeline(op: Op) -> bool:
    placed = op.source.placed
    return (
        op.name == "while"
        and placed.pipeline in PERIODS
        and placed.stage is None
        and "trip_count" in op.attrs
        and len({inner.ipu for inner in op.regions[1].ops}) > 1
    )


class _Splitter:
    """Divides the body of one loop among runs."""

    def __init__(self, loop: Op):
        self.loop = loop
        self.body = loop.regions[1]
        divide_barriers(self.body, part_of=id)
        self.period = PERIODS[loop.source.placed.pipeline]
        self.makers = {value: op for op in self.body.ops for value in op.results}
        self.counters = [i for i in range(len(self.body.args)) if self._is_counter(i)]
        self.slot_values = set(self.body.args)
        self.counter_values = {self.body.args[index] for index in self.counters}
        self.counted = self._counted()
        self._known_makers: dict[Op, list[Op]] = {}
        self.read = self._read()
        self.operands = {op: op.operands for op in self.body.ops}
        self.places: dict[Op, tuple[int, int]] = {}  #: the time slot, and the IPU
        #: Ops on results that two IPUs make in one slot: done where used, from this slot on.
        self.joining: dict[Op, int] = {}
        self._find_places()
        keys = sorted(set(self.places.values()))
        self.runs = [Run(place, ipu) for place, ipu in keys]
        self.run_of = {op: keys.index(key) for op, key in self.places.items()}
        readers = range(len(self.runs))
        self.again = {(op, reader) for reader in readers for op in self._joined(reader)}
        self._check_order()
        self.again |= {(op, reader) for reader in readers for op in self._recomputed(reader)}

    # What every run counts for itself ------------------------------------------------------------

    def _is_counter(self, index: int) -> bool:
        before, after = self.body.args[index], self.body.results[index]
        maker = self.makers.get(after)
        return (
            maker is not None
            and maker.name == "add"
            and before.shape == ()
            and before in maker.operands
            and any(value.is_splat for value in maker.operands)
        )

    def _counted(self) -> set[Op]:
        """Small ops that depend only on counters."""
        known = set(self.counter_values)
        found: set[Op] = set()
        for op in self.body.ops:
            is_small = all(value.num_elements <= MAX_COUNTED for value in op.results)
            inputs = inputs_of(op)
            if (
                inputs
                and is_small
                and not (op.regions or op.traits.effect)
                and op.source.placed.stage is None
                and all(value in known for value in inputs)
            ):
                found.add(op)
                known.update(op.results)
        return found

    def _read(self) -> set[Op]:
        """Ops that read a micro-batch's part of a value that stays the same for the whole loop."""
        changing = {*self.body.args, *self.makers} - self.counter_values
        for op in self.counted:
            changing.difference_update(op.results)
        found: set[Op] = set()
        for op in self.body.ops:
            reads = op.traits.view or op.traits.loads or op.traits.reads_part
            if reads and changing.isdisjoint(inputs_of(op)) and op not in self.counted:
                found.add(op)
                changing.difference_update(op.results)
        return found

    # Places --------------------------------------------------------------------------------------

    def _find_places(self) -> None:
        """Ops of a stage get its place; others that of the last op they need, or of a user."""
        stages = [op.source.placed for op in self.body.ops if op.source.placed.stage is not None]
        if not stages:
            raise NotAPipeline("it calls no ipu.stage, and no strategy is applied to its blocks")
        num_stages = 1 + max(placed.stage or 0 for placed in stages)
        ops = [op for op in self.body.ops if op not in self.counted]
        again = computed_again(ops, self._makers)
        joining = self.joining
        for op in ops:
            if op in again:
                continue
            placed = op.source.placed
            makers = self._makers(op)
            known = {self.places[maker] for maker in makers if maker in self.places}
            slot = max((slot for slot, _ in known), default=0)
            if placed.stage is not None:
                backward = placed.direction == "backward"
                own = 2 * num_stages - 1 - placed.stage if backward else placed.stage
                self.places[op] = (max(own, slot), op.ipu)
                continue
            last = [place for place in known if place[0] == slot]
            joined = [joining[maker] for maker in makers if maker in joining]
            if len(last) > 1 or joined:
                joining[op] = max([slot + (len(last) > 1), *joined])
            elif last:
                self.places[op] = last[0]
        users: dict[Op, list[tuple[Op | None, tuple[int, int]]]] = {op: [] for op in ops}
        for op in reversed(ops):
            if op in again:
                end = (2 * num_stages - 1 - (op.source.placed.stage or 0), op.ipu)
                self.places[op] = latest_place(op, users[op] or [(None, end)], again)
            elif op not in self.places:
                least = (joining.get(op, 0), op.ipu)
                self.places[op] = min((place for _, place in users[op]), default=least)
            for maker in self._makers(op):
                users[maker].append((op, self.places[op]))

    def _is_late(self, maker: Op, run: int) -> bool:
        """Whether another run makes its result too late for this one."""
        return self.run_of[maker] != run and self.places[maker][0] >= self.runs[run].place

    def _joined(self, reader: int) -> set[Op]:
        """Ops on results of several IPUs that several runs use at one time: each run does them."""
        found: set[Op] = set()
        pending = [op for op, run in self.run_of.items() if self.joining and run == reader]
        while pending:
            for maker in self._makers(pending.pop()):
                is_pure = not (maker.regions or maker.traits.effect)
                if maker in self.joining and is_pure and self._is_late(maker, reader):
                    pending += [maker] if maker not in found else []
                    found.add(maker)
        return found

    def _check_order(self) -> None:
        for op, run in (*self.run_of.items(), *self.again):
            for value in inputs_of(op):
                maker = self.makers.get(value)
                if value.dtype == TOKEN and maker is not None and self.run_of[maker] != run:
                    raise NotAPipeline("effects of several stages are ordered")
            for maker in self._makers(op):
                if maker in self.read and self.is_read_by(maker, self.runs[run]):
                    continue
                if (maker, run) not in self.again and self._is_late(maker, run):
                    raise NotAPipeline(
                        f"{op.name} of {_where(op)} needs {maker.name} of {_where(maker)}, which "
                        "another IPU computes at the same time"
                    )

    def _recomputed(self, reader: int) -> set[Op]:
        """Cheap ops of earlier runs on its IPU that a run repeats, so that FIFOs hold less."""
        waiting = [
            value
            for op, run in self.run_of.items()
            if run == reader
            for value in inputs_of(op)
            if self._waits(value, reader)
        ]
        kept = self._kept(list(dict.fromkeys(waiting)), reader)
        found: set[Op] = set()
        pending = [value for value in waiting if value not in kept]
        while pending:
            value = pending.pop()
            if value not in kept and self._waits(value, reader):
                found.add(self.makers[value])
                pending += self.makers[value].operands
        return found

    def _kept(self, waiting: list[Value], reader: int) -> set[Value]:
        """The values that wait for the reader; cheap ops compute the other ones from them.

        Begins with all waiting values, then replaces those that follow from one value by that
        value, as long as this saves bytes.
        """
        followers: dict[Value, list[Value]] = {}
        for value in waiting:
            for source in self._sources(value, reader):
                followers.setdefault(source, []).append(value)
        for value in list(followers):
            for source in self._sources(value, reader):
                followers[source].append(value)
        order = [value for value in self.makers if value in followers]
        kept = {value for value in waiting if not self._follows(value, None, reader, {})}
        while True:
            best, most = None, 0
            for source in order:
                known: dict[Value, bool] = {}
                gone = {
                    value
                    for value in followers[source]
                    if value in kept and self._follows(value, source, reader, known)
                }
                saved = _stash_bytes(gone) - (0 if source in kept else _stash_bytes([source]))
                if saved > most:
                    best, most = (source, gone), saved
            if best is None:
                return kept
            kept = kept - best[1] | {best[0]}

    def _waits(self, value: Value, reader: int) -> bool:
        """Whether an earlier run on the reader's IPU makes it."""
        maker = self.makers.get(value)
        run = self.run_of.get(maker) if maker is not None else None
        if run is None or maker in self.read or run == reader:
            return False
        return self.runs[run].ipu == self.runs[reader].ipu

    def _sources(self, value: Value, reader: int) -> set[Value]:
        """The values that wait for the reader and give this value by cheap ops."""
        found: set[Value] = set()
        pending = [value]
        while pending:
            maker = self.makers.get(pending.pop())
            if maker is not None and _is_cheap(maker):
                fresh = [v for v in maker.operands if v.const is None and v not in found]
                found.update(fresh)
                pending += fresh
        return {source for source in found if self._waits(source, reader)}

    def _follows(
        self, value: Value, given: Value | None, reader: int, known: dict[Value, bool]
    ) -> bool:
        """Whether cheap ops make it from the given value and values the reader has anyway."""
        if value is given or value.const is not None:
            return True
        if value in known:
            return known[value]
        maker = self.makers.get(value)
        if maker is None or maker in self.counted or maker in self.read:
            known[value] = value not in self.slot_values
        else:
            known[value] = (
                _is_cheap(maker)
                and self._waits(value, reader)
                and all(self._follows(v, given, reader, known) for v in maker.operands)
            )
        return known[value]

    def is_read_by(self, op: Op, run: Run) -> bool:
        """Whether the run does such a read itself: it needs no copy, or would get it too late."""
        slot, ipu = self.places[op]
        return ipu == run.ipu or slot >= run.place

    def _makers(self, op: Op) -> list[Op]:
        """The ops of the body that it needs, except those on counters."""
        if op not in self._known_makers:
            found = (self.makers.get(value) for value in inputs_of(op))
            self._known_makers[op] = [m for m in found if m is not None and m not in self.counted]
        return self._known_makers[op]

    # Regions -------------------------------------------------------------------------------------

    def split(self) -> Op:
        self.owner: dict[Value, int] = {}  #: the run that carries each value
        carried = self._carried()
        regions = [_Region(self, index, carried[index]) for index in range(len(self.runs))]
        for region in regions:
            region.take_in(regions)
        made = Op("pipeline", [], {}, self.loop.source, [region.block for region in regions])
        made.attrs = {"micro_batches": self.loop.attrs["trip_count"], "period": self.period}
        made.attrs |= {"runs": self.runs, "offload": self.loop.source.placed.offload}
        made.attrs |= rounding_of(self.loop)
        for region in regions:
            region.finish(made)
        for index, value in enumerate(made.results):
            value.op, value.index = made, index
        return made

    def _carried(self) -> list[list[int]]:
        """For each run the slots that it alone changes; later runs may read them, too."""
        readers: dict[Value, set[int]] = {}
        for op, run in (*self.run_of.items(), *self.again):
            for value in inputs_of(op):
                readers.setdefault(value, set()).add(run)
        found: list[list[int]] = [[] for _ in self.runs]
        for index, (before, after) in enumerate(
            zip(self.body.args, self.body.results, strict=True)
        ):
            if index in self.counters:
                continue
            maker = self.makers.get(after)
            if after in self.slot_values:
                raise NotAPipeline(f"no stage makes {after!r}, which the next micro-batch is given")
            own = 0 if maker is None or maker in self.counted else self.run_of[maker]
            users = readers.get(before, {own})
            owner = own if len(users) > 1 else max(users)
            least = self.runs[own].place
            if any(user != own and self.runs[user].place <= least for user in users):
                raise NotAPipeline(
                    f"{before!r} goes from one micro-batch to the next, and is read before the "
                    "stage that changes it"
                )
            self.owner[before] = owner
            found[owner].append(index)
        return found


class _Region:
    """The block of one run while it is made."""

    def __init__(self, splitter: _Splitter, index: int, carried: list[int]):
        self.splitter = splitter
        self.index = index
        self.run = splitter.runs[index]
        self.slots = carried
        self.block = Block(args=[splitter.body.args[slot] for slot in carried])
        self.repeated: list[Op] = []  #: ops that other runs have, too
        self.local: dict[Value, Value] = {}  #: their results, and counters
        self.inputs: dict[Value, Value] = {}
        self.outputs: dict[Value, int] = {}

    def take_in(self, regions: list[_Region]) -> None:
        """Adds its ops, their operands, and the values for the next micro-batch."""
        splitter, body = self.splitter, self.splitter.body
        own = [op for op in body.ops if splitter.run_of.get(op) == self.index]
        for op in own:
            self._rename(op, regions)
        results = [self._here(body.results[slot], regions) for slot in self.slots]
        if self.index == 0:  # the final values of the loop's counters may be used
            for slot in splitter.counters:
                self._here(body.args[slot], regions)
        counters = [slot for slot in splitter.counters if body.args[slot] in self.local]
        results += [self._here(body.results[slot], regions) for slot in counters]
        self.slots = [*self.slots, *counters]
        self.block.args += [self.local[body.args[slot]] for slot in counters]
        self.block.ops = [*self.repeated, *own]
        self.block.results = results

    def _rename(self, op: Op, regions: list[_Region]) -> None:
        op.operands = [self._here(value, regions) for value in op.operands]
        for region in op.regions:
            for block in walk_blocks(region):
                block.results = [self._here(value, regions) for value in block.results]
                for inner in block.ops:
                    inner.operands = [self._here(value, regions) for value in inner.operands]

    def _here(self, value: Value, regions: list[_Region]) -> Value:
        """The value in this region; values of another run come through an edge."""
        found = self.local.get(value)
        if found is not None:
            return found
        splitter = self.splitter
        if value in splitter.counter_values:
            self.local[value] = Value(value.shape, value.dtype)
            return self.local[value]
        maker = splitter.makers.get(value)
        run = splitter.owner.get(value) if maker is None else splitter.run_of.get(maker)
        if self.index == run or (maker is None and run is None):
            return value
        if maker is not None and self._is_repeated(maker):
            return self._repeat(maker, value, regions)
        assert run is not None
        if value not in self.inputs:
            other = regions[run]
            apart = self.run.place - other.run.place
            result = other.outputs.setdefault(value, len(other.outputs))
            self.run.edges.append(Edge(other.index, result, (apart - 1) // splitter.period))
            self.inputs[value] = Value(value.shape, value.dtype)
            self.inputs[value].is_remote = value.is_remote
        return self.inputs[value]

    def _is_repeated(self, maker: Op) -> bool:
        splitter = self.splitter
        is_read_here = maker in splitter.read and splitter.is_read_by(maker, self.run)
        return maker in splitter.counted or is_read_here or (maker, self.index) in splitter.again

    def _repeat(self, maker: Op, value: Value, regions: list[_Region]) -> Value:
        given = self.splitter.operands[maker]  # by now the maker itself may be in its region
        operands = [self._here(operand, regions) for operand in given]
        copy = Op(maker.name, operands, maker.attrs, maker.source)
        for result in maker.results:
            self.local[result] = copy.add_result(result.shape, result.dtype)
            self.local[result].is_remote = result.is_remote
        self.repeated.append(copy)
        return self.local[value]

    def finish(self, made: Op) -> None:
        """Adds its slots to the op, and its other results for their readers."""
        loop = self.splitter.loop
        for slot in self.slots:
            self.run.slots.append(len(made.operands))
            made.operands.append(loop.operands[slot])
            is_first = loop.results[slot] not in made.results
            value = loop.results[slot]
            made.results.append(value if is_first else Value(value.shape, value.dtype))
            made.results[-1].ipu = self.run.ipu
            made.results[-1].is_remote = value.is_remote
        self.block.args += self.inputs.values()
        self.block.results += self.outputs
        for block in walk_blocks(self.block):
            for op in block.ops:
                op.ipu = self.run.ipu
            for value in (*block.args, *(v for op in block.ops for v in op.results)):
                value.ipu = self.run.ipu


def _is_cheap(op: Op) -> bool:
    """Whether computing it again costs less than keeping its result."""
    return (op.traits.elementwise and op.name in CHEAP) or op.traits.view


def _stash_bytes(values: Iterable[Value]) -> int:
    return sum(value.size_bytes + FIFO_BYTES for value in values)


def _where(op: Op) -> str:
    placed = op.source.placed
    return f"stage {placed.stage_name!r}" if placed.stage_name else "no stage"
