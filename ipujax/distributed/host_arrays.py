"""Collectives of host arrays between the processes of a job.

They run as programs over the IPUs of all processes, so every process calls them in the same order
as its other programs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ipujax.errors import ConfigError
from ipujax.jax_compat import PLATFORM

#: How arrays of several processes become one.
Reduction = Literal["average", "sum", "product", "min", "max"]

_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "average": np.add,
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}
#: Bytes of the description of an array.
_HEADER = 512


def allreduce(tree: Any, op: Reduction = "average") -> Any:
    """Combines the arrays of all processes, element by element.

    Args:
        tree: a pytree of NumPy arrays, numbers, or JAX arrays of this process; of equal shapes and
            dtypes in all processes.
        op: "average", which divides the sum by the number of processes, "sum", "product", "min" or
            "max". Averages of integers are float64.
    Returns:
        a pytree of NumPy arrays, the same in all processes: sums are balanced trees over the
        processes.
    Raises:
        ConfigError: an unknown operation, or shapes or dtypes that differ.

    Source: `horovod.allreduce`.

    Example:
        >>> ipu.distributed.allreduce({"loss": np.float32(3)})
        {'loss': array(3., dtype=float32)}
    """
    if op not in _OPERATIONS:
        raise ConfigError(
            f"[distributed] needs an operation of {', '.join(_OPERATIONS)}; got {op!r}. Use one of "
            "these."
        )

    def reduced(x: Any) -> np.ndarray:
        arrays = _of_all("allreduce", x)
        first = arrays[0]
        for process, other in enumerate(arrays):
            if (other.dtype, other.shape) != (first.dtype, first.shape):
                raise ConfigError(
                    f"[distributed] needs arrays of one shape and dtype; got {_text(first)} in "
                    f"process 0 and {_text(other)} in process {process}. Pass the same in all."
                )
        total = _tree(arrays, _OPERATIONS[op])
        if op != "average":
            return np.asarray(total)
        return np.asarray(total / np.asarray(len(arrays), _divisor(first.dtype)))

    return jax.tree.map(reduced, tree)


def allgather(tree: Any) -> Any:
    """Joins the arrays of all processes along the first dimension, which may differ.

    Args:
        tree: a pytree of arrays as in `allreduce`; numbers become arrays of one element.
    Returns:
        a pytree of NumPy arrays, the same in all processes.
    Raises:
        ConfigError: dtypes, or dimensions after the first, that differ.

    Source: `horovod.allgather`.

    Example:
        >>> ipu.distributed.allgather(np.arange(3))
        array([0, 1, 2])
    """

    def gathered(x: Any) -> np.ndarray:
        arrays = [np.atleast_1d(each) for each in _of_all("allgather", x)]
        first = arrays[0]
        for process, other in enumerate(arrays):
            if (other.dtype, other.shape[1:]) != (first.dtype, first.shape[1:]):
                raise ConfigError(
                    f"[distributed] needs arrays that differ in the first dimension only; got "
                    f"{_text(first)} in process 0 and {_text(other)} in process {process}. Pass "
                    "the same others in all."
                )
        return np.concatenate(arrays)

    return jax.tree.map(gathered, tree)


def broadcast(tree: Any, root: int = 0) -> Any:
    """The arrays of one process, in all processes.

    Args:
        tree: a pytree of arrays as in `allreduce`; only those of `root` are used.
        root: number of a process.
    Returns:
        a pytree of NumPy arrays.
    Raises:
        ConfigError: there is no such process.

    Source: `horovod.broadcast`.

    Example:
        >>> ipu.distributed.broadcast(np.float32(0.1))
        array(0.1, dtype=float32)
    """
    if not 0 <= root < jax.process_count():
        raise ConfigError(
            f"[distributed] needs a process below {jax.process_count()}; got {root}. Pass the "
            "number of one."
        )
    return jax.tree.map(lambda x: _of_all("broadcast", x)[root], tree)


def barrier(name: str = "barrier") -> None:
    """Waits until all processes call it.

    Args:
        name: the same in all processes.
    Raises:
        ConfigError: the names differ.

    Example:
        >>> ipu.distributed.barrier()
    """
    names = {each.tobytes() for each in _gathered_bytes(name.encode()[:_HEADER], _HEADER)}
    if len(names) > 1:
        texts = sorted(each.rstrip(b"\0").decode(errors="replace") for each in names)
        raise ConfigError(
            f"[distributed] needs all processes at one barrier; got {', '.join(texts)}. Give it "
            "the same name in all."
        )


def _divisor(dtype: np.dtype) -> np.dtype:
    return dtype if np.issubdtype(dtype, np.inexact) or dtype.kind == "V" else np.dtype(np.float64)


def _text(x: np.ndarray) -> str:
    return f"{x.dtype.name}{list(x.shape)}"


def _tree(arrays: Sequence[np.ndarray], operation: Callable[[Any, Any], Any]) -> Any:
    """A balanced tree, split at the largest power of two below the number of arrays."""
    if len(arrays) == 1:
        return arrays[0]
    left = 1 << ((len(arrays) - 1).bit_length() - 1)
    return operation(_tree(arrays[:left], operation), _tree(arrays[left:], operation))


def _of_all(where: str, x: Any) -> list[np.ndarray]:
    """The array of each process, bit for bit."""
    own = _on_host(where, x)
    if jax.process_count() == 1:
        return [own]
    header = json.dumps([own.dtype.name, own.shape]).encode()
    descriptions = [
        json.loads(each.tobytes().rstrip(b"\0")) for each in _gathered_bytes(header, _HEADER)
    ]
    metas = [(np.dtype(name), tuple(shape)) for name, shape in descriptions]
    sizes = [dtype.itemsize * int(np.prod(shape, dtype=object)) for dtype, shape in metas]
    room = 1 << max(0, max(sizes) - 1).bit_length()  # few sizes, as each is a program
    parts = _gathered_bytes(np.ascontiguousarray(own).tobytes(), room)
    return [
        np.frombuffer(part[:size].tobytes(), dtype).reshape(shape)
        for part, size, (dtype, shape) in zip(parts, sizes, metas, strict=True)
    ]


def _on_host(where: str, x: Any) -> np.ndarray:
    if isinstance(x, jax.core.Tracer):
        raise ConfigError(
            f"[distributed] needs arrays on the host; got one that is being traced, in {where}. "
            "Call it outside of jit; inside use jax.lax.psum or ipu.cross_replica_sum."
        )
    if isinstance(x, jax.Array) and not x.is_fully_addressable:
        if not x.is_fully_replicated:
            raise ConfigError(
                f"[distributed] needs arrays of this process; got one of several, {x.sharding}, in "
                f"{where}. Use jax.experimental.multihost_utils.process_allgather."
            )
        x = x.addressable_shards[0].data
    return np.asarray(x)


def _gathered_bytes(data: bytes, room: int) -> list[np.ndarray]:
    """The bytes of each process, over one device of each."""
    firsts = {device.process_index: device for device in reversed(jax.devices(PLATFORM))}
    mesh = Mesh(np.array([firsts[process] for process in sorted(firsts)]), ("process",))
    padded = np.zeros((1, room), np.uint8)
    padded[0, : len(data)] = np.frombuffer(data, np.uint8)
    own = jax.device_put(padded, firsts[jax.process_index()])
    sharding = NamedSharding(mesh, PartitionSpec("process"))
    parts = jax.make_array_from_single_device_arrays((len(firsts), room), sharding, [own])
    return list(np.asarray(replicated(parts, mesh)))


def replicated(x: jax.Array, mesh: Mesh) -> jax.Array:
    """The whole array on each device of a mesh, whose processes call this at the same time."""
    return jax.jit(_same, out_shardings=NamedSharding(mesh, PartitionSpec()))(x)


def _same(x: jax.Array) -> jax.Array:
    """A function that stays, so that `jit` knows the programs it has compiled."""
    return x
