"""Pipelines and what goes from IPU to IPU.

Each run of a pipeline is a function of the graph. The program is a series of time slots: those that
fill the pipeline, a Repeat in which all runs work, those that drain it. A slot calls the runs that
have a micro-batch, on IPUs of their own, and then moves what they made to where it is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ipujax.compiler.ir import Op, Value, declare
from ipujax.compiler.pipelines import Run
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.control_flow import copy_together, variable_of
from ipujax.compiler.rules.registry import rule

declare("copy_to_ipu", moves=True, replicated="programs are divided before ops have IPUs")
declare("pipeline", control_flow=True, moves=True, replicated="a loop becomes one after division")


@rule("copy_to_ipu")
def copy_to_ipu(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """A variable on the other IPU, mapped as the operand is."""
    tensor, debug = builder.tensor(op.operands[0]), builder.debug(op)
    poputil = ipu.poplar.poputil
    ipus = builder.whole_graph
    return [poputil.copyToIpu(ipus, tensor, builder.program, op.attrs["ipu"], debug)]


@rule("pipeline")
def pipeline(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    return _Pipeline(builder, op).results


@dataclass(slots=True)
class _Move:
    """What one value does at the end of a slot."""

    source: ipu.Tensor
    target: ipu.Tensor
    capacity: int  #: micro-batches that wait in a FIFO on the way


class _Pipeline:
    """One pipeline while it is lowered; `results` are its slots' variables in the end."""

    def __init__(self, builder: Builder, op: Op):
        self.builder = builder
        self.outer = builder.program
        self.op = op
        self.debug = builder.debug(op)
        self.runs: list[Run] = op.attrs["runs"]
        self.results = [variable_of(builder, value, self.debug) for value in op.results]
        for value, variable in zip(op.operands, self.results, strict=True):
            if variable is not None:
                builder.copy(builder.tensor(value), variable, self.debug)
        self.landings: dict[tuple[int, int, int], ipu.Tensor] = {}
        self.inputs = [self._inputs(index) for index in range(len(self.runs))]
        self.outputs: list[list[ipu.Tensor]] = []
        self.functions = [self._function(index) for index in range(len(self.runs))]
        self.moves = [self._moves(phase) for phase in range(op.attrs["period"])]
        self._add_slots()

    # Runs ----------------------------------------------------------------------------------------

    def _inputs(self, index: int) -> list[ipu.Tensor]:
        """The variables from which a run reads what its edges bring.

        A value from another IPU lands in one variable there. Who reads it in the next slot reads it
        there; for later readers it goes on at the end of that slot.
        """
        run, region = self.runs[index], self.op.regions[index]
        made = []
        for edge, value in zip(run.edges, region.args[run.num_slots :], strict=True):
            if self.runs[edge.producer].ipu == run.ipu:
                tensor = self._variable(value)
            else:
                key = (edge.producer, edge.result, run.ipu)
                if key not in self.landings:
                    self.landings[key] = self._variable(value)
                tensor = self._variable(value) if edge.capacity else self.landings[key]
            self.builder.tensors[value] = tensor
            made.append(tensor)
        return made

    def _variable(self, value: Value) -> ipu.Tensor:
        variable = variable_of(self.builder, value, self.debug)
        assert variable is not None, "tokens stay in their run"
        return variable

    def _function(self, index: int) -> ipu.poplar.Function:
        builder, region, run = self.builder, self.op.regions[index], self.runs[index]
        first = sum(run.num_slots for run in self.runs[:index])
        slots = self.results[first : first + run.num_slots]
        for value, variable in zip(region.args, slots, strict=False):
            if variable is not None:
                builder.tensors[value] = variable
        body = ipu.poplar.program.Sequence(self.debug)
        with builder.inside(body), builder.on(run.ipu):
            results = builder.lower(region)
            made = []
            for tensor in results[run.num_slots :]:
                assert tensor is not None, "tokens stay in their run"
                made.append(builder.materialise(tensor, self.debug))
            copy_together(builder, results[: run.num_slots], slots, self.debug)
        self.outputs.append(made)
        return builder.whole_graph.addFunction(body)

    # Between runs --------------------------------------------------------------------------------

    def _moves(self, phase: int) -> ipu.Sequence:
        """What happens to values of runs that work in this phase of the period, at its end."""
        builder, period = self.builder, self.op.attrs["period"]
        moves: dict[int, list[_Move]] = {}
        for run, inputs in zip(self.runs, self.inputs, strict=True):
            for edge, target in zip(run.edges, inputs, strict=True):
                if self.runs[edge.producer].place % period == phase:
                    landing = self.landings.get((edge.producer, edge.result, run.ipu))
                    if landing is None:
                        source = self.outputs[edge.producer][edge.result]
                        moves.setdefault(run.ipu, []).append(_Move(source, target, edge.capacity))
                    elif edge.capacity:  # the landing has the value before the last
                        waiting = edge.capacity - 1
                        moves.setdefault(run.ipu, []).append(_Move(landing, target, waiting))
        made = ipu.poplar.program.Sequence(self.debug)
        with builder.inside(made):
            for number, own in moves.items():
                with builder.on(number):
                    self._move(own)
            for (producer, result, _), landing in self.landings.items():
                if self.runs[producer].place % period == phase:
                    builder.copy(self.outputs[producer][result], landing, self.debug)
        return made

    def _move(self, moves: list[_Move]) -> None:
        """Moves of one IPU; FIFOs of one length share their place."""
        lengths = sorted({move.capacity for move in moves})
        for length in lengths:
            own = [move for move in moves if move.capacity == length]
            if length:
                self._turn(own, length)
            else:
                for move in own:
                    self.builder.copy(move.source, move.target, self.debug)

    def _turn(self, moves: list[_Move], length: int) -> None:
        """Takes the oldest value out of each FIFO and puts the new one in its place."""
        builder, popops, unsigned = self.builder, ipu.popops, ipu.poplar.UNSIGNED_INT
        graph, program = builder.graph, builder.program
        place = builder.variable(unsigned, [1], self.debug)
        for move in moves:
            shape = list(move.target.shape)
            buffer = self._buffer(move.target.elementType(), [length, *shape])
            oldest = popops.dynamicSlice(graph, buffer, place, [0], [1], program, self.debug)
            builder.copy(oldest.reshape(shape), move.target, self.debug)
            newest = move.source.reshape([1, *shape])
            popops.dynamicUpdate(graph, buffer, newest, place, [0], [1], program, self.debug)
        expr = popops.expr
        now = expr.PlaceHolder(1)
        last = expr.Equal(now, expr.Const(unsigned, length - 1))
        following = expr.Add(now, expr.Const(unsigned, 1))
        expression = expr.Select(expr.Const(unsigned, 0), following, last)
        (turned,) = builder.map([expression], [place], self.debug)
        builder.copy(turned, place, self.debug)
        popops.zero(graph, place, self.outer, self.debug)

    def _buffer(self, type_: ipu.Type, shape: list[int]) -> ipu.Tensor:
        """Each tile holds its part of every entry, so that entries do not move between tiles."""
        graph = self.builder.graph
        buffer = graph.addVariable(type_, shape, self.debug)
        for index in range(shape[0]):
            ipu.poplar.poputil.mapTensorLinearly(graph, buffer.slice(index, index + 1, 0))
        return buffer

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
