"""The host functions that a `HostEmbedding`'s primitives call, and the arguments of its lookups.

Functions that do the same compare equal, so that JAX finds a compiled program again. They refer
weakly to the table, so that JAX's caches do not keep a table of many gigabytes.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax.api.arguments import array as as_array
from ipujax.api.arguments import as_int32
from ipujax.api.embed.table.table import HostTable, Part
from ipujax.errors import CallbackError, ConfigError, ReplicationError

Reference = weakref.ref[HostTable]


@dataclass(frozen=True)
class Options:
    """What is known about a lookup when it is traced."""

    table: Reference
    columns: int
    dtype: np.dtype
    is_trained: bool
    clip: bool
    axis_name: Any
    strategy: str | None
    own_rate: bool  #: the learning rate is given, not the optimizer's


@dataclass(frozen=True)
class Lookup:
    """`lookup_p`'s function."""

    table: Reference
    strategy: str | None
    num_replicas: int
    clip: bool

    def __call__(self, token: np.ndarray, ids: np.ndarray, replica: np.ndarray) -> np.ndarray:
        part = _part(self.strategy, int(replica), self.num_replicas)
        return _alive(self.table).lookup(float(token), ids, part, self.clip)


@dataclass(frozen=True)
class Update:
    """`update_p`'s function."""

    table: Reference
    strategy: str | None
    num_replicas: int
    clip: bool
    own_rate: bool

    def __call__(
        self,
        token: np.ndarray,
        rate: np.ndarray,
        ids: np.ndarray,
        gradients: np.ndarray,
        replica: np.ndarray,
    ) -> np.ndarray:
        number = int(replica)
        raised = _alive(self.table).deposit(
            float(token),
            ids,
            gradients,
            _part(self.strategy, number, self.num_replicas),
            replica=number,
            learning_rate=float(rate) if self.own_rate else None,
            clip=self.clip,
        )
        return np.asarray(raised, np.float32)


@dataclass(frozen=True)
class Ahead:
    """`lookup_ahead_p`'s function."""

    table: Reference
    strategy: str | None
    num_replicas: int
    clip: bool

    def __call__(self, ids: np.ndarray, replica: np.ndarray) -> np.ndarray:
        part = _part(self.strategy, int(replica), self.num_replicas)
        _alive(self.table).lookup_ahead(ids, part, self.clip)
        return np.zeros((), np.float32)


def _part(strategy: str | None, replica: int, num_replicas: int) -> Part:
    return Part() if strategy is None else Part(strategy, replica, num_replicas)


def _alive(reference: Reference) -> HostTable:
    table = reference()
    if table is None:
        raise CallbackError(
            "[HostEmbedding] needs the table that the program was compiled for; got one that was "
            "deleted. Keep the HostEmbedding while programs use it."
        )
    return table


def spread(options: Options) -> tuple[int, int, jax.Array]:
    """The columns that each replica looks up, the number of replicas, and this one's number."""
    if options.axis_name is None:
        return options.columns, 1, jnp.int32(0)
    count = int(lax.axis_size(options.axis_name))
    replica = lax.axis_index(options.axis_name).astype(jnp.int32)
    if options.strategy is None:
        return options.columns, 1, replica
    if options.strategy == "token":
        return options.columns, count, replica
    if options.columns % count:
        raise ReplicationError(
            f"[HostEmbedding] needs the replicas to divide the {options.columns} columns with "
            f'partition_strategy="encoding"; got {count} replicas. Use "token" or other columns.'
        )
    return options.columns // count, count, replica


def _flat(array: jax.Array) -> jax.Array:
    """[n]. Avoids ravel() for untraced arrays: it is jitted, and inside jax.grad each call leaves
    an entry in JAX."""
    is_traced = isinstance(array, jax.core.Tracer)
    return array.ravel() if is_traced else lax.reshape(array, (array.size,))


def together(where: str, indices: Any) -> tuple[jax.Array, Callable[[jax.Array], Any]]:
    """All indices as one array [n], and a function that gives rows [n, columns] their shapes."""
    leaves, tree = jax.tree.flatten(indices)
    arrays = [as_array(where, "indices", leaf) for leaf in leaves]
    for array in arrays:
        if not jnp.issubdtype(array.dtype, jnp.integer):
            raise ConfigError(
                f"[{where}] needs indices of an integer dtype; got {array.dtype}. Use "
                "astype(jnp.int32)."
            )
    if not arrays:
        raise ConfigError(f"[{where}] needs indices; got none. Pass an array of integers.")
    flat = jnp.concatenate([as_int32(_flat(array)) for array in arrays])

    def rebuild(rows: jax.Array) -> Any:
        found, begin = [], 0
        for array in arrays:
            part = rows[begin : begin + array.size]
            found.append(part.reshape(*array.shape, rows.shape[-1]))
            begin += array.size
        return jax.tree.unflatten(tree, found)

    return flat, rebuild
