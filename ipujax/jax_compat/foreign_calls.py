"""Targets of `jax.ffi.ffi_call`."""

from __future__ import annotations

#: JAX's names of platforms, by XLA's.
_PLATFORMS = {"Host": "cpu", "CUDA": "cuda", "ROCM": "rocm"}


def platforms_of_target(target: str) -> list[str]:
    """The platforms for which `jax.ffi.register_ffi_target` was called with this name.

    Only jaxlib's library knows the CPU's targets; jaxlib keeps targets of platforms that have no
    such calls, like this one, in a list.
    """
    from jaxlib import xla_client

    waiting = xla_client._custom_callback.items()
    found = [name for name, calls in waiting if any(target == call[0] for call in calls)]
    if target in xla_client.custom_call_targets("Host"):
        found.append("Host")
    return sorted(_PLATFORMS.get(name, name) for name in found)
