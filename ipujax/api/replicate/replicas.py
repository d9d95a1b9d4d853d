"""The mapped axis of the replicas, and the index of a replica in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import jax
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import whole_number
from ipujax.errors import ReplicationError

#: One mapped axis, or several that act as one, with the first varying slowest.
AxisName: TypeAlias = Hashable | tuple[Hashable, ...]

_axis_of_pmap: ContextVar[AxisName | None] = ContextVar("axis_of_pmap", default=None)
_names_of_pmap: ContextVar[Mapping[Hashable, tuple[Hashable, ...]] | None] = ContextVar(
    "names_of_pmap", default=None
)


@contextmanager
def default_axis(
    name: AxisName, groupings: Mapping[Hashable, tuple[Hashable, ...]] | None = None
) -> Iterator[None]:
    """Makes `name` the default axis of the replicas for what is traced inside.

    Args:
        name: the axes of all replicas.
        groupings: further names, with the axes that each stands for.
    """
    token, token_of_names = _axis_of_pmap.set(name), _names_of_pmap.set(groupings)
    try:
        yield
    finally:
        _names_of_pmap.reset(token_of_names)
        _axis_of_pmap.reset(token)


def _names(axis_name: AxisName) -> tuple[Hashable, ...]:
    return axis_name if isinstance(axis_name, tuple) else (axis_name,)


def _meant(axis_name: AxisName, mapped: Mapping[Hashable, Any]) -> AxisName:
    """The mapped axes that a grouping's name stands for; other names unchanged."""
    known = {
        name: axes
        for name, axes in (_names_of_pmap.get() or {}).items()
        if name not in mapped and all(axis in mapped for axis in axes)
    }
    names = _names(axis_name)
    if not any(_is_among(name, list(known)) for name in names):
        return axis_name
    return tuple(axis for name in names for axis in known.get(name, (name,)))


def resolve_axis(where: str, axis_name: AxisName | None = None) -> AxisName:
    """The axis that a collective works over.

    In this order: the named axis; the axis of the enclosing `ipu.pmap`; the only mapped axis of
    devices; the innermost `jax.vmap`. If several axes of devices are mapped, there is no default.

    Raises:
        ReplicationError: there is none, or several.
    """
    mapped = jax_compat.mapped_axes()
    if axis_name is not None:
        axis_name = _meant(axis_name, mapped)
        named = list(mapped)  # names that cannot be hashed are unknown, too
        unknown = [name for name in _names(axis_name) if not _is_among(name, named)]
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


def _is_among(name: Any, names: Sequence[Hashable]) -> bool:
    return isinstance(name, Hashable) and name in names


def _listed(names: Any) -> str:
    return ", ".join(map(repr, names)) or "no axis is"


@dataclass(frozen=True)
class Replicas:
    """The replicas that take part in one collective.

    Attributes:
        axis_name: the mapped axis.
        size: number of replicas in a group, or on the whole axis.
        groups: `axis_index_groups` as `jax.lax` takes it; None for one group.
    """

    axis_name: AxisName
    size: int
    groups: tuple[tuple[int, ...], ...] | None

    @property
    def axis_names(self) -> tuple[Hashable, ...]:
        """The axes as a tuple, usually of one."""
        return _names(self.axis_name)

    @property
    def index(self) -> jax.Array:
        """int32 []: this replica's index in its group."""
        index = lax.axis_index(self.axis_name)
        return index if self.groups is None else index % self.size

    @property
    def checks_variance(self) -> bool:
        """Whether `shard_map` tracks which values vary over replicas, as a replica's index does."""
        return bool(jax_compat.varying_axes(lax.axis_index(self.axis_name)))


def resolve(
    where: str, axis_name: AxisName | None = None, replica_group_size: int | None = None
) -> Replicas:
    """The replicas of a collective: all of the axis, or groups of consecutive ones.

    Raises:
        ReplicationError: no such axis, or a size that does not divide the number of replicas.
    """
    axis_name = resolve_axis(where, axis_name)
    num_replicas = lax.axis_size(axis_name)
    if replica_group_size is None or whole_number(replica_group_size) == num_replicas:
        return Replicas(axis_name, num_replicas, None)
    size = check_group_size(where, "replica_group_size", replica_group_size, num_replicas)
    starts = range(0, num_replicas, size)
    jax_compat.allow_vmap_of_grouped_all_to_all()
    groups = tuple(tuple(range(start, start + size)) for start in starts)
    return Replicas(axis_name, size, groups)


def check_group_size(where: str, name: str, size: Any, num_replicas: int) -> int:
    """Checks the group size.

    Raises:
        ReplicationError: it does not divide the number of replicas.
    """
    number = whole_number(size)
    if number is None or number < 1 or num_replicas % number:
        divisors = [d for d in range(1, num_replicas + 1) if num_replicas % d == 0]
        raise ReplicationError(
            f"[{where}] needs {name} to divide the {num_replicas} replicas; got {size!r}. "
            f"Use one of {', '.join(map(str, divisors))}."
        )
    return number


def replication_index(*, axis_name: AxisName | None = None) -> jax.Array:
    """The index of this replica.

    Args:
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        int32 [], from 0 to `replication_factor() - 1`.
    Raises:
        ReplicationError: no axis is mapped.

    Example:
        >>> print(ipu.pmap(lambda x: x + ipu.replication_index())(jnp.zeros(4)))
        [0. 1. 2. 3.]
    """
    return resolve("ipu.replication_index", axis_name).index


def replication_factor(*, axis_name: AxisName | None = None) -> int:
    """The number of replicas, a Python int.

    Args:
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Raises:
        ReplicationError: no axis is mapped.

    Example:
        >>> print(ipu.pmap(lambda x: x / ipu.replication_factor())(jnp.ones(4)))
        [0.25 0.25 0.25 0.25]
    """
    return resolve("ipu.replication_factor", axis_name).size
