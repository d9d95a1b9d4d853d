"""Pipelines and what goes from IPU to IPU.

Each run of a pipeline is a function of the graph. The program is a series of time slots: those that
fill the pipeline, a Repeat in which all runs work, those that drain it. A slot calls the runs that
have a micro-batch, on IPUs of their own, and then moves what they made to where it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ipujax.compiler.ir import Op, Value, declare
from ipujax.compiler.pipelines import Edge, Run
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.control_flow import copy_together, variable_of
from ipujax.compiler.rules.registry import rule

declare("copy_to_ipu", moves=True, replicated="programs are divided before ops have IPUs")
declare("pipeline", control_flow=True, moves=True, replicated="a loop becomes one after division")


@rule("copy_to_ipu")
def copy_to_ipu(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """A variable on the other IPU, mapped as the operand is."""
    return [_sent(builder, builder.tensor(op.operands[0]), op.attrs["ipu"], builder.debug(op))]


def _sent(
    builder: Builder, tensor: ipu.Tensor, number: int, debug: ipu.DebugContext
) -> ipu.Tensor:
    poputil = ipu.poplar.poputil
    return poputil.copyToIpu(builder.whole_graph, tensor, builder.program, number, debug)


@rule("pipeline")
def pipeline(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    return _Pipeline(builder, op).results


@dataclass(slots=True)
class _Fifo:
    """Buffers of one length on one IPU, all at the same place."""

    index: ipu.Tensor
    moves: list[tuple[ipu.Tensor, ipu.Tensor, ipu.Tensor]] = field(default_factory=list)


class _Pipeline:
    """One pipeline while it is lowered; `results` are its slots' variables in the end."""

    def __init__(self, builder: Builder, op: Op):
        self.builder = builder
        self.op = op
        self.debug = builder.debug(op)
        self.runs: list[Run] = op.attrs["runs"]
        self.results = [variable_of(builder, value, self.debug) for value in op.results]
        for value, variable in zip(op.operands, self.results, strict=True):
            if variable is not None:
                builder.copy(builder.tensor(value), variable, self.debug)
        self.outputs: list[list[ipu.Tensor]] = []
        self.inputs = [self._inputs(index) for index in range(len(self.runs))]
        self.functions = [self._function(index) for index in range(len(self.runs))]
        self.moves = [self._moves(phase) for phase in range(op.attrs["period"])]
        self._add_slots()

    # Runs ----------------------------------------------------------------------------------------

    def _inputs(self, index: int) -> list[ipu.Tensor | None]:
        run, region = self.runs[index], self.op.regions[index]
        arguments = region.args[run.num_slots :]
        made = [variable_of(self.builder, value, self.debug) for value in arguments]
        self._name(arguments, made)
        return made

    def _name(self, values: Sequence[Value], tensors: Sequence[ipu.Tensor | None]) -> None:
        for value, tensor in zip(values, tensors, strict=True):
            if tensor is not None:
                self.builder.tensors[value] = tensor

    def _slots(self, index: int) -> list[ipu.Tensor | None]:
        first = sum(run.num_slots for run in self.runs[:index])
        return self.results[first : first + self.runs[index].num_slots]

    def _function(self, index: int) -> ipu.Function:
        builder, region, run = self.builder, self.op.regions[index], self.runs[index]
        slots = self._slots(index)
        self._name(region.args[: run.num_slots], slots)
        body = ipu.poplar.program.Sequence(self.debug)
        with builder.inside(body), builder.on(run.ipu):
            results = builder.lower(region)
            made = []
            for tensor in results[run.num_slots :]:
                assert tensor is not None, "tokens stay in their run"
                made.append(builder.materialise(tensor, self.debug))
            copy_together(builder, results[: run.num_slots], slots, self.debug)
        self.outputs.append(made)
        return builder.graph.addFunction(body)

    # Between runs --------------------------------------------------------------------------------

    def _moves(self, phase: int) -> ipu.Sequence:
        """What the runs that work in this phase of the period made, on its way to its readers."""
        builder, program = self.builder, ipu.poplar.program.Sequence(self.debug)
        landed: dict[tuple[int, int, int], ipu.Tensor] = {}
        fifos: dict[tuple[int, int], _Fifo] = {}
        with builder.inside(program):
            for run, inputs in zip(self.runs, self.inputs, strict=True):
                for edge, target in zip(run.edges, inputs, strict=True):
                    producer = self.runs[edge.producer]
                    if producer.place % self.op.attrs["period"] != phase or target is None:
                        continue
                    key = (edge.producer, edge.result, run.ipu)
                    if key not in landed:
                        landed[key] = self.outputs[edge.producer][edge.result]
                        if producer.ipu != run.ipu:
                            landed[key] = _sent(builder, landed[key], run.ipu, self.debug)
                    if edge.capacity == 0:
                        builder.copy(landed[key], target, self.debug)
                        continue
                    fifo = fifos.get((run.ipu, edge.capacity))
                    if fifo is None:
                        fifo = fifos[run.ipu, edge.capacity] = self._fifo(run.ipu)
                    fifo.moves.append((landed[key], self._buffer(target, edge, run.ipu), target))
            for (number, capacity), fifo in fifos.items():
                with builder.on(number):
                    self._turn(fifo, capacity)
        return program

    def _fifo(self, number: int) -> _Fifo:
        """Empty buffers; their place is set to 0 before the pipeline starts."""
        builder = self.builder
        with builder.on(number):
            index = builder.variable(ipu.poplar.UNSIGNED_INT, [1], self.debug)
        return _Fifo(index)

    def _buffer(self, value: ipu.Tensor, edge: Edge, number: int) -> ipu.Tensor:
        with self.builder.on(number):
            shape = [edge.capacity, *value.shape]
            return self.builder.variable(value.elementType(), shape, self.debug)

    def _turn(self, fifo: _Fifo, capacity: int) -> None:
        """Takes the oldest value out of each buffer and puts the new one in its place."""
        builder, popops = self.builder, ipu.popops
        graph, program = builder.graph, builder.program
        for value, buffer, target in fifo.moves:
            sizes = [1]
            oldest = popops.dynamicSlice(graph, buffer, fifo.index, [0], sizes, program, self.debug)
            builder.copy(oldest.reshape(list(target.shape)), target, self.debug)
            popops.dynamicUpdate(
                graph,
                buffer,
                value.reshape([1, *value.shape]),
                fifo.index,
                [0],
                sizes,
                program,
                self.debug,
            )
        if capacity > 1:
            expr = popops.expr
            place = expr.PlaceHolder(1)
            last = expr.Const(ipu.poplar.UNSIGNED_INT, capacity - 1)
            following = builder.map(
                [expr.Select(expr.Const(ipu.poplar.UNSIGNED_INT, 0), place + 1, place == last)],
                [fifo.index],
                self.debug,
            )
            builder.copy(following[0], fifo.index, self.debug)

    # Time ----------------------------------------------------------------------------------------

    def _add_slots(self) -> None:
        """Slots that fill, a Repeat of periods in which each run works once, slots that drain."""
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
        self.builder.program.add(self.moves[num_slots % period])

    def _add_slot(self, program: ipu.Sequence, slot: int) -> None:
        period, micro_batches = self.op.attrs["period"], self.op.attrs["micro_batches"]
        for run, function in zip(self.runs, self.functions, strict=True):
            micro_batch, rest = divmod(slot - run.place, period)
            if rest == 0 and 0 <= micro_batch < micro_batches:
                program.add(ipu.poplar.program.Call(function, self.debug))
        program.add(self.moves[slot % period])
