"""The memory and the layout that arrays have on an IPU, where programs run; errors for all else."""

from __future__ import annotations

from ipujax.errors import PlacementError

#: JAX's names for the memory that programs compute in: the one that an IPU offers.
DEVICE_KINDS = frozenset({"", "device", "tile"})

#: Custom calls by which a program says where a value shall be: in a memory, in a layout.
MEMORY_CALL = "annotate_device_placement"
CALLS = frozenset({MEMORY_CALL, "LayoutConstraint"})

#: The attribute by which `jax.experimental.compute_on` says where an op shall run.
COMPUTE_ATTRIBUTE = "_xla_compute_type"

#: Layouts that leave the choice to the compiler, as the module names them.
_CHOSEN = frozenset({"default", "auto"})


def check_memory(where: str, kind: str | None) -> None:
    """Refuses any memory but the device's.

    Args:
        where: what asks, such as "device_put", for the message.
        kind: as JAX names it; None where nothing was asked for.
    """
    if kind is not None and kind not in DEVICE_KINDS:
        raise PlacementError(
            f"[{where}] needs a memory kind that an IPU has, which is 'device'; got {kind!r}. "
            "Leave the array there, or move it to the host between programs with "
            "jax.device_put(x, jax.devices('cpu')[0])."
        )


def check_layout(where: str, minor_to_major: str, rank: int) -> None:
    """Refuses any layout but the row-major one.

    Args:
        where: what asks, for the message.
        minor_to_major: "default", "auto" or dimensions as in "{1,0}" and "{1,0:T(8,128)}".
    """
    row_major = "{" + ",".join(map(str, reversed(range(rank)))) + "}"
    if minor_to_major not in _CHOSEN and minor_to_major != row_major:
        raise PlacementError(
            f"[{where}] needs the row-major layout {row_major}; got {minor_to_major}. "
            "Remove the layout: the compiler chooses how arrays are spread over the tiles."
        )


def check_compute(place: str, line: str) -> None:
    """Refuses ops that shall run anywhere but on the device.

    Args:
        place: as XLA names it: "dense" for JAX's "device", "host" for its "device_host".
        line: the user's source line; may be empty.
    """
    if place != "dense":
        at = f" (at {line})" if line else ""
        raise PlacementError(
            f"[compute_on] needs ops that run on the device; got some for {place!r}{at}. "
            "Call the host with jax.pure_callback, or remove compute_on."
        )
