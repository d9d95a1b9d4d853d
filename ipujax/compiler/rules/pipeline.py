"""Pipelines, and copies between IPUs.

Each run of a pipeline is a function of the graph. The program is a series of time slots: those that
fill the pipeline, a Repeat in which all runs work, those that drain it. A slot calls the runs that
have a micro-batch, each on its own IPU, and then moves their results to where they are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ipujax.compiler.ir import Op, Value, declare
from ipujax.compiler.pipelines import Edge, Run
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, Variable
from ipujax.compiler.rules.control_flow import (
    carried_variables,
    copy_together,
    variable_of,
    write_in_place,
)
from ipujax.compiler.rules.registry import rule

declare(
    "copy_to_ipu",
    moves=True,
    integers64=True,
    replicated="programs are divided before ops have IPUs",
)
declare("pipeline", control_flow=True, moves=True, replicated="a loop becomes one after division")


@rule("copy_to_ipu")
def copy_to_ipu(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """A variable on the other IPU, mapped as the operand is."""
    tensor, debug = builder.tensor(op.operands[0]), builder.debug(op)
    poputil = ipu.poplar.poputil
    ipus = builder.whole_graph
    number = builder.ipu_order[op.attrs["ipu"]]
    return [poputil.copyToIpu(ipus, tensor, builder.program, number, debug)]


@rule("pipeline")
def pipeline(builder: Builder, op: Op) -> Sequence[Variable | None]:
    return _Pipeline(builder, op).results


@dataclass(slots=True)
class _Move:
    """The move of one value at the end of a slot."""

    source: Variable
    target: Variable
    capacity: int  #: micro-batches that wait in a FIFO on the way
    size_bytes: int


class _Pipeline:
    """One pipeline while it is lowered; `results` are the variables of its slots."""

    def __init__(self, builder: Builder, op: Op):
        self.builder = builder
        self.outer = builder.program
        self.op = op
        self.debug = builder.debug(op)
        self.runs: list[Run] = op.attrs["runs"]
        self.results = carried_variables(builder, op, are_accumulators=True)
        self.landings: dict[tuple[int, int, int], Variable] = {}
        self.inputs = [self._inputs(index) for index in range(len(self.runs))]
        self.outputs: list[list[Variable]] = []
        self.functions = [self._function(index) for index in range(len(self.runs))]
        indices = range(len(self.runs))
        self.arrived = [self._arrived(index) for index in indices]
        self.kept = [self._kept(index) for index in indices]
        self.passed = [self._passed(index) for index in indices]
        self.sent = [self._sent(index) for index in indices]
        self._add_slots()

    # Runs ----------------------------------------------------------------------------------------

    def _inputs(self, index: int) -> list[Variable]:
        """The variables from which a run reads the values of its edges.

        A value from another IPU lands in one variable on the reader's IPU. Readers in the next slot
        read it there; for later readers it moves on at the end of that slot. The host's memory is
        the same for all IPUs.
        """
        run, region = self.runs[index], self.op.regions[index]
        made = []
        for edge, value in zip(run.edges, region.args[len(run.slots) :], strict=True):
            if self.runs[edge.producer].ipu == run.ipu or value.is_remote:
                tensor = self._variable(value)
            else:
                key = (edge.producer, edge.result, run.ipu)
                if key not in self.landings:
                    self.landings[key] = self._variable(value)
                tensor = self._variable(value) if edge.capacity else self.landings[key]
            self.builder.tensors[value] = tensor
            made.append(tensor)
        return made

    def _variable(self, value: Value) -> Variable:
        variable = variable_of(self.builder, value, self.debug)
        assert variable is not None, "tokens stay in their run"
        return variable

    def _function(self, index: int) -> ipu.poplar.Function:
        builder, region, run = self.builder, self.op.regions[index], self.runs[index]
        slots = [self.results[slot] for slot in run.slots]
        for value, variable in zip(region.args, slots, strict=False):
            if variable is not None:
                builder.tensors[value] = variable
        body = ipu.poplar.program.Sequence(self.debug)
        keys = builder.rounding.iterations(self.op, [region], body, self.outer)
        with builder.inside(body), builder.on(run.ipu), keys:
            write_in_place(builder, region, slots)
            results = builder.lower(region)
            made = []
            for output in results[len(slots) :]:
                assert output is not None, "tokens stay in their run"
                made.append(self._output(output, [*slots, *self.inputs[index]]))
            copy_together(builder, results[: len(slots)], slots, self.debug)
        self.outputs.append(made)
        return builder.whole_graph.addFunction(body)

    def _output(self, value: Variable, others: list[Variable | None]) -> Variable:
        """The variable that readers take at the end of the slot; copies the value if needed."""
        is_own = not isinstance(value, ipu.poplar.Tensor) and value not in others
        return value if is_own else self.builder.put_aside(value, self.debug)

    # Between runs --------------------------------------------------------------------------------

    def _arrived(self, producer: int) -> ipu.Sequence:
        """Moves on the results sent to other IPUs a period ago, before the run makes new ones."""
        moves: dict[int, list[_Move]] = {}
        for run, edge, value, target in self._edges(producer):
            landing = self.landings.get((producer, edge.result, run.ipu))
            if landing is not None and edge.capacity:
                waiting = edge.capacity - 1  # the landing has the value before the last
                move = _Move(landing, target, waiting, value.size_bytes)
                moves.setdefault(run.ipu, []).append(move)
        return self._moved(moves)

    def _kept(self, producer: int) -> ipu.Sequence:
        """Puts the run's results into FIFOs on its IPU."""
        run = self.runs[producer]
        made = self.outputs[producer]
        moves = [
            _Move(made[edge.result], target, edge.capacity, value.size_bytes)
            for reader, edge, value, target in self._edges(producer)
            if reader.ipu == run.ipu and edge.capacity
        ]
        return self._moved({run.ipu: moves})

    def _undefined(self, sources: Iterable[Variable]) -> ipu.Sequence:
        """Marks values as undefined, which FIFOs take in slots without a micro-batch."""
        program = ipu.poplar.program.Sequence(self.debug)
        for source in sources:
            if isinstance(source, ipu.poplar.Tensor):
                program.add(ipu.poplar.program.WriteUndef(source, self.debug))
        return program

    def _passed(self, producer: int) -> ipu.Sequence:
        """Moves the run's results to readers on its IPU that read them in the next slot."""
        run = self.runs[producer]
        made = self.outputs[producer]
        moves = [
            _Move(made[edge.result], target, 0, value.size_bytes)
            for reader, edge, value, target in self._edges(producer)
            if reader.ipu == run.ipu and not edge.capacity
        ]
        return self._moved({run.ipu: moves})

    def _sent(self, producer: int) -> ipu.Sequence:
        """Copies the run's results to other IPUs."""
        program = ipu.poplar.program.Sequence(self.debug)
        with self.builder.inside(program):
            for (maker, result, _), landing in self.landings.items():
                if maker == producer:
                    self.builder.copy(self.outputs[maker][result], landing, self.debug)
        return program

    def _edges(self, producer: int) -> Iterator[tuple[Run, Edge, Value, Variable]]:
        """The run's results for others: the reader, its edge, its argument, and its variable."""
        for run, region, inputs in zip(self.runs, self.op.regions, self.inputs, strict=True):
            values = region.args[len(run.slots) :]
            for edge, value, target in zip(run.edges, values, inputs, strict=True):
                if edge.producer == producer:
                    yield run, edge, value, target

    def _moved(self, moves: dict[int, list[_Move]]) -> ipu.Sequence:
        """Writes the moves on each IPU; FIFOs of the same length share their position."""
        program = ipu.poplar.program.Sequence(self.debug)
        for number, own in moves.items():
            with self.builder.inside(program), self.builder.on(number):
                for length in sorted({move.capacity for move in own}):
                    equal = [move for move in own if move.capacity == length]
                    if length:
                        self._turn(equal, length)
                        continue
                    for move in equal:
                        self.builder.copy(move.source, move.target, self.debug)
        return program

    def _turn(self, moves: list[_Move], length: int) -> None:
        """Takes the oldest value out of each FIFO and puts the new one in its place."""
        builder, unsigned = self.builder, ipu.poplar.UNSIGNED_INT
        place = builder.variable(unsigned, [1], self.debug)
        ipu.popops.zero(builder.graph, place, self.outer, self.debug)
        least = self.op.attrs["offload"]
        offloaded: dict[tuple[ipu.Type, int], list[_Move]] = {}
        for move in moves:
            source = move.source
            if not isinstance(source, ipu.poplar.Tensor):
                self._turn_buffer(source, move.target, place, length)
            elif least is not None and move.size_bytes >= least:
                key = (source.elementType(), source.numElements())
                offloaded.setdefault(key, []).append(move)
            else:
                self._turn_on_tiles(move, place, length)
        for alike in offloaded.values():
            self._turn_offloaded(alike, place, length)
        self._advance(place, length)

    def _turn_buffer(
        self, source: ipu.RemoteBuffer, target: Variable, place: ipu.Tensor, length: int
    ) -> None:
        """Both values and their FIFO lie in the host's memory."""
        assert not isinstance(target, ipu.poplar.Tensor)
        builder, popx = self.builder, ipu.popx
        elements = source.numElements() * source.getRepeats()
        fifo = builder.add_buffer(source.elementType(), elements, length)
        popx.readEntry(builder.graph, fifo, target, place, builder.program, self.debug)
        popx.writeEntry(builder.graph, source, fifo, place, builder.program, self.debug)

    def _turn_offloaded(self, moves: list[_Move], place: ipu.Tensor, length: int) -> None:
        """FIFOs of alike values share one remote buffer, each with its own entries."""
        builder, copy = self.builder, ipu.poplar.program.Copy
        first = moves[0].source
        assert isinstance(first, ipu.poplar.Tensor)
        buffer = builder.add_buffer(first.elementType(), first.numElements(), length * len(moves))
        for index, move in enumerate(moves):
            assert isinstance(move.source, ipu.poplar.Tensor)
            assert isinstance(move.target, ipu.poplar.Tensor)
            entry = self._plus(place, index * length)
            builder.program.add(copy(buffer, move.target, entry, self.debug))
            builder.program.add(copy(move.source, buffer, entry, self.debug))

    def _plus(self, place: ipu.Tensor, number: int) -> ipu.Tensor:
        if number == 0:
            return place
        expr, unsigned = ipu.popops.expr, ipu.poplar.UNSIGNED_INT
        return self.builder.each(
            place, lambda x: expr.Add(x, expr.Const(unsigned, number)), self.debug
        )

    def _turn_on_tiles(self, move: _Move, place: ipu.Tensor, length: int) -> None:
        builder, popops = self.builder, ipu.popops
        graph, program = builder.graph, builder.program
        assert isinstance(move.source, ipu.poplar.Tensor)
        assert isinstance(move.target, ipu.poplar.Tensor)
        shape = list(move.target.shape)
        buffer = self._buffer(move.target.elementType(), [length, *shape])
        oldest = popops.dynamicSlice(graph, buffer, place, [0], [1], program, self.debug)
        builder.copy(oldest.reshape(shape), move.target, self.debug)
        newest = move.source.reshape([1, *shape])
        popops.dynamicUpdate(graph, buffer, newest, place, [0], [1], program, self.debug)

    def _advance(self, place: ipu.Tensor, length: int) -> None:
        expr, unsigned = ipu.popops.expr, ipu.poplar.UNSIGNED_INT
        now = expr.PlaceHolder(1)
        last = expr.Equal(now, expr.Const(unsigned, length - 1))
        following = expr.Add(now, expr.Const(unsigned, 1))
        expression = expr.Select(expr.Const(unsigned, 0), following, last)
        (turned,) = self.builder.map([expression], [place], self.debug)
        self.builder.copy(turned, place, self.debug)

    def _buffer(self, type_: ipu.Type, shape: list[int]) -> ipu.Tensor:
        """A FIFO; each tile holds its part of every entry, so entries do not change tiles."""
        graph = self.builder.graph
        name = ipu.poplar.DebugContext(f"{self.debug.name}/stash", self.debug.source)
        buffer = graph.addVariable(type_, shape, name)
        ipu.popx.setVariableUse(graph, buffer, ipu.popx.VariableUse.STASH)
        for index in range(shape[0]):
            ipu.poplar.poputil.mapTensorLinearly(graph, buffer.slice(index, index + 1, 0))
        return buffer

    # Time ----------------------------------------------------------------------------------------

    def _add_slots(self) -> None:
        """Adds slots that fill, a Repeat of periods where each run works once, slots that drain."""
        period, program = self.op.attrs["period"], ipu.poplar.program
        last = max(run.place for run in self.runs)
        num_slots = period * (self.op.attrs["micro_batches"] - 1) + last + 1
        num_periods = max(0, (num_slots - 2 * last) // period)
        slot = 0
        while slot < num_slots:
            if slot == last and num_periods > 1:
                body = program.Sequence(self.debug)
                for phase in range(period):
                    self._add_slot(body, slot + phase)
                self.builder.program.add(program.Repeat(num_periods, body, self.debug))
                slot += period * num_periods
            else:
                self._add_slot(self.builder.program, slot)
                slot += 1
        self._add_slot(self.builder.program, num_slots)

    def _add_slot(self, program: ipu.Sequence, slot: int) -> None:
        """Adds the calls of a slot, then its moves. FIFOs turn without a micro-batch, too.

        Readers run before makers, so that a value may lie where its maker puts the next one.
        """
        period = self.op.attrs["period"]
        working: list[int] = []
        turning = [i for i, run in enumerate(self.runs) if (slot - run.place) % period == 0]
        for index in reversed(turning):
            if not self._works(index, slot - period):
                landings = (at for (run, _, _), at in self.landings.items() if run == index)
                program.add(self._undefined(landings))
            program.add(self.arrived[index])
            if self._works(index, slot):
                program.add(ipu.poplar.program.Call(self.functions[index], self.debug))
                working.append(index)
        for index in turning:
            if index not in working:
                program.add(self._undefined(self.outputs[index]))
            program.add(self.kept[index])
        for moved in (self.passed, self.sent):  # copies between IPUs come together, as one exchange
            for index in reversed(working):
                program.add(moved[index])

    def _works(self, index: int, slot: int) -> bool:
        """Whether a run has a micro-batch in one of its slots."""
        number = (slot - self.runs[index].place) // self.op.attrs["period"]
        return 0 <= number < self.op.attrs["micro_batches"]
