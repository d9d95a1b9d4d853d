"""`memory_stats`: bytes of arrays in each memory of a device."""

from __future__ import annotations

import jax

from ipujax.errors import PlacementError


def memory_stats(device: jax.Device | None = None) -> dict[str, dict[str, int]]:
    """Bytes of arrays in each memory of an IPU device, by memory kind.

    `device.memory_stats()` gives only those of the default memory.

    Args:
        device: of this process; None for the first.
    Returns:
        for "device" (tile memory) and "pinned_host" (streaming memory) what
        `jax.Device.memory_stats` returns: `bytes_in_use`, `peak_bytes_in_use`,
        `largest_alloc_size` and `bytes_limit` in bytes, and `num_allocs`.
    Raises:
        PlacementError: the device is not an IPU of this process.

    Example:
        >>> import jax, numpy as np, ipujax
        >>> device = jax.devices("ipu")[0]
        >>> before = ipujax.memory_stats(device)["pinned_host"]["bytes_in_use"]
        >>> host = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
        >>> x = jax.device_put(np.zeros(1000, np.float32), host)
        >>> ipujax.memory_stats(device)["pinned_host"]["bytes_in_use"] - before
        4000
    """
    from ipujax._poplar import _poplar

    local = jax.local_devices(backend="ipu")
    if device is None:
        device = local[0]
    if device not in local:
        raise PlacementError(
            f"[memory_stats] needs an IPU device of this process; got {device}. "
            'Use one of jax.local_devices(backend="ipu").'
        )
    return _poplar.memory_stats()[local.index(device)]
