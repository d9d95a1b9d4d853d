"""Bytes that are live while each op runs, by IPU, and how much calls would add to the peak.

An estimate in the program's own order: temporaries of ops, and savings from fusion, are not known
yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ipujax.compiler.ir import Block, Op, Value, inputs_of


@dataclass(slots=True)
class Life:
    """The lifetimes and memory of a block's own values."""

    live: dict[int, np.ndarray]  #: of each IPU: bytes while each op runs, and at the block's end
    last_use: dict[Value, int]
    root: dict[Value, Value]  #: the value whose memory a view shows


class Room:
    """The live bytes of all blocks that are lowered to programs."""

    def __init__(self, blocks: Iterable[Block], num_tiles: int):
        self.num_tiles = num_tiles
        self.lives: dict[Block, Life] = {}
        for block in blocks:  # the program's own comes first: its arguments stay in memory
            self.lives[block] = life_of(block, keeps_arguments=not self.lives)
        self.callers: dict[Block, list[tuple[Block, int]]] = defaultdict(list)
        for block in self.lives:
            for index, op in enumerate(block.ops):
                for inner in (*op.regions, *_called(op)):
                    self.callers[inner].append((block, index))
        self.around: dict[tuple[Block, int], float] = {}
        self.peaks: dict[int, float] = defaultdict(float)
        for block, life in self.lives.items():
            for ipu, live in life.live.items():
                most = self._around(block, ipu) + live.max()
                self.peaks[ipu] = max(self.peaks[ipu], most)

    def tile_bytes_of_call(
        self, block: Block, ops: slice, inputs: Iterable[Value], results: Iterable[Value]
    ) -> float:
        """Bytes that a tile needs beyond its peak if these ops get copies of inputs and results."""
        life, ipu = self.lives[block], block.ops[ops.start].ipu
        live = life.live.get(ipu)
        if live is None:
            return 0.0
        copied = kept = 0
        for value in inputs:
            copied += value.size_bytes
            if life.last_use.get(life.root.get(value, value), ops.stop) >= ops.stop:
                kept += value.size_bytes
        returned = sum(value.size_bytes for value in results)
        most = max(live[ops.start] + copied, live[ops].max() + kept, live[ops.stop - 1] + returned)
        return max(0.0, self._around(block, ipu) + most - self.peaks[ipu]) / self.num_tiles

    def _around(self, block: Block, ipu: int) -> float:
        """Bytes of other blocks that are live while the block runs."""
        known = self.around.get((block, ipu))
        if known is None:
            known = max(
                (
                    self._around(caller, ipu) + self.lives[caller].live[ipu][index]
                    for caller, index in self.callers[block]
                    if ipu in self.lives[caller].live
                ),
                default=0.0,
            )
            self.around[block, ipu] = known
        return known


def _called(op: Op) -> list[Block]:
    return [op.attrs["function"]] if op.name == "call" else []


def life_of(block: Block, keeps_arguments: bool = False) -> Life:
    """The life of a block's values, in the order of its ops; regions are part of their op."""
    end = len(block.ops)
    made = dict.fromkeys(block.args, 0)
    last_use: dict[Value, int] = {}
    root: dict[Value, Value] = {}
    for index, op in enumerate(block.ops):
        last_use.update((root.get(value, value), index) for value in inputs_of(op))
        if op.traits.view and op.operands:
            root.update((value, root.get(op.operands[0], op.operands[0])) for value in op.results)
        else:
            made.update((value, index) for value in op.results)
    kept = (*block.results, *block.args) if keeps_arguments else block.results
    last_use.update((root.get(value, value), end) for value in kept)
    changes: dict[int, np.ndarray] = {}
    for value, index in made.items():
        change = changes.setdefault(value.ipu, np.zeros(end + 2))
        change[index] += value.size_bytes
        change[last_use.get(value, index) + 1] -= value.size_bytes
    return Life({ipu: change.cumsum() for ipu, change in changes.items()}, last_use, root)
