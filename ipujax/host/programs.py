"""Host programs that programs on IPUs call: StableHLO that JAX's CPU backend runs.

A callback's id names a function of the process that traced it, so a program with one cannot be
saved. The id of a host program is the program itself, as `jax.export` serialises it: data, which
any process with JAX runs.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ipujax.errors import CallbackError

if TYPE_CHECKING:
    import jax.export

Shape = tuple[int, ...]

_PREFIX = "host program "


@dataclass(frozen=True)
class Signature:
    """Shapes and dtypes of the results of a callback, and dtypes of its arguments."""

    shapes: tuple[Shape, ...]
    dtypes: tuple[np.dtype, ...]
    taken: tuple[np.dtype, ...] = ()  #: empty: the dtypes in the program


Entry = tuple[Callable[..., Sequence[object]], Signature]


def id_of(exported: jax.export.Exported) -> str:
    """The callback id of a program that was exported for the platform "cpu"."""
    content = bytes(exported.serialize())
    return f"{_PREFIX}{_digest(content)} {base64.b64encode(content).decode('ascii')}"


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_program(callback_id: str) -> bool:
    return callback_id.startswith(_PREFIX)


@functools.lru_cache(maxsize=256)
def entry(callback_id: str) -> Entry:
    """The function of NumPy arrays that runs the program, and its signature.

    Raises:
        CallbackError: the id does not contain a program, or JAX has no CPU backend.
    """
    import jax.export

    exported = jax.export.deserialize(bytearray(_content(callback_id)))
    cpu = _cpu()
    call = jax.jit(exported.call)

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        with jax.default_device(cpu), jax.enable_x64(True):
            return [np.asarray(result) for result in jax.tree.leaves(call(*arrays))]

    def dtypes(avals: Sequence[Any]) -> tuple[np.dtype, ...]:
        return tuple(np.dtype(aval.dtype) for aval in avals)

    shapes = tuple(tuple(aval.shape) for aval in exported.out_avals)
    return run, Signature(shapes, dtypes(exported.out_avals), dtypes(exported.in_avals))


def _content(callback_id: str) -> bytes:
    """The program in an id. Its digest detects damage: jaxlib crashes on some damaged bytecode."""
    digest, _, text = callback_id.removeprefix(_PREFIX).partition(" ")
    try:
        content = base64.b64decode(text, validate=True)
    except binascii.Error:
        content = b""
    if _digest(content) != digest:
        raise CallbackError(
            "[host program] needs the id of a program, as ipujax convert wrote it; got another "
            "text. Convert the program again."
        )
    return content


def _cpu() -> jax.Device:
    import jax

    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        raise CallbackError(
            "[host program] needs JAX's CPU backend for operations on the host; got the platforms "
            f"{jax.config.jax_platforms}. Set JAX_PLATFORMS=ipu,cpu."
        ) from None
