"""Meshes of devices, and layouts: how a tensor's dimensions are dealt over them.

A device is its number in the device assignment, 0 to N-1, as StableHLO's partition_id and replica
groups count. Shardy's axes and parts of axes are both read as digits of prime size, so that two
layouts are equal exactly when their digits are.

N elements over n devices make blocks of ceil(N / n). What the last blocks have too much is padding:
it repeats the last element where it is made, and nothing may depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

Shape = tuple[int, ...]


class Digit(NamedTuple):
    """One factor of an axis: `index // stride % size` of the device's index along the axis."""

    axis: str
    stride: int
    size: int


Digits = tuple[Digit, ...]


@dataclass(frozen=True, eq=False)
class Mesh:
    """A named grid of all devices; compared by identity, one object per mesh of a program.

    Attributes:
        axes: (name, size) of each axis, major first.
        device_ids: the device at each position, row by row.
    """

    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...]
    _known: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)

    def digits_of(self, axis: str, pre_size: int = 1, size: int | None = None) -> Digits | None:
        """The digits, major first, of an axis or of a part of it.

        Returns:
            None where the part is no run of the axis' prime factors.
        """
        whole = dict(self.axes)[axis]
        found, pre, stride = [], 1, whole
        for factor in _prime_factors(whole):
            stride //= factor
            if pre >= pre_size and (size is None or pre < pre_size * size):
                found.append(Digit(axis, stride, factor))
            pre *= factor
        starts_well = not found or whole // (found[0].stride * found[0].size) == pre_size
        if count(tuple(found)) != (whole if size is None else size) or not starts_well:
            return None
        return tuple(found)

    def all_digits(self) -> Digits:
        """Every digit, in the order of positions."""
        return tuple(d for name, _ in self.axes for d in self.digits_of(name) or ())

    def values(self, digits: Digits) -> np.ndarray:
        """For each device its number along `digits`, the first one being the major one."""
        known = self._known.get(digits)
        if known is None:
            known = self._known[digits] = self._values(digits)
        return known

    def _values(self, digits: Digits) -> np.ndarray:
        positions = np.argsort(np.asarray(self.device_ids, np.int64))
        strides, stride = {}, 1
        for name, size in reversed(self.axes):
            strides[name] = (stride, size)
            stride *= size
        total = np.zeros(len(positions), np.int64)
        for digit in digits:
            stride, size = strides[digit.axis]
            index = positions // stride % size
            total = total * digit.size + index // digit.stride % digit.size
        return total

    def groups(self, digits: Digits) -> np.ndarray:
        """Devices that differ in `digits` only; one group a row, in the order of their numbers."""
        others = self._digits_beside(digits)
        order = np.lexsort((self.values(digits), self.values(others)))
        return order.reshape(-1, count(digits))

    def grid(self, dims: Sequence[Digits]) -> tuple[np.ndarray, bool]:
        """The devices by the block that each holds; with a last dimension for copies, if any.

        Returns:
            the devices, and whether there is such a dimension.
        """
        used = [digit for digits in dims for digit in digits]
        others = self._digits_beside(used)
        order = np.argsort(self.values((*used, *others)))
        shape, copies = list(map(count, dims)), count(others)
        if copies > 1:
            shape.append(copies)
        return order.reshape(shape), copies > 1

    def _digits_beside(self, digits: Sequence[Digit]) -> Digits:
        return tuple(d for d in self.all_digits() if d not in digits)


class Layout(NamedTuple):
    """How one tensor is dealt: the digits of each dimension, major first.

    A tensor that every device has whole has no layout (None).
    """

    mesh: Mesh
    dims: tuple[Digits, ...]

    def counts(self) -> Shape:
        """The number of blocks along each dimension."""
        return tuple(map(count, self.dims))

    def local(self, shape: Sequence[int]) -> Shape:
        """The shape of one device's block."""
        return tuple(map(block_size, shape, self.dims))

    def digits(self) -> Digits:
        return tuple(digit for digits in self.dims for digit in digits)

    def blocks(self) -> np.ndarray:
        """For each device the number of its block, counted row by row."""
        return self.mesh.values(self.digits())


def dims_of(layout: Layout | None, rank: int) -> tuple[Digits, ...]:
    """The digits of each dimension; none where every device has the tensor whole."""
    return layout.dims if layout is not None else ((),) * rank


def layout_of(mesh: Mesh | None, dims: Iterable[Digits]) -> Layout | None:
    """The layout, or None where no dimension is dealt."""
    dims = tuple(dims)
    return Layout(mesh, dims) if mesh is not None and any(dims) else None


def count(digits: Digits) -> int:
    """The number of blocks."""
    return math.prod(digit.size for digit in digits)


def block_size(size: int, digits: Digits) -> int:
    """The elements of one block of a dimension, padding included."""
    return -(-size // count(digits))


def is_even(size: int, digits: Digits) -> bool:
    """Whether no block of the dimension has padding."""
    return size % count(digits) == 0


def even(size: int, digits: Digits) -> Digits:
    """The major digits that deal a dimension without padding."""
    kept = len(digits)
    while not is_even(size, digits[:kept]):
        kept -= 1
    return digits[:kept]


def padded(size: int, digits: Digits) -> Digits:
    """All digits, unless there are more blocks than elements: then as `even`."""
    return digits if count(digits) <= size else even(size, digits)


def distinct(dims: Iterable[Digits]) -> tuple[Digits, ...]:
    """Keeps the major digits of each dimension up to one that came before."""
    kept: list[Digits] = []
    used: set[Digit] = set()
    for digits in dims:
        fresh = tuple(takewhile(lambda digit: digit not in used, digits))
        used.update(fresh)
        kept.append(fresh)
    return tuple(kept)


@cache
def _prime_factors(number: int) -> tuple[int, ...]:
    factors, factor = [], 2
    while number > 1:
        if number % factor:
            factor += 1
        else:
            factors.append(factor)
            number //= factor
    return tuple(factors)
