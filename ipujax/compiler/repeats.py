"""Finds sequences of ops that repeat: layers written one after another, steps of an optimizer.

The ops of all blocks, in order, are one text, whose letters say what each op computes. Its sorted
suffixes show which stretches occur several times. The one that by estimate saves most code is taken
first, then the rest is searched again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise
from typing import Any

import numpy as np

from ipujax.compiler.dtypes import TOKEN
from ipujax.compiler.ir import Block, Op, Value, has_effect, inputs_of
from ipujax.compiler.room import Room
from ipujax.compiler.structure import Part, Structures

#: Estimated bytes of code on a tile, about as in the account of transformers and ResNet-50: for an
#: elementwise op, which is fused with its neighbours; a product or convolution; a reduction; any
#: other op that is not a view; a call; the copy of an argument or result.
ELEMENTWISE_BYTES = 16
PRODUCT_BYTES = 1200
REDUCTION_BYTES = 200
STEP_BYTES = 60
CALL_BYTES = 20
COPY_BYTES = 30

#: All occurrences and copies are counted for at most this many stretches, the most promising ones.
MAX_COUNTED = 512


def repeats(
    blocks: Sequence[Block], structures: Structures, threshold: int, num_tiles: int
) -> Iterator[list[Part]]:
    """Lists of equal parts that save code as functions; no two parts overlap.

    Args:
        threshold: bytes that each list must save on a tile, by estimate: its code, less what the
            fullest tile needs for copies of arguments and results.
        num_tiles: of an IPU.
    """
    text = _Text(blocks, structures, Room(blocks, num_tiles))
    while (best := text.best(threshold)) is not None:
        parts = text.take(*best)
        if len(parts) > 1:
            yield parts


class _Text:
    """The ops of all blocks as letters; ops that compute the same share a letter."""

    def __init__(self, blocks: Iterable[Block], structures: Structures, room: Room):
        self.structures = structures
        self.room = room
        self.places: list[tuple[Block, int]] = []
        self.letters: list[int] = []
        self.code = [0]  #: bytes of all ops before
        self.last_use: dict[Value, int] = {}  #: as a place in the text
        self.alone = count(-1, -1)  #: letters that no other op has
        known: dict[Any, int] = {}
        for block in blocks:
            for index, op in enumerate(block.ops):
                letter = next(self.alone)
                if _may_be_outlined(op):
                    letter = known.setdefault(structures.op(op), len(known))
                self.last_use.update(dict.fromkeys(inputs_of(op), len(self.letters)))
                self._add(letter, _code_bytes(op), (block, index))
            self.last_use.update(dict.fromkeys(block.results, len(self.letters)))
            self._add(next(self.alone), 0, (block, len(block.ops)))

    def _add(self, letter: int, code_bytes: int, place: tuple[Block, int]) -> None:
        self.letters.append(letter)
        self.code.append(self.code[-1] + code_bytes)
        self.places.append(place)

    def best(self, threshold: int) -> tuple[list[int], int] | None:
        """Starts and length of the stretches that save most, if that is more than the threshold."""
        best, most = None, float(threshold)
        found = sorted(self._stretches(), key=lambda found: -self._saved(*found))
        for starts, length in found[:MAX_COUNTED]:
            if self._saved(starts, length) <= most:
                break
            worth = self._worth(starts, length)
            if worth > most:
                best, most = (starts, length), worth
        return best

    def _stretches(self) -> Iterator[tuple[list[int], int]]:
        """Starts and lengths of equal stretches, no two of which overlap.

        Where longer ones would overlap, as in consecutive layers, yields those of one layer.
        """
        for found, longest in _repeated(np.asarray(self.letters)):
            starts = sorted(found.tolist())
            gap = min(b - a for a, b in pairwise(starts))
            for length in {longest, min(gap, longest)}:
                apart = _apart(starts, length)
                if len(apart) > 1:
                    yield apart, length

    def _saved(self, starts: Sequence[int] | np.ndarray, length: int) -> int:
        """Bytes saved by one piece of code instead of several."""
        return (len(starts) - 1) * (self.code[starts[0] + length] - self.code[starts[0]])

    def _worth(self, starts: list[int], length: int) -> float:
        """Bytes saved on a tile, less those of calls and their copies."""
        call = _call_bytes(sum(map(len, self._copies(starts[0], length))))
        growth = max(self._growth(start, length) for start in starts)
        return self._saved(starts, length) - len(starts) * call - growth

    def _copies(self, start: int, length: int) -> tuple[set[Value], set[Value]]:
        """Arguments and results of a call."""
        ops = self._ops(start, length)
        made = {value for op in ops for value in op.results}
        inputs = {value for op in ops for value in inputs_of(op) if value not in made}
        return inputs, {value for value in made if self.last_use.get(value, 0) >= start + length}

    def _growth(self, start: int, length: int) -> float:
        """Bytes that a call adds to the fullest tile."""
        block, index = self.places[start]
        copies = self._copies(start, length)
        return self.room.tile_bytes_of_call(block, slice(index, index + length), *copies)

    def _ops(self, start: int, length: int) -> list[Op]:
        block, index = self.places[start]
        return block.ops[index : index + length]

    def take(self, starts: list[int], length: int) -> list[Part]:
        """The largest set of stretches in which values flow between ops in the same way.

        No op of the stretches is found again.
        """
        groups: dict[Any, list[Part]] = defaultdict(list)
        for start in starts:
            part = self.structures.part(self.places[start][0], self._ops(start, length))
            groups[part.key].append(part)
            for place in range(start, start + length):
                self.letters[place] = next(self.alone)
        return max(groups.values(), key=len)


def is_transfer(op: Op) -> bool:
    """Whether the op has values of another IPU, or of the host's memory.

    Such an op stays outside functions, whose arguments are on the tiles of one IPU.
    """
    values = (*inputs_of(op), *op.results)
    return op.name == "copy_to_ipu" or any(value.is_remote for value in values)


def _may_be_outlined(op: Op) -> bool:
    tokens = any(value.dtype == TOKEN for value in (*op.operands, *op.results))
    return not (tokens or is_transfer(op) or op.traits.unique or has_effect(op))


def _call_bytes(num_copies: int) -> int:
    return CALL_BYTES + COPY_BYTES * num_copies


def _code_bytes(op: Op) -> int:
    if op.traits.view:
        return 0
    if op.name == "call":
        return _call_bytes(len(op.operands) + len(op.results))
    if op.traits.control_flow and op.regions:
        return STEP_BYTES + sum(_code_bytes(inner) for block in op.regions for inner in block.ops)
    if op.traits.product:
        return PRODUCT_BYTES
    if op.name in ("reduce", "reduce_window"):
        return REDUCTION_BYTES
    return ELEMENTWISE_BYTES if op.traits.elementwise else STEP_BYTES


def _apart(starts: list[int], length: int) -> list[int]:
    """The starts of stretches that do not overlap, chosen from the first on."""
    chosen: list[int] = []
    for start in starts:
        if not chosen or start >= chosen[-1] + length:
            chosen.append(start)
    return chosen


def _repeated(letters: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Starts and length of stretches that occur more than once and cannot be made longer."""
    order = _sorted_suffixes(letters)
    common = [*_common_prefixes(letters, order), 0]
    open_: list[tuple[int, int]] = []  # (length, first place in the order)
    for place, length in enumerate(common):
        first = place
        while open_ and open_[-1][0] > length:
            longer, first = open_.pop()
            yield order[first : place + 1], longer
        if length and (not open_ or open_[-1][0] < length):
            open_.append((length, first))


def _sorted_suffixes(letters: np.ndarray) -> np.ndarray:
    """The starts of all suffixes in sorted order: sorts by 1, 2, 4, ... letters."""
    rank = np.unique(letters, return_inverse=True)[1]
    length = 1
    while True:
        following = np.full(len(rank), -1)
        following[:-length] = rank[length:]
        order = np.lexsort((following, rank))
        differs = (np.diff(rank[order]) != 0) | (np.diff(following[order]) != 0)
        rank = np.empty_like(rank)
        rank[order] = np.concatenate(([0], np.cumsum(differs)))
        length *= 2
        if differs.all() or length >= len(rank):
            return order


def _common_prefixes(letters: np.ndarray, order: np.ndarray) -> list[int]:
    """How many letters each suffix of the order shares with the next one (Kasai's algorithm)."""
    text = letters.tolist()
    size = len(text)
    after = dict(pairwise(order.tolist()))
    shared = [0] * size
    length = 0
    for start in range(size):
        other = after.get(start)
        if other is None:
            length = 0
            continue
        end = size - max(start, other)
        while length < end and text[start + length] == text[other + length]:
            length += 1
        shared[start] = length
        length = max(length - 1, 0)
    return [shared[start] for start in order[:-1].tolist()]
