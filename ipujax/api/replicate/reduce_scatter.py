"""Reduce-scatter over replicas."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import array
from ipujax.api.replicate.primitives import REDUCTIONS, reduce_scatter_p
from ipujax.api.replicate.replicas import AxisName, Replicas, resolve
from ipujax.errors import ReplicationError, check_choice
from ipujax.types import Operator

#: The names of GCL's CollectiveOperator.
OPERATORS = ("add", "mean", "square_add", "local", *REDUCTIONS)


def reduce_scatter(
    x: Any,
    op: Operator = "add",
    replica_group_size: int | None = None,
    *,
    axis_name: AxisName | None = None,
) -> Any:
    """Reduces x over the replicas; replica i keeps part i of the result.

    Each array of n elements is flattened and padded with zeros to a multiple of the number of
    replicas r. The padding of the result is zero.

    Args:
        x: pytree of arrays of any shape.
        op: "add", "mean", "mul", "min", "max", "square_add" (the sum of squares); "logical_and",
            "logical_or" for bools; "local": no reduction, each replica keeps its own part.
        replica_group_size: reduce within groups of this many consecutive replicas; None: all.
        axis_name: the axis of the replicas; by default the enclosing mapped axis.
    Returns:
        Arrays [ceil(n / r)].
    Raises:
        ReplicationError: no axis is mapped, the group size does not divide the replicas, or the
            operator is unknown or not defined for the dtype.

    Example:
        >>> print(ipu.pmap(ipu.reduce_scatter)(jnp.array([[1, 2, 3], [10, 20, 30]])))
        [[11 22]
         [33  0]]
    """
    where = "ipu.reduce_scatter"
    check_choice(where, "op", op, OPERATORS, ReplicationError)
    replicas = resolve(where, axis_name, replica_group_size)

    def scatter(leaf: Any) -> jax.Array:
        leaf = array(where, "x", leaf)
        _check_dtype(where, op, leaf.dtype)
        return _scatter(jnp.pad(leaf.ravel(), (0, -leaf.size % replicas.size)), op, replicas)

    return jax.tree.map(scatter, x)


def _check_dtype(where: str, op: str, dtype: Any) -> None:
    is_bool = jnp.issubdtype(dtype, jnp.bool_)
    if op in ("logical_and", "logical_or"):
        wanted, fits = "bools", is_bool
    elif op in ("min", "max"):
        wanted, fits = "real numbers", not (is_bool or jnp.issubdtype(dtype, jnp.complexfloating))
    else:
        wanted, fits = "numbers", not is_bool
    if not fits and op != "local":
        raise ReplicationError(
            f"[{where}] needs {wanted} for op={op!r}; got {dtype}. Convert it, or use another op."
        )


def _scatter(flat: jax.Array, op: str, replicas: Replicas) -> jax.Array:
    """[r * k] -> [k]."""
    if op == "local":
        return own_part(flat, replicas)
    if op in REDUCTIONS:
        return reduce_scatter_p.bind(
            flat,
            op=op,
            axis_name=replicas.axis_names,
            axis_index_groups=replicas.groups,
            size=replicas.size,
            dim=0,
        )
    total = lax.psum_scatter(
        flat * flat if op == "square_add" else flat,
        replicas.axis_name,
        axis_index_groups=replicas.groups,
        tiled=True,
    )
    return total / replicas.size if op == "mean" else total


def own_part(flat: jax.Array, replicas: Replicas) -> jax.Array:
    """[r * k] -> [k]: the part that a reduce-scatter leaves on this replica."""
    size = flat.size // replicas.size
    return lax.dynamic_slice_in_dim(flat, replicas.index * size, size)
