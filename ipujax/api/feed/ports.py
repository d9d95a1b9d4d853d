"""The ports of feeds: what a program calls to fetch a batch or to hand one out.

A cursor that each call takes and returns chains the calls of one feed, so that they keep their
order without other state. The cursor is the replica's number.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax import jax_compat
from ipujax.errors import FeedError

Specs = Sequence[jax.ShapeDtypeStruct]
_CURSOR = ((), np.dtype(np.int32))


@dataclass(frozen=True)
class Replicas:
    """The replicas in this process that run the code being traced, and how a batch is split."""

    count: int = 1
    copies: int = 1  #: number of consecutive replicas that get the same part
    axes: tuple[Any, ...] = ()  #: mapped mesh axes; those that split the batch come first

    @property
    def parts(self) -> int:
        return self.count // self.copies

    def cursor(self) -> jax.Array:
        if not self.axes:
            return jnp.int32(0)
        return jnp.asarray(lax.axis_index(self.axes), jnp.int32)


def replicas_here(split_over: Sequence[Any] | None = None) -> Replicas:
    """The replicas here of the `shard_map` or `ipujax.pmap` around the call; one outside these.

    Args:
        split_over: the axes that split batches; None: all.
    Raises:
        FeedError: the processes of the job do not have equally many.
    """
    mesh = jax.sharding.get_abstract_mesh()
    mapped = [name for name in mesh.axis_names if name in mesh.manual_axes]
    split = mapped if split_over is None else [name for name in mapped if name in split_over]
    others = [name for name in mapped if name not in split]
    sizes = dict(mesh.shape)
    copies = int(np.prod([sizes[name] for name in others], dtype=int))
    parts = int(np.prod([sizes[name] for name in split], dtype=int))
    here = parts * copies // _processes_of(parts * copies)
    if here % min(copies, here):
        raise FeedError(
            f"[feed] needs processes whose replicas get whole parts of a batch; got {here} "
            f"replicas in each, and parts for {copies} at a time. Change the mesh."
        )
    return Replicas(here, min(copies, here), (*split, *others))


def _processes_of(replicas: int) -> int:
    """The processes that run them: all of the job if this one has too few devices."""
    processes = jax.process_count()
    if processes == 1 or replicas <= jax.local_device_count():
        return 1
    if replicas % processes:
        raise FeedError(
            f"[feed] needs equally many replicas in each process; got {replicas} replicas and "
            f"{processes} processes. Use a mesh of all devices, with as many in each process."
        )
    return processes


def make(owner: Any, id_: str, specs: Specs = (), has_flag: bool = False) -> jax_compat.Port:
    """The port with this id: its results are the cursor, a flag if it has one, and arrays.

    Programs keep it and its owner, a feed, alive. The id is removed when nothing uses the port.
    """
    flag = [((), np.dtype(bool))] if has_flag else []
    results = (_CURSOR, *flag, *((tuple(s.shape), np.dtype(s.dtype)) for s in specs))

    def elsewhere(*arrays: Any) -> list[np.ndarray]:
        return call(id_, [np.asarray(x) for x in arrays], results)

    port = jax_compat.Port(id_, results, elsewhere, owner)
    weakref.finalize(port, native().remove_port, id_)
    return port


def call(id_: str, arrays: Sequence[np.ndarray], results: Sequence[Any]) -> list[np.ndarray]:
    """Calls a port from Python."""
    sizes = [int(np.prod(shape, dtype=int)) * dtype.itemsize for shape, dtype in results]
    found = native().call_port(id_, [bytes_of(x) for x in arrays], sizes)
    return [
        np.frombuffer(held, dtype).reshape(shape)
        for held, (shape, dtype) in zip(found, results, strict=True)
    ]


def bytes_of(array: np.ndarray) -> np.ndarray:
    """A view of the array's bytes: the buffer protocol has no bfloat16."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def native() -> Any:
    """The extension's part. Imported where it is used, as ipujax can be imported without it."""
    from ipujax._poplar import _poplar

    return _poplar.feeds
