"""Reads from a placed program when each stage of a pipeline works on which micro-batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from ipujax.compiler.ir import Block, Op, Program

LETTERS = {"forward": "F", "backward": "B", "": "-"}


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of one micro-batch through one stage."""

    slot: int
    ipu: int
    stage: str
    kind: str  #: "F" forward, "B" backward, "R" forward again, "-" of no stage
    micro_batch: int


@dataclass(frozen=True, slots=True)
class _Work:
    """The work of a stage on each micro-batch."""

    place: int  #: the slot in which it has the first one
    ipu: int
    stage: str
    direction: str


def timetables(program: Program) -> list[list[Pass]]:
    """One timetable for each pipeline of the program, sorted by slot."""
    return list(_timetables(program.main))


def _timetables(block: Block) -> Iterator[list[Pass]]:
    for op in block.ops:
        if op.name == "pipeline":
            yield _timetable(_overlapped(op), op.attrs["period"], op.attrs["micro_batches"])
        elif _is_loop(op) and (found := _one_at_a_time(op)):
            yield found
        else:
            for region in op.regions:
                yield from _timetables(region)


def _is_loop(op: Op) -> bool:
    """Whether it is a loop over micro-batches that was not made a pipeline."""
    placed = op.source.placed
    is_outside = placed.pipeline != "" and placed.stage is None
    return op.name == "while" and is_outside and "trip_count" in op.attrs


def _timetable(works: list[_Work], period: int, micro_batches: int) -> list[Pass]:
    passes = []
    for work, letter in zip(works, _letters(works), strict=True):
        passes += [
            Pass(work.place + period * k, work.ipu, work.stage, letter, k)
            for k in range(micro_batches)
        ]
    return _by_stage(passes, works)


def _by_stage(passes: list[Pass], works: list[_Work]) -> list[Pass]:
    order = {(work.ipu, work.stage): i for i, work in reversed(list(enumerate(works)))}
    return sorted(passes, key=lambda p: (order[p.ipu, p.stage], p.slot))


def _one_at_a_time(loop: Op) -> list[Pass]:
    """The passes of a plain loop; inner loops are stages that run several micro-batches."""
    body = loop.regions[1]
    inner = [(_works(op.regions[1]), op.attrs["trip_count"]) for op in body.ops if _is_loop(op)]
    parts = inner if any(works for works, _ in inner) else [(_works(body), 1)]
    works = [work for own, _ in parts for work in own]
    letters = list(_letters(works))
    passes: list[Pass] = []
    for block in range(loop.attrs["trip_count"]):
        first = 0
        for own, count in parts:
            named = list(zip(own, letters[first:], strict=False))
            first += len(own)
            for k in range(block * count, (block + 1) * count):
                passes += [
                    Pass(len(passes) + i, work.ipu, work.stage, letter, k)
                    for i, (work, letter) in enumerate(named)
                ]
    return _by_stage(passes, works)


def _letters(works: list[_Work]) -> Iterator[str]:
    seen = set()
    for work in works:
        is_again = work.direction == "forward" and (work.ipu, work.stage) in seen
        seen.add((work.ipu, work.stage))
        yield "R" if is_again else LETTERS[work.direction]


def _overlapped(pipeline: Op) -> list[_Work]:
    """The runs of a pipeline: several IPUs work in one slot."""
    runs = zip(pipeline.attrs["runs"], pipeline.regions, strict=True)
    return [_Work(run.place, run.ipu, *_most_common(region)) for run, region in runs]


def _most_common(region: Block) -> tuple[str, str]:
    """The stage and the direction of most ops."""
    placed = [op.source.placed for op in region.ops if op.source.placed.stage is not None]
    if not placed:
        return "", ""
    ((name, direction), _), *_ = Counter((p.stage_name, p.direction) for p in placed).most_common()
    return name, direction


def _works(body: Block) -> list[_Work]:
    """The stages of a plain loop's body, in order."""
    works: list[_Work] = []
    for op in body.ops:
        placed = op.source.placed
        if placed.stage is None or op.name == "copy_to_ipu":
            continue
        work = _Work(len(works), op.ipu, placed.stage_name, placed.direction)
        is_new = all(
            (w.ipu, w.stage, w.direction) != (work.ipu, work.stage, work.direction) for w in works
        )
        if is_new:
            works.append(work)
    return works
