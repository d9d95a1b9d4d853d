"""Localises ops whose dimensions correspond; each tensor is a list of factors, as in einsum.

A factor is a number that operands and results give to their dimensions. Dimensions of one factor
are sharded alike; a dimension without a factor (None) is whole on every device. Padding along a
factor of the results stays padding; along a reduced factor it is filled with neutral values.

    dot_general (8x16, 16x4) -> 8x4        operands [(0, 1), (1, 2)], results [(0, 2)], reduced {1}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ipujax.compiler.partition.emit import numbers_of, set_numbers
from ipujax.compiler.partition.localise import Localiser
from ipujax.compiler.partition.mesh import (
    Layout,
    Mesh,
    Shape,
    SubAxes,
    SubAxis,
    block_size,
    even,
    is_even,
    layout_of,
)

Dims = Sequence[int | None]
Fill = Any  #: a scalar value; 0; or None if the padding may stay


@dataclass(frozen=True)
class Factors:
    """The factor of each dimension; () for scalars and tokens.

    Attributes:
        reduced: factors that only operands have; results are combined over their devices.
        kind: the op that combines them ("add", "maximum", ...).
        fills: what each operand's padding along `reduced` is filled with; None: no value is
            neutral, so there must be no padding.
        linear: operands that may be unreduced if the results are: applied to parts of them, the
            op makes parts of its results.
        summed: for each result, the factors of `reduced` that it is combined over; None: all.
    """

    operands: Sequence[Dims]
    results: Sequence[Dims]
    reduced: frozenset[int] = field(default_factory=frozenset)
    kind: str = "add"
    fills: Sequence[Fill] | None = None
    linear: Sequence[int] = ()
    summed: Sequence[frozenset[int]] | None = None

    def combined(self, axes: dict[int, SubAxes]) -> SubAxes:
        """The axes over whose devices results are combined."""
        return tuple(d for f in sorted(self.reduced) for d in axes.get(f, ()))


#: Writes local sizes into an op's attributes, given the axes of each factor.
Adjust = Callable[[Any, dict[int, SubAxes]], None]


def localise(
    localiser: Localiser, operation: Any, factors: Factors, adjust: Adjust | None = None
) -> None:
    """Makes the op local; results are sharded as Shardy wants where the factors allow it."""
    mesh, axes = shard(localiser, operation, factors)
    parts = _parts(localiser, operation, factors, mesh, axes)
    bring_operands(localiser, operation, factors, mesh, axes, parts)
    for region in operation.regions:
        localiser.whole_captures(region)
    if mesh is None:
        return
    unreduced = (*factors.combined(axes), *parts)
    if adjust is not None and any(axes.values()):
        adjust(operation, axes)
    for result, dims in zip(operation.results, factors.results, strict=True):
        localiser.set(result, sharded(mesh, dims, axes, unreduced, factors.kind))


def localise_beside(
    localiser: Localiser, operation: Any, whole: Iterable[int], linear: Sequence[int] = ()
) -> None:
    """Localises an op whose tensors have the same dimensions; those in `whole` stay whole."""
    stays = set(whole)
    rank = len(localiser.shape(operation.results[0]))
    dims: Dims = tuple(None if d in stays else d for d in range(rank))
    operands = [dims if localiser.shape(value) else () for value in operation.operands]
    results = [dims] * len(operation.results)
    localise(localiser, operation, Factors(operands, results, linear=linear))


def no_factors(shape: Shape) -> list[int | None]:
    """No factor for any dimension yet."""
    return [None] * len(shape)


def local_sizes(name: str, dims: Dims) -> Adjust:
    """Replaces sizes in the attribute by those of a block, in dimensions with factors."""

    def adjust(operation: Any, axes: dict[int, SubAxes]) -> None:
        sizes = [
            size if factor is None else block_size(size, axes.get(factor, ()))
            for size, factor in zip(numbers_of(operation, name), dims, strict=True)
        ]
        set_numbers(operation, name, sizes)

    return adjust


def kept(before: Shape, after: Shape) -> Dims:
    """A factor, the dimension's number, for each dimension that the op takes whole."""
    return tuple(d if b == a else None for d, (b, a) in enumerate(zip(before, after, strict=True)))


def _parts(
    localiser: Localiser,
    operation: Any,
    factors: Factors,
    mesh: Mesh | None,
    axes: dict[int, SubAxes],
) -> SubAxes:
    """The axes over which operands stay unreduced, and so do the results."""
    wanted = [layout.unreduced if layout else () for layout in localiser.declared(operation)]
    if mesh is None or not factors.linear or factors.kind != "add" or not all(wanted):
        return ()
    layouts = [localiser.layout(operation.operands[index]) for index in factors.linear]
    have = {
        axis
        for layout in layouts
        if layout is not None and layout.mesh is mesh and layout.kind == "add"
        for axis in layout.unreduced
    }
    used = {axis for found in axes.values() for axis in found}
    return tuple(d for d in wanted[0] if d in have and d not in used)


def bring_operands(
    localiser: Localiser,
    operation: Any,
    factors: Factors,
    mesh: Mesh | None,
    axes: dict[int, SubAxes],
    parts: SubAxes = (),
) -> None:
    """Converts the operands to the layouts of their factors, and fills padding that matters.

    Args:
        parts: the axes over which linear operands are unreduced.
    """
    for index, dims in enumerate(factors.operands):
        unreduced = parts if index in factors.linear else ()
        localiser.require(operation, index, sharded(mesh, dims, axes, unreduced))
        fill = factors.fills[index] if factors.fills is not None else None
        if mesh is None or fill is None:
            continue
        shape = localiser.shape(operation.operands[index])
        for dim, factor in enumerate(dims):
            along = axes.get(factor, ()) if factor in factors.reduced else ()
            if not is_even(shape[dim], along):
                value = operation.operands[index]
                filled = _fill_padding(localiser, value, shape[dim], dim, (mesh, along), fill)
                localiser.put(operation, index, filled)


def _fill_padding(
    localiser: Localiser, value: Any, size: int, dim: int, sharded: tuple[Mesh, SubAxes], fill: Fill
) -> Any:
    """Puts `fill` where the device's block reaches past the dimension's `size` elements."""
    emit, kind, (mesh, axes) = localiser.emit, value.type, sharded
    local = kind.shape[dim]
    held = np.clip(size - mesh.values(axes) * local, 0, local)
    place = emit.count(dim, kind.shape)
    real = emit.compare("LT", place, emit.broadcast(emit.by_device(held), kind.shape))
    if isinstance(fill, int):
        fill = emit.constant(np.asarray(fill), kind.element_type)
    other = emit.broadcast(fill, kind.shape)
    return emit.select(real, value, other)


def shard(
    localiser: Localiser, operation: Any, factors: Factors
) -> tuple[Mesh | None, dict[int, SubAxes]]:
    """The axes of each factor: from the results, and for reduced factors from the operands."""
    mesh: Mesh | None = None
    axes: dict[int, SubAxes] = {}
    for layout, dims in zip(localiser.declared(operation), factors.results, strict=True):
        if layout is None or (mesh is not None and layout.mesh is not mesh):
            continue
        mesh = layout.mesh
        for factor, wanted in zip(dims, layout.dims, strict=True):
            if factor is not None and wanted:
                axes.setdefault(factor, wanted)
    _keep_distinct(factors, axes)
    if factors.reduced:
        mesh = _shard_reduced(localiser, operation, factors, mesh, axes)
    return mesh, axes


def _shard_reduced(
    localiser: Localiser,
    operation: Any,
    factors: Factors,
    mesh: Mesh | None,
    axes: dict[int, SubAxes],
) -> Mesh | None:
    for value, dims in zip(operation.operands, factors.operands, strict=True):
        layout = localiser.layout(value)
        if layout is None or (mesh is not None and layout.mesh is not mesh):
            continue
        for factor, have, size in zip(dims, layout.dims, localiser.shape(value), strict=True):
            if factor not in factors.reduced or factor in axes:
                continue
            if factors.fills is None:
                have = even(size, have)
            if have and not set(have) & _used_beside(factors, factor, axes):
                axes[factor] = have
                mesh = layout.mesh
    return mesh


def _keep_distinct(factors: Factors, axes: dict[int, SubAxes]) -> None:
    """Results may shard two factors of one operand over the same axis: the first keeps it."""
    all_axes = [axis for found in axes.values() for axis in found]
    if len(set(all_axes)) == len(all_axes):
        return
    kept: dict[int, SubAxes] = {}
    for factor, found in axes.items():
        is_free = not set(found) & _used_beside(factors, factor, kept)
        kept[factor] = found if is_free else ()
    axes.update(kept)


def _used_beside(factors: Factors, factor: int, axes: dict[int, SubAxes]) -> set[SubAxis]:
    """The axes of other factors in each array that has this one; results include summed ones."""
    summed = factors.summed or [factors.reduced] * len(factors.results)
    pairs = zip(factors.results, summed, strict=True)
    arrays = [*factors.operands, *((*dims, *added) for dims, added in pairs)]
    others = {f for dims in arrays if factor in dims for f in dims if f not in (None, factor)}
    return {axis for f in others for axis in axes.get(f, ())}


def sharded(
    mesh: Mesh | None,
    dims: Dims,
    axes: dict[int, SubAxes],
    unreduced: SubAxes = (),
    kind: str = "add",
) -> Layout | None:
    """The layout of a tensor with these factors."""
    found = (axes.get(f, ()) if f is not None else () for f in dims)
    return layout_of(mesh, found, unreduced, kind)
