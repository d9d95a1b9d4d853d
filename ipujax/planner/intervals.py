"""The cost of a stage that has parts i to j - 1: sums of the parts' costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ipujax.planner.costs import PartCost, Pricing, bytes_of
from ipujax.planner.pieces import Name, pieces_of, source_of
from ipujax.planner.search import Costs

#: Between neighbouring pairs of IPUs, each way, of a GC200: two links (engine/Machine.cpp).
LINK_BYTES_PER_CYCLE = 22.0


@dataclass(frozen=True)
class Schedule:
    """When stages work, and so how long their kept values wait."""

    name: str
    micro_batches: int
    training: bool

    def depth(self, place: int, num_stages: int) -> int:
        """The depth of a stage's FIFOs."""
        per_stage = {"grouped": 2, "interleaved": 1, "sequential": 0}[self.name]
        return per_stage * (num_stages - 1 - place) * self.training

    def cycles(self, num_stages: int, of_ipus: list[float]) -> float:
        """The cycles of a whole call, from those of the IPUs in a slot."""
        if self.name == "sequential":
            return self.micro_batches * sum(of_ipus)
        fill = num_stages - 1
        if self.training and self.name == "grouped":
            fill += num_stages
        return (self.micro_batches + fill) * max(of_ipus)


class Intervals:
    """Costs of all stages that a cut could have.

    Shapes: arrays are [P + 1, P + 1] for P parts; element [i, j] is that of parts i to j - 1.
    """

    def __init__(self, pricing: Pricing, schedule: Schedule):
        self.schedule = schedule
        self.tiles = pricing.tiles
        self.names = [part.name for part in pricing.divided.parts]
        count = len(self.names)
        pieces = pieces_of(pricing.divided, range(count), count)
        self.parts: list[PartCost] = [pricing.cost(piece) for piece in pieces]
        self.crossing = self._crossing(pricing, count)
        copies = 1 + schedule.training  # weights, and accumulators of their gradients
        divided = pricing.divided
        self.weights: list[dict[Name, float]] = [
            {
                name: bytes_of(name.aval) * copies
                for name in piece.inputs
                if source_of(name) in divided.shared or source_of(name) in divided.free
            }
            for piece in pieces
        ]
        self.whole_stash = pricing.remat is None or pricing.remat is False
        self.weight_bytes = self._weight_bytes(count)
        self.temporary_bytes = _maxima([cost.temporary_bytes for cost in self.parts])

    def _crossing(self, pricing: Pricing, count: int) -> list[float]:
        """Bytes that go from the parts before each part to it and to later ones."""
        parts, found = pricing.divided.parts, [0.0] * (count + 1)
        last: dict[object, int] = {}
        for index, part in enumerate(parts):
            last.update(dict.fromkeys(part.reads(), index))
        for index, part in enumerate(parts):
            for value in part.makes():
                for boundary in range(index + 1, last.get(value, index) + 1):
                    found[boundary] += bytes_of(value.aval)
        return found

    def _weight_bytes(self, count: int) -> Costs:
        found = np.zeros((count + 1, count + 1))
        for first in range(count):
            seen: dict[Name, float] = {}
            for last in range(first, count):
                seen |= self.weights[last]
                found[first, last + 1] = sum(seen.values())
        return found

    def cycles(self, depth: int) -> Costs:
        """The cycles of a slot: the forward and the backward pass, FIFOs, and the longer copy."""
        waits = depth > 0
        own = [cost.cycles + waits * cost.fifo_cycles for cost in self.parts]
        made = _sums(np.array(own))
        copies = np.array(self.crossing) / LINK_BYTES_PER_CYCLE
        return made + np.maximum(copies[:, None], copies[None, :])

    def tile_bytes(self, depth: int) -> Costs:
        """Bytes on the fullest tile."""
        spread = self.weight_bytes + self.temporary_bytes + depth * self._stash()
        own = np.array([cost.tile_bytes for cost in self.parts])
        return _sums(own) + spread / self.tiles

    def _stash(self) -> Costs:
        if self.whole_stash:
            return _sums(np.array([cost.stash_bytes for cost in self.parts]))
        inputs = np.array(self.crossing)[:, None]
        return np.broadcast_to(inputs, (len(inputs), len(inputs)))

    def both_cycles(self, first: int, last: int, num_stages: int) -> float:
        """The cycles of an IPU with the first stage, up to `first`, and the last, from `last`."""
        depth = self.schedule.depth(0, num_stages)
        return float(self.cycles(depth)[0, first] + self.cycles(0)[last, -1])

    def both_tile_bytes(self, first: int, last: int, num_stages: int) -> float:
        depth = self.schedule.depth(0, num_stages)
        twice: dict[Name, float] = {}
        for weights in self.weights[:first]:
            twice |= weights
        ours = set().union(*self.weights[last:]) & twice.keys()
        whole = self.tile_bytes(depth)[0, first] + self.tile_bytes(0)[last, -1]
        return float(whole - sum(twice[name] for name in ours) / self.tiles)

    def of_parts(self) -> list[dict[str, float]]:
        """The costs of each part, as plans list them."""
        return [
            {
                "cycles": cost.cycles,
                "fifo cycles": cost.fifo_cycles,
                "tile bytes": cost.tile_bytes + sum(weights.values()) / self.tiles,
                "temporary bytes of a tile": cost.temporary_bytes / self.tiles,
                "stash bytes of a tile": cost.stash_bytes / self.tiles,
                "bytes to the next": crossing,
            }
            for cost, weights, crossing in zip(
                self.parts, self.weights, self.crossing[1:], strict=True
            )
        ]

    def largest_part(self, parts: Sequence[int]) -> str:
        """The name of the part with the most bytes."""
        sizes = [cost["tile bytes"] for cost in self.of_parts()]
        return self.names[max(parts, key=lambda part: sizes[part])]

    @property
    def is_tied(self) -> bool:
        """Whether the first and the last part that have weights share some."""
        own = [set(weights) for weights in self.weights if weights]
        return len(own) > 1 and not own[0].isdisjoint(own[-1])


def _sums(values: Costs) -> Costs:
    ends = np.concatenate([[0.0], np.cumsum(values)])
    return np.maximum(ends[None, :] - ends[:, None], 0.0)


def _maxima(values: list[float]) -> Costs:
    count = len(values)
    found = np.zeros((count + 1, count + 1))
    for first in range(count):
        found[first, first + 1 :] = np.maximum.accumulate(values[first:])
    return found
