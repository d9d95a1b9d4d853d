"""The devices of an exported program."""

from __future__ import annotations

import os

import jax
import jax.export

from ipujax import jax_compat
from ipujax.config import from_environment
from ipujax.errors import PlacementError

COUNT = "JAX_IPU_DEVICE_COUNT"


def program_devices(exported: jax.export.Exported) -> list[jax.Device]:
    """The first IPUs, as many as the program runs on; JAX makes more of them if it has made none.

    Raises:
        PlacementError: there are fewer.
    """
    needed = exported.nr_devices
    is_few = needed > from_environment().machine.device_count
    if is_few and not os.environ.get(COUNT) and not jax_compat.backends_exist():
        os.environ[COUNT] = str(needed)
    devices = jax.local_devices(backend=jax_compat.PLATFORM)[:needed]
    if len(devices) < needed:
        raise PlacementError(
            f"[run] needs {needed} devices for {exported.fun_name}; got {len(devices)}. Set "
            f"{COUNT}={needed}."
        )
    return devices
