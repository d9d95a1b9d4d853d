"""Meshes of devices, and layouts: how a tensor's dimensions are sharded over them.

A device is identified by its number in the device assignment, 0 to N-1, as in StableHLO's
partition_id and replica groups. An axis of the mesh, or a part of one, is read as a list of
sub-axes of prime size, so that two layouts are equal exactly when their sub-axes are.

N elements over n devices make blocks of ceil(N / n). The excess of the last blocks is padding: it
repeats the last element, and no result may depend on it.
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


class SubAxis(NamedTuple):
    """A prime factor of the axis `name`: `index // stride % size` of a device's index along it."""

    name: str
    stride: int
    size: int


SubAxes = tuple[SubAxis, ...]


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

    def sub_axes_of(self, axis: str, pre_size: int = 1, size: int | None = None) -> SubAxes | None:
        """The sub-axes, major first, of an axis or of a part of it.

        Returns:
            None if the part is not a run of the axis' prime factors.
        """
        whole = dict(self.axes)[axis]
        found, pre, stride = [], 1, whole
        for factor in _prime_factors(whole):
            stride //= factor
            if pre >= pre_size and (size is None or pre < pre_size * size):
                found.append(SubAxis(axis, stride, factor))
            pre *= factor
        starts_well = not found or whole // (found[0].stride * found[0].size) == pre_size
        if count(tuple(found)) != (whole if size is None else size) or not starts_well:
            return None
        return tuple(found)

    def all_sub_axes(self) -> SubAxes:
        """Every sub-axis, in the order of positions."""
        return tuple(d for name, _ in self.axes for d in self.sub_axes_of(name) or ())

    def values(self, axes: SubAxes) -> np.ndarray:
        """For each device its number along `axes`, the first one being the major one."""
        known = self._known.get(axes)
        if known is None:
            known = self._known[axes] = self._values(axes)
        return known

    def _values(self, axes: SubAxes) -> np.ndarray:
        positions = np.argsort(np.asarray(self.device_ids, np.int64))
        strides, stride = {}, 1
        for name, size in reversed(self.axes):
            strides[name] = (stride, size)
            stride *= size
        total = np.zeros(len(positions), np.int64)
        for axis in axes:
            stride, size = strides[axis.name]
            index = positions // stride % size
            total = total * axis.size + index // axis.stride % axis.size
        return total

    def groups(self, axes: SubAxes) -> np.ndarray:
        """Groups of devices that differ only in `axes`, one per row, in order of their numbers."""
        others = self.other_axes(axes)
        order = np.lexsort((self.values(axes), self.values(others)))
        return order.reshape(-1, count(axes))

    def ordered(self, axes: Iterable[SubAxis]) -> SubAxes:
        """The axes in the order of the mesh."""
        known = set(axes)
        return tuple(d for d in self.all_sub_axes() if d in known)

    def other_axes(self, axes: Sequence[SubAxis]) -> SubAxes:
        """The axes that are not among these, in the order of positions."""
        return tuple(d for d in self.all_sub_axes() if d not in axes)


class Layout(NamedTuple):
    """How one tensor is sharded: the sub-axes of each dimension, major first.

    A tensor that every device has whole has no layout (None).

    Attributes:
        unreduced: the axes over whose devices blocks are still to be combined, in the order of the
            mesh: each device has a part of its block.
        kind: the op that combines them ("add", "maximum", ...).
    """

    mesh: Mesh
    dims: tuple[SubAxes, ...]
    unreduced: SubAxes = ()
    kind: str = "add"

    def counts(self) -> Shape:
        """The number of blocks along each dimension."""
        return tuple(map(count, self.dims))

    def local(self, shape: Sequence[int]) -> Shape:
        """The shape of one device's block."""
        return tuple(map(block_size, shape, self.dims))

    def sub_axes(self) -> SubAxes:
        return tuple(axis for axes in self.dims for axis in axes)

    def blocks(self) -> np.ndarray:
        """For each device the number of its block, or part of one, counted row by row."""
        return self.mesh.values((*self.sub_axes(), *self.unreduced))

    def grid(self) -> tuple[np.ndarray, bool, bool]:
        """The devices by the block that they hold; the last dimensions are for parts and copies.

        Returns:
            the devices, and whether there is a dimension for copies, and for parts.
        """
        used = (*self.sub_axes(), *self.unreduced)
        others = self.mesh.other_axes(used)
        order = np.argsort(self.mesh.values((*used, *others)))
        parts, copies = count(self.unreduced), count(others)
        shape = [*self.counts(), *(size for size in (parts, copies) if size > 1)]
        return order.reshape(shape), copies > 1, parts > 1


def dims_of(layout: Layout | None, rank: int) -> tuple[SubAxes, ...]:
    """The sub-axes of each dimension; none if every device has the whole tensor."""
    return layout.dims if layout is not None else ((),) * rank


def layout_of(
    mesh: Mesh | None, dims: Iterable[SubAxes], unreduced: Iterable[SubAxis] = (), kind: str = "add"
) -> Layout | None:
    """The layout, or None if no dimension is sharded and nothing is unreduced."""
    dims = tuple(dims)
    axes = mesh.ordered(unreduced) if mesh is not None else ()
    if mesh is None or not (any(dims) or axes):
        return None
    return Layout(mesh, dims, axes, kind if axes else "add")


def reduced(layout: Layout | None) -> Layout | None:
    """The layout after combining."""
    return layout_of(layout.mesh, layout.dims) if layout is not None else None


def count(axes: SubAxes) -> int:
    """The number of blocks."""
    return math.prod(axis.size for axis in axes)


def block_size(size: int, axes: SubAxes) -> int:
    """The elements of one block of a dimension, padding included."""
    return -(-size // count(axes))


def is_even(size: int, axes: SubAxes) -> bool:
    """Whether no block of the dimension has padding."""
    return size % count(axes) == 0


def even(size: int, axes: SubAxes) -> SubAxes:
    """The major axes that shard a dimension without padding."""
    kept = len(axes)
    while not is_even(size, axes[:kept]):
        kept -= 1
    return axes[:kept]


def padded(size: int, axes: SubAxes) -> SubAxes:
    """All axes, but those of `even` if there are more blocks than elements."""
    return axes if count(axes) <= size else even(size, axes)


def without_padding(layout: Layout | None, shape: Sequence[int]) -> Layout | None:
    """The layout, but with whole dimensions where padding would be needed."""
    if layout is None:
        return None
    pairs = zip(shape, layout.dims, strict=True)
    return layout_of(layout.mesh, (axes if is_even(size, axes) else () for size, axes in pairs))


def is_plain(layout: Layout) -> bool:
    """Whether it is sharded by whole axes: JAX has no names for parts of them."""
    for axes in (*layout.dims, layout.unreduced):
        at = 0
        while at < len(axes):
            whole = layout.mesh.sub_axes_of(axes[at].name)
            assert whole is not None
            if axes[at : at + len(whole)] != whole:
                return False
            at += len(whole)
    return True


def distinct(dims: Iterable[SubAxes]) -> tuple[SubAxes, ...]:
    """Keeps the major sub-axes of each dimension, up to one that an earlier dimension has."""
    kept: list[SubAxes] = []
    used: set[SubAxis] = set()
    for axes in dims:
        fresh = tuple(takewhile(lambda axis: axis not in used, axes))
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
