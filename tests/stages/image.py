"""What the executable of a pipeline says of its time slots and of its memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jaxlib import _jax

from ipujax import jax_compat
from ipujax.compiler.build import build
from ipujax.compiler.fuse import fuse
from ipujax.compiler.ingest import ingest
from ipujax.compiler.ir import Op, walk_ops
from ipujax.compiler.lower import lower
from ipujax.compiler.normalise import normalise
from ipujax.compiler.partition import partition
from ipujax.compiler.pipelines import Run
from ipujax.compiler.place import place
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.schedule import schedule

#: Kinds of nodes of an executable's program, as in cpp/model/engine.
_SEQUENCE, _STEP, _REPEAT = 0, 1, 2
_BYTES = {"bool": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2}
_BYTES |= {"half": 2, "int": 4, "unsigned int": 4, "float": 4}


@dataclass(frozen=True)
class Fifo:
    """A buffer in which values of some micro-batches wait."""

    depth: int
    num_bytes: int
    num_turns: int  #: how often the oldest value leaves it


class Compiled:
    """One program: the op `pipeline` of its loop over micro-batches, and the executable.

    Args:
        lowered: what `jax.jit(...).lower(...)` returns.
        num_ipus: of one replica.
        num_replicas: devices that the program is for.
    """

    def __init__(self, lowered: Any, num_ipus: int, num_replicas: int = 1):
        options = _jax.CompileOptions()
        options.num_partitions = num_replicas
        platform = {"machine": "gc200", "ipus_per_device": num_ipus}
        code = jax_compat.serialize_artifact(lowered)
        with jax_compat.lent_context(len(code)) as context:
            request = partition(ingest(code, options.SerializeAsString(), platform, context))
            program = place(normalise(request), request)
            self.pipelines = [op for op in walk_ops(program.main) if op.name == "pipeline"]
            self.expected = [list(_expected_fifos(op)) for op in self.pipelines]
            made = lower(schedule(fuse(program)), request)
            self._image = ipu.engine.inspectImage(build(made, request).executable)

    @property
    def turns(self) -> list[int]:
        """How often each step runs; loops whose turns only the device knows count once."""
        nodes, counts = self._image["nodes"], [0] * len(self._image["steps"])

        def visit(number: int, times: int) -> None:
            kind, what, inner = nodes[number]
            if kind == _STEP:
                counts[what] += times
            for child in inner:
                visit(child, times * what if kind == _REPEAT else times)

        visit(0, 1)
        return counts

    def turns_of(self, kernel: str) -> list[int]:
        """How often each step of a kernel runs."""
        steps = zip(self._image["steps"], self.turns, strict=True)
        return [turns for step, turns in steps if step["kernel"] == kernel]

    @property
    def fifos(self) -> list[Fifo]:
        """The FIFOs of all pipelines: what a loop over micro-batches itself updates in place."""
        found = []
        for step, turns in zip(self._image["steps"], self.turns, strict=True):
            if not step["name"].endswith("while"):
                continue
            if step["kernel"] == "engine.turn":  # place, newest, oldest, rows
                rows = step["operands"][3:]
            elif step["kernel"] == "popops.dynamic_update":
                rows = step["operands"][:1]
            else:
                continue
            depth = sum(row["shape"][0] for row in rows)
            size = sum(math.prod(row["shape"]) * _BYTES[row["type"]] for row in rows)
            if depth > 1:  # one value waits: not of the expected FIFOs either
                found.append(Fifo(depth, size, turns))
        return found


def _expected_fifos(op: Op) -> Iterator[Fifo]:
    """By the slots of time of facts/stages.md, section 1: what waits for longer than a slot."""
    runs: list[Run] = op.attrs["runs"]
    period, count = op.attrs["period"], op.attrs["micro_batches"]
    num_stages = 1 + max(i for region in op.regions for i, _ in _labels(region))
    slots: list[int] = []
    seen: dict[int, set[tuple[int, str]]] = {run.ipu: set() for run in runs}
    for region, run in zip(op.regions, runs, strict=True):
        slots.append(_slot(_labels(region), num_stages, run, seen[run.ipu]))
        seen[run.ipu] |= _labels(region)
    num_slots = period * (count - 1) + max(slots) + 1
    for run, region, slot in zip(runs, op.regions, slots, strict=True):
        for edge, value in zip(run.edges, region.args[len(run.slots) :], strict=True):
            made = slots[edge.producer]
            depth = (slot - made - 1) // period
            if runs[edge.producer].ipu != run.ipu and depth:
                depth -= 1  # one is where the copy from the other IPU lands
            if depth > 1:  # one value waits in a variable, without a place that turns
                turns = sum(t % period == made % period for t in range(num_slots + 1))
                yield Fifo(depth, depth * value.size_bytes, turns)


def _labels(region: Any) -> set[tuple[int, str]]:
    placed = [op.source.placed for op in region.ops if op.source.placed.stage is not None]
    return {(label.stage, label.direction) for label in placed}


def _slot(
    labels: set[tuple[int, str]], num_stages: int, run: Run, seen: set[tuple[int, str]]
) -> int:
    """Of its first micro-batch: i for the forward pass of stage i, 2S - 1 - i for the backward.

    A forward pass that the IPU did before is computed again, in the slot before its backward pass.
    """
    slots = [
        2 * num_stages - 1 - i - (way == "forward") if (i, way) in seen or way == "backward" else i
        for i, way in labels
    ]
    return max(slots, default=run.place)
