"""The memories and layouts that arrays can have on an IPU; errors for all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import ml_dtypes
import numpy as np

from ipujax.errors import PlacementError

#: JAX's names for the memories of a device: that of the tiles, and streaming memory.
DEVICE = "device"
HOST = "pinned_host"
#: Names that mean the default.
_DEFAULT_KINDS = frozenset({"", "tile"})

#: Custom calls that request a memory or a layout for a value.
MEMORY_CALL = "annotate_device_placement"
LAYOUT_CALL = "LayoutConstraint"
CALLS = frozenset({MEMORY_CALL, LAYOUT_CALL})

#: The attribute by which `jax.experimental.compute_on` requests where an op runs.
COMPUTE_ATTRIBUTE = "_xla_compute_type"

#: Attributes by which `ipu.stage`, `ipu.shard` and `ipu.pipeline` say where an op runs.
IPU = "ipujax.ipu"
STAGE = "ipujax.stage"
STAGE_NAME = "ipujax.stage_name"
DIRECTION = "ipujax.direction"
PIPELINE = "ipujax.pipeline"
#: The size in bytes of the smallest value that waits in host memory for its backward pass.
OFFLOAD = "ipujax.offload"

#: The attribute of the stages of a phase, if values leave the tiles between phases: `LeavingPhase`.
PHASE = "ipujax.phase"
#: Which values leave: all that another phase reads, or those that a backward phase reads.
AFTER_EACH_PHASE, AFTER_FORWARD = "each_phase", "forward"

#: The attribute with a stage's options for the ops that update its parameters.
WEIGHT_UPDATE = "ipujax.weight_update"

#: The attribute by which `ipu.block` names what an op belongs to.
BLOCK = "ipujax.block"

#: The attribute of a call of `ipu.outlined`; and that of the ops that replace the call, with the
#: numbers of such calls around them.
OUTLINED = "ipujax.outlined"
OUTLINED_CALLS = "ipujax.outlined_calls"

#: The dimensions of an array; the one whose elements are adjacent in memory comes first.
MinorToMajor = tuple[int, ...]

#: The layout of a result that takes the one that the program gave it, if any.
AUTO_LAYOUT = "auto"
#: Names of layouts that leave the choice to the compiler.
_CHOSEN = frozenset({"default", AUTO_LAYOUT})


def numbers_of(path: str) -> tuple[int, ...]:
    """The numbers in the text of `OUTLINED_CALLS`, outermost first."""
    return tuple(map(int, path.split("/")))


def options_attribute(options: Iterable[tuple[str, str]]) -> str:
    """The value of `WEIGHT_UPDATE`: names of options with their values."""
    return ";".join(f"{name}={value}" for name, value in options)


def read_options(attribute: str) -> tuple[tuple[str, str], ...]:
    """The options, from the value of `WEIGHT_UPDATE`."""
    parts = (item.partition("=") for item in attribute.split(";"))
    return tuple((name, value) for name, _, value in parts)


class LeavingPhase(NamedTuple):
    """A phase of a phased strategy, whose values wait in the host's memory for other phases."""

    number: int  #: its place in time, from 0
    leaving: str  #: AFTER_EACH_PHASE or AFTER_FORWARD
    minimum_bytes: int  #: smaller values stay on the IPU

    def attribute(self) -> str:
        """The value of `PHASE`."""
        return f"{self.number}:{self.leaving}:{self.minimum_bytes}"


def read_phase(attribute: str) -> LeavingPhase:
    """The phase, from the value of `PHASE`."""
    number, leaving, minimum_bytes = attribute.split(":")
    return LeavingPhase(int(number), leaving, int(minimum_bytes))


def block_attribute(name: str, ipu: int | None) -> str:
    """The value of `BLOCK`."""
    return f"{'' if ipu is None else ipu}:{name}"


def read_block(attribute: str) -> tuple[str, int | None]:
    """The block's name and its IPU, from the value of `BLOCK`."""
    number, _, name = attribute.partition(":")
    return name, int(number) if number else None


def memory_of(where: str, kind: str | None) -> str:
    """DEVICE or HOST, whichever `kind` names.

    Args:
        where: the caller, such as "device_put", for the message.
        kind: JAX's name for it; None if nothing was requested.
    Raises:
        PlacementError: IPUs have no such memory.
    """
    if kind is None or kind in _DEFAULT_KINDS:
        return DEVICE
    if kind not in (DEVICE, HOST):
        raise PlacementError(
            f"[{where}] needs one of the memory kinds of IPUs, {DEVICE!r} and {HOST!r}; "
            f"got {kind!r}. Use {HOST!r} for streaming memory."
        )
    return kind


def layout_of(
    where: str, text: str, rank: int, dtype: np.dtype | None = None
) -> MinorToMajor | None:
    """The layout that XLA's `text` names; None for the row-major one, or if the choice is free.

    Args:
        where: the caller, for the message.
        text: "default", "auto", or dimensions with the rest of a layout: "{0,1}", "{0,1:E(4)}".
        dtype: the element type, whose bits a layout may repeat; None if it must not.
    Raises:
        PlacementError: IPUs have no such layout.
    """
    if text in _CHOSEN:
        return None
    dimensions, _, rest = text.strip("{}").partition(":")
    order = tuple(int(axis) for axis in dimensions.split(",") if axis.isdecimal())
    if rest and (dtype is None or rest != f"E({_element_bits(dtype)})"):
        raise PlacementError(
            f"[{where}] needs a layout that orders the dimensions of the array; got {text}, with "
            "tiles or elements of another size. Use Layout(major_to_minor) alone."
        )
    if sorted(order) != list(range(rank)):
        raise PlacementError(
            f"[{where}] needs a layout that names each of {rank} dimensions once; got {text}. "
            "Correct the layout's major_to_minor."
        )
    return None if order == tuple(reversed(range(rank))) else order


def _element_bits(dtype: np.dtype) -> int:
    """The bits of an element: fewer than those of its bytes for 2- and 4-bit types."""
    for info in (ml_dtypes.iinfo, ml_dtypes.finfo):
        try:
            return int(info(dtype).bits) * (2 if dtype.kind == "c" else 1)
        except ValueError:
            continue
    return 8 * dtype.itemsize


def check_compute(place: str, line: str) -> None:
    """Refuses ops that were requested to run anywhere but on the device.

    Args:
        place: XLA's name for it: "dense" for JAX's "device", "host" for its "device_host".
        line: the user's source line, or empty.
    """
    if place != "dense":
        at = f" (at {line})" if line else ""
        raise PlacementError(
            f"[compute_on] needs ops that run on the device; got one for {place!r}{at}. "
            "Call the host with jax.pure_callback, or remove compute_on."
        )
