"""The mesh of one `ipu.pmap`: the replicas, divided as its groupings need."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec

from ipujax.api.replicate.axes import WHERE
from ipujax.api.replicate.grouping import ReplicaGrouping
from ipujax.errors import ReplicationError


@dataclass(frozen=True)
class ReplicaMesh:
    """The replicas of one `ipu.pmap`, in replica order when read row by row.

    Attributes:
        mesh: has one axis, or several if replicas are grouped.
        names: the axes that groupings name, by name; without names that two groupings use for
            different axes.
        groups: the axes that index the groups of a grouping.
    """

    mesh: Mesh
    names: Mapping[Hashable, tuple[Hashable, ...]]
    groups: Mapping[ReplicaGrouping, tuple[Hashable, ...]]

    def spec(self, axis: Any) -> PartitionSpec:
        """The partition of a value whose axis in `in_axes` or `out_axes` is `axis`."""
        if isinstance(axis, ReplicaGrouping):
            return PartitionSpec(self.groups[axis])
        return PartitionSpec() if axis is None else PartitionSpec(self.mesh.axis_names)


def mesh_of(devices: Sequence[jax.Device], axis_name: Hashable) -> ReplicaMesh:
    """The mesh of replicas without groupings."""
    return ReplicaMesh(Mesh(np.array(devices, dtype=object), (axis_name,)), {}, {})


def mesh_of_groupings(groupings: Sequence[ReplicaGrouping], axis_name: Hashable) -> ReplicaMesh:
    """The coarsest mesh that has axes for the groups and the members of each grouping.

    A grouping divides the replicas into runs of `_run_length` replicas: one axis counts the runs,
    and another one the replicas within a run. Several groupings have a common mesh if the length of
    each run is a multiple of the next shorter one.

    Raises:
        ReplicationError: the groupings have different devices, or runs that do not nest.
    """
    first = groupings[0]
    lengths = sorted({_run_length(grouping) for grouping in groupings}, reverse=True)
    for other in groupings[1:]:
        if other.devices != first.devices:
            raise ReplicationError(
                f"[{WHERE}] needs the same devices in all groupings; got {len(first.devices)} and "
                f"{len(other.devices)}, or another order. Build all of them from one list."
            )
    if any(longer % shorter for longer, shorter in pairwise(lengths)):
        kinds = ", ".join(f"{g.kind} of {g.group_size}" for g in groupings)
        raise ReplicationError(
            f"[{WHERE}] needs groupings whose runs of replicas nest; got {kinds}, with runs of "
            f"{', '.join(map(str, lengths))}. Pass one value for each replica instead."
        )
    shape = [longer // shorter for longer, shorter in pairwise([first.num_replicas, *lengths, 1])]
    positions = {name: found for name, found in _meanings(groupings, lengths).items() if found}
    axes = tuple(_axis_names(len(shape), positions, axis_name))
    return ReplicaMesh(
        Mesh(np.array(first.devices, dtype=object).reshape(shape), axes),
        {name: tuple(axes[i] for i in found) for name, found in positions.items()},
        {g: tuple(axes[i] for i in _positions(g, lengths)[0]) for g in groupings},
    )


def _run_length(grouping: ReplicaGrouping) -> int:
    """A run is a group of consecutive replicas, or one replica of each orthogonal group."""
    return grouping.num_groups if grouping.kind == "orthogonal" else grouping.group_size


def _positions(grouping: ReplicaGrouping, lengths: Sequence[int]) -> tuple[range, range]:
    """The numbers of the mesh's axes of the groups, and of the members."""
    cut = lengths.index(_run_length(grouping)) + 1
    outer, inner = range(cut), range(cut, len(lengths) + 1)
    return (inner, outer) if grouping.kind == "orthogonal" else (outer, inner)


def _meanings(
    groupings: Sequence[ReplicaGrouping], lengths: Sequence[int]
) -> dict[Hashable, range | None]:
    """The axes that each name means; None if groupings use it for different ones."""
    meanings: dict[Hashable, range | None] = {}
    for grouping in groupings:
        for name, found in zip(grouping.axis_names, _positions(grouping, lengths), strict=True):
            meanings[name] = found if meanings.get(name, found) == found else None
    return meanings


def _axis_names(
    count: int, positions: Mapping[Hashable, range], axis_name: Hashable
) -> Iterator[Hashable]:
    """A grouping's name for each axis that has one, and otherwise one made from `axis_name`."""
    for i in range(count):
        own = [name for name, found in positions.items() if found == range(i, i + 1)]
        yield next(iter(own), f"{axis_name}{i}")
