"""Which replicas hold parts of the parameters that an optimizer sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jax import lax

from ipujax.api.replicate.replicas import AxisName, Replicas, resolve

_sharded_over: ContextVar[Replicas | None] = ContextVar("sharded_over", default=None)


@contextmanager
def sharded(replicas: Replicas) -> Iterator[None]:
    """Marks what is traced inside as an update of parts, one for each replica."""
    token = _sharded_over.set(replicas)
    try:
        yield
    finally:
        _sharded_over.reset(token)


def sum_over_shards(where: str, x: Any, axis_name: AxisName | None = None) -> Any:
    """The sum of x over the replicas that hold parts of the parameters; x itself without parts.

    Args:
        axis_name: the axis of the parts outside of `shard_state`.
    """
    replicas = _sharded_over.get() if axis_name is None else resolve(where, axis_name)
    if replicas is None:
        return x
    return lax.psum(x, replicas.axis_name, axis_index_groups=replicas.groups)
