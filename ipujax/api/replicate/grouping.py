"""Groups of replicas that share a value: weights that differ from group to group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ipujax.api.replicate.replicas import check_group_size
from ipujax.errors import ReplicationError, check_choice

Kind: TypeAlias = Literal["all", "consecutive", "orthogonal"]
Retrieval: TypeAlias = Literal["one_per_group", "all_replicas"]
KINDS: tuple[Kind, ...] = ("all", "consecutive", "orthogonal")
RETRIEVALS: tuple[Retrieval, ...] = ("one_per_group", "all_replicas")


@dataclass(frozen=True)
class ReplicaGrouping:
    """A partition of the replicas into groups of equal size, made by `replica_grouping`.

    Attributes:
        kind: "all", "consecutive" or "orthogonal".
        group_size: number of replicas in each group.
        devices: one for each replica, in replica order.
        axis_names: names of the mesh's axes: the group, and the member within it.
    """

    kind: Kind
    group_size: int
    devices: tuple[jax.Device, ...]
    axis_names: tuple[str, str]

    @property
    def num_replicas(self) -> int:
        return len(self.devices)

    @property
    def num_groups(self) -> int:
        return self.num_replicas // self.group_size

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """The indices of the replicas in each group."""
        replicas = np.arange(self.num_replicas)
        if self.kind == "orthogonal":
            table = replicas.reshape(self.group_size, self.num_groups).T
        else:
            table = replicas.reshape(self.num_groups, self.group_size)
        return tuple(tuple(map(int, row)) for row in table)

    @cached_property
    def mesh(self) -> Mesh:
        """The devices by group and member, in replica order when read row by row."""
        group, member = self.axis_names
        devices = np.array(self.devices, dtype=object)
        if self.kind == "orthogonal":
            return Mesh(devices.reshape(self.group_size, self.num_groups), (member, group))
        return Mesh(devices.reshape(self.num_groups, self.group_size), (group, member))

    def spec(self, retrieval: Retrieval = "one_per_group") -> PartitionSpec:
        """The partition spec of a variable's first dimension; see `sharding`."""
        check_choice("ipu.replica_grouping", "retrieval", retrieval, RETRIEVALS, ReplicationError)
        if retrieval == "one_per_group":
            return PartitionSpec(self.axis_names[0])
        return PartitionSpec(self.mesh.axis_names)

    def sharding(self, retrieval: Retrieval = "one_per_group") -> NamedSharding:
        """Shards a variable's first dimension over the groups, or over all replicas.

        Args:
            retrieval: "one_per_group": the dimension is `num_groups`, and the replicas of a group
                hold the same value. "all_replicas": it is `num_replicas`, in replica order.
        """
        return NamedSharding(self.mesh, self.spec(retrieval))


def replica_grouping(
    kind: Kind = "all",
    group_size: int | None = None,
    *,
    devices: Sequence[jax.Device] | None = None,
    axis_names: tuple[str, str] = ("group", "member"),
) -> ReplicaGrouping:
    """Divides the replicas into groups whose members share the value of a variable.

    Use the result's `mesh` and `sharding()` with `jax.jit` and `jax.shard_map`, and the result
    itself as an axis in `in_axes` and `out_axes` of `ipu.pmap`.

    Args:
        kind: "all": one group. "consecutive": replicas 0, 1, ... form the first group, and so on.
            "orthogonal": groups are strided; replicas 0, n, 2 n, ... form the first of n groups.
        group_size: number of replicas in a group; optional for "all".
        devices: one for each replica; by default all devices of the default platform.
        axis_names: names of the mesh's axes: the group, and the member within it.
    Raises:
        ReplicationError: an unknown kind, or a group size that does not divide the replicas.

    Example:
        Weights that are two-way tensor parallel and two-way data parallel on four replicas:

        >>> grouping = ipu.replica_grouping("orthogonal", 2, devices=jax.devices()[:4])
        >>> grouping.groups
        ((0, 2), (1, 3))
        >>> weights = jax.device_put(jnp.array([1.0, 10.0]), grouping.sharding())
        >>> product = ipu.pmap(jnp.multiply, in_axes=(grouping, 0))
        >>> print(product(weights, jnp.array([1.0, 2.0, 3.0, 4.0])))
        [ 1. 20.  3. 40.]
    """
    where = "ipu.replica_grouping"
    check_choice(where, "kind", kind, KINDS, ReplicationError)
    chosen = tuple(devices) if devices is not None else tuple(default_devices())
    if group_size is None and kind == "all":
        group_size = len(chosen)
    if group_size is None or (kind == "all" and group_size != len(chosen)):
        raise ReplicationError(
            f"[{where}] needs group_size for consecutive and orthogonal groups only; got "
            f"{group_size} for {kind!r} of {len(chosen)} replicas. Pass a divisor, or omit it."
        )
    size = check_group_size(where, "group_size", group_size, len(chosen))
    return ReplicaGrouping(kind, size, chosen, axis_names)


def default_devices() -> list[jax.Device]:
    """All devices of the default platform: IPUs, unless the user chose another one."""
    chosen = jax.config.jax_default_device
    if chosen is None:
        return jax.devices()
    return jax.devices(chosen if isinstance(chosen, str) else chosen.platform)
