"""The axis of replicas in each argument and result of `ipu.pmap`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.replicate.grouping import ReplicaGrouping
from ipujax.errors import ReplicationError

WHERE = "ipu.pmap"


def is_none(value: Any) -> bool:
    """Whether a value is None; trees of axes treat None as a leaf."""
    return value is None


def _is_axis(value: Any) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value is None or is_number or isinstance(value, ReplicaGrouping)


def broadcast_axes(name: str, axes: Any, tree: Any) -> list[Any]:
    """One axis for each leaf of `tree`, of which `axes` is a prefix."""
    try:
        full = jax.tree.broadcast(axes, tree, is_leaf=is_none)
    except ValueError as error:
        raise ReplicationError(
            f"[{WHERE}] needs {name} that are a prefix of the pytree; got {axes!r}: {error}. "
            "Pass one entry for each branch, or a single one for all."
        ) from None
    pairs = zip(
        jax.tree.leaves(full, is_leaf=is_none),
        jax.tree.leaves(tree, is_leaf=is_none),
        strict=True,
    )
    found = [axis for axis, leaf in pairs if leaf is not None]
    wrong = [axis for axis in found if not _is_axis(axis)]
    if wrong:
        raise ReplicationError(
            f"[{WHERE}] needs {name} made of ints, None and replica groupings; got {wrong[0]!r}. "
            "Use one of these."
        )
    return found


def num_replicas(leaves: Sequence[Any], axes: Sequence[Any]) -> int | None:
    """The length of the mapped axis; None if nothing is mapped."""
    sizes: dict[int, tuple[int, ...]] = {}
    for leaf, axis in zip(leaves, axes, strict=True):
        shape = np.shape(leaf)
        if axis is None:
            continue
        number = 0 if isinstance(axis, ReplicaGrouping) else axis
        if not -len(shape) <= number < len(shape):
            raise ReplicationError(
                f"[{WHERE}] needs an axis to map over; got shape {shape} for axis {number}. "
                "Pass None in in_axes for values that all replicas share."
            )
        if not isinstance(axis, ReplicaGrouping):
            sizes[shape[number]] = shape
        elif shape[0] != axis.num_groups:
            raise ReplicationError(
                f"[{WHERE}] needs a first axis of the grouping's {axis.num_groups} groups; got "
                f"shape {shape}. Stack one value for each group."
            )
    if len(sizes) > 1:
        raise ReplicationError(
            f"[{WHERE}] needs mapped axes of one length; got shapes "
            f"{', '.join(map(str, sizes.values()))}. Pass one slice per replica in each argument."
        )
    return next(iter(sizes), None)


def to_front(leaf: Any, axis: Any) -> jax.Array:
    """The leaf with its replicas along the first axis."""
    number = axis if isinstance(axis, int) else 0
    return leaf if number == 0 else jnp.moveaxis(leaf, number, 0)


def from_front(leaf: jax.Array, axis: Any) -> jax.Array:
    """The leaf with its replicas moved from the first axis to `axis`."""
    number = axis if isinstance(axis, int) else 0
    return leaf if number == 0 else jnp.moveaxis(leaf, 0, number)
