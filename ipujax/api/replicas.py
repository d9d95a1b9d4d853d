"""Over which mapped axis replicas lie, and where in it one of them stands."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jax import lax

from ipujax import jax_compat
from ipujax.errors import ReplicationError

#: One mapped axis, or several that are taken as one, the first varying slowest.
AxisName: TypeAlias = Hashable | tuple[Hashable, ...]

_axis_of_pmap: ContextVar[AxisName | None] = ContextVar("axis_of_pmap", default=None)


@contextmanager
def default_axis(name: AxisName) -> Iterator[None]:
    """What is traced inside takes `name` for the replicas' axis."""
    token = _axis_of_pmap.set(name)
    try:
        yield
    finally:
        _axis_of_pmap.reset(token)


def _names(axis_name: AxisName) -> tuple[Hashable, ...]:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def resolve_axis(where: str, axis_name: AxisName | None = None) -> AxisName:
    """The axis that a collective works over.

    The one that is named; or else that of the `ipu.pmap` around; or else the only mapped axis of
    devices; or else the innermost of `jax.vmap`. Of several axes of devices none is the default.

    Raises:
        ReplicationError: there is none, or several.
    """
    mapped = jax_compat.mapped_axes()
    if axis_name is not None:
        unknown = [name for name in _names(axis_name) if name not in mapped]
        if unknown:
            raise ReplicationError(
                f"[{where}] needs the name of a mapped axis; got {axis_name!r} where "
                f"{_listed(mapped)} mapped. Call it inside ipu.pmap, jax.pmap or jax.shard_map "
                "over that axis."
            )
        return axis_name
    around = _axis_of_pmap.get()
    if around is not None and all(name in mapped for name in _names(around)):
        return around
    of_devices = set(jax.sharding.get_abstract_mesh().manual_axes)
    candidates = [name for name in mapped if name in of_devices] or list(mapped)[-1:]
    if not candidates:
        raise ReplicationError(
            f"[{where}] needs a mapped axis; got none. "
            "Call it inside ipu.pmap, jax.pmap or jax.shard_map."
        )
    if len(candidates) > 1:
        raise ReplicationError(
            f"[{where}] needs axis_name where several axes of devices are mapped; got "
            f"{_listed(candidates)}. Pass axis_name={candidates[0]!r}, or a tuple of names."
        )
    return candidates[0]


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "no axis is"


@dataclass(frozen=True)
class Replicas:
    """The replicas that one collective joins.

    Attributes:
        axis_name: the mapped axis.
        size: replicas that are joined: all of the axis, or those of one group.
        groups: what `jax.lax` takes for `axis_index_groups`; None for one group.
    """

    axis_name: AxisName
    size: int
    groups: tuple[tuple[int, ...], ...] | None

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """The axes, of which there mostly is one."""
        return _names(self.axis_name)

    @property
    def index(self) -> jax.Array:
        """int32 []: where in its group this replica stands."""
        index = lax.axis_index(self.axis_name)
        return index if self.groups is None else index % self.size

    @property
    def checks_variance(self) -> bool:
        """Whether `shard_map` follows which values vary: there JAX knows a replica's index to."""
        return bool(jax_compat.varying_axes(lax.axis_index(self.axis_name)))


def resolve(
    where: str, axis_name: AxisName | None = None, replica_group_size: int | None = None
) -> Replicas:
    """The replicas that a collective joins: all of the axis, or groups of consecutive ones.

    Raises:
        ReplicationError: no such axis, or a size that does not divide its number of replicas.
    """
    axis_name = resolve_axis(where, axis_name)
    num_replicas = lax.axis_size(axis_name)
    if replica_group_size is None or replica_group_size == num_replicas:
        return Replicas(axis_name, num_replicas, None)
    check_group_size(where, "replica_group_size", replica_group_size, num_replicas)
    starts = range(0, num_replicas, replica_group_size)
    jax_compat.allow_vmap_of_grouped_all_to_all()
    groups = tuple(tuple(range(start, start + replica_group_size)) for start in starts)
    return Replicas(axis_name, replica_group_size, groups)


def check_group_size(where: str, name: str, size: int, num_replicas: int) -> None:
    """Refuses a group size that does not divide the number of replicas."""
    if isinstance(size, bool) or not isinstance(size, int) or size < 1 or num_replicas % size:
        divisors = [d for d in range(1, num_replicas + 1) if num_replicas % d == 0]
        raise ReplicationError(
            f"[{where}] needs {name} to divide the {num_replicas} replicas; got {size!r}. "
            f"Use one of {', '.join(map(str, divisors))}."
        )


def replication_index(*, axis_name: AxisName | None = None) -> jax.Array:
    """Which replica this is.

    Args:
        axis_name: the mapped axis; where left out that of the replicas around.
    Returns:
        int32 [], from 0 to `replication_factor() - 1`.
    Raises:
        ReplicationError: no axis is mapped.

    Example:
        ipu.pmap(lambda x: x + ipu.replication_index())(jnp.zeros(4))  # 0, 1, 2, 3
    """
    return resolve("ipu.replication_index", axis_name).index


def replication_factor(*, axis_name: AxisName | None = None) -> int:
    """The number of replicas, known while tracing.

    Args:
        axis_name: the mapped axis; where left out that of the replicas around.
    Raises:
        ReplicationError: no axis is mapped.
    """
    return resolve("ipu.replication_factor", axis_name).size
