"""Chooses the number of IPUs and the cut for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ipujax.planner.intervals import Intervals
from ipujax.planner.search import Costs, Cut, best_cut, best_ring


@dataclass(frozen=True)
class Choice:
    """One way to run the parts, with its estimated cost."""

    ends: tuple[int, ...]  #: of stages, as numbers of parts
    device_mapping: tuple[int, ...]
    ipu_cycles: tuple[float, ...]  #: of each IPU in a slot
    cycles: float  #: of a whole call
    tile_bytes: tuple[float, ...]  #: of the fullest tile of each IPU

    @property
    def places(self) -> list[int]:
        """The stage of each part."""
        return [sum(end <= part for end in self.ends) for part in range(self.ends[-1])]

    def parts_on(self, ipu: int) -> list[int]:
        return [i for i, place in enumerate(self.places) if self.device_mapping[place] == ipu]


def numbers_of_ipus(least: int, most: int, of_device: int) -> list[int]:
    """Powers of two in the range, and the number that the device has."""
    found = {2**power for power in range(most.bit_length())} | {of_device}
    return sorted(count for count in found if least <= count <= most)


def choose(
    intervals: Intervals, counts: Iterable[int], priority: str, limit: float
) -> tuple[Choice | None, Choice]:
    """The best choice that fits, if any, and the one that needs the least memory.

    Args:
        priority: "cycles": the shortest call; "memory": the least full tile.
        limit: bytes of a tile.
    """
    found = [
        choice
        for count in counts
        for choice in (
            *_for(intervals, count, "cycles", limit),
            *_for(intervals, count, "memory", np.inf),
        )
    ]
    smallest = min(found, key=lambda choice: max(choice.tile_bytes))
    fitting = [choice for choice in found if max(choice.tile_bytes) <= limit]
    if not fitting:
        return None, smallest
    if priority == "memory":
        return smallest, smallest
    return min(fitting, key=lambda choice: choice.cycles), smallest


def whole(intervals: Intervals) -> Choice:
    """All parts on one IPU."""
    return priced(intervals, (len(intervals.parts),), (0,))


def _for(intervals: Intervals, count: int, priority: str, limit: float) -> list[Choice]:
    """The best cut for a number of IPUs, and the best with first and last stage on one IPU."""
    if count > len(intervals.parts):
        return []
    found = []
    cut = best_cut(lambda place: _costs(intervals, place, count, priority, limit), count)[-1]
    if np.isfinite(cut.worst):
        found.append(priced(intervals, cut.ends, tuple(range(count))))
    ring = _ring(intervals, count + 1, priority, limit) if count > 1 and intervals.is_tied else None
    if ring is not None:
        found.append(priced(intervals, ring.ends, (*range(count), 0)))
    return found


def _ring(intervals: Intervals, num_stages: int, priority: str, limit: float) -> Cut | None:
    def both(first: int, last: int) -> float:
        tile_bytes = intervals.both_tile_bytes(first, last, num_stages)
        if priority == "memory":
            return tile_bytes
        fits = tile_bytes <= limit
        return intervals.both_cycles(first, last, num_stages) if fits else np.inf

    if num_stages > len(intervals.parts):
        return None
    return best_ring(
        lambda place: _costs(intervals, place, num_stages, priority, limit), both, num_stages
    )


def _costs(intervals: Intervals, place: int, num_stages: int, priority: str, limit: float) -> Costs:
    depth = intervals.schedule.depth(place, num_stages)
    tile_bytes = intervals.tile_bytes(depth)
    if priority == "memory":
        return tile_bytes
    return np.where(tile_bytes <= limit, intervals.cycles(depth), np.inf)


def priced(intervals: Intervals, ends: tuple[int, ...], mapping: tuple[int, ...]) -> Choice:
    """A cut with its estimated cost."""
    count = len(ends)
    starts = (0, *ends[:-1])
    depths = [intervals.schedule.depth(place, count) for place in range(count)]
    cycles = [
        float(intervals.cycles(depth)[start, end])
        for depth, start, end in zip(depths, starts, ends, strict=True)
    ]
    tile_bytes = [
        float(intervals.tile_bytes(depth)[start, end])
        for depth, start, end in zip(depths, starts, ends, strict=True)
    ]
    of_ipus = list(cycles)
    if len(set(mapping)) < count:  # the last stage is on the IPU of the first
        tile_bytes = [intervals.both_tile_bytes(ends[0], starts[-1], count), *tile_bytes[1:-1]]
        of_ipus = [cycles[0] + cycles[-1], *cycles[1:-1]]
    total = intervals.schedule.cycles(count, of_ipus)
    return Choice(ends, mapping, tuple(of_ipus), total, tuple(tile_bytes))
