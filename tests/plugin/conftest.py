"""What the tests of the plugin share: its devices, its counters, arrays of a chosen alignment."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np
import pytest


@pytest.fixture
def device() -> jax.Device:
    return jax.devices("ipu")[0]


@pytest.fixture
def stats() -> Callable[..., int]:
    """`stats(name, device_id=0)`: a counter of the plugin."""
    jax.devices("ipu")
    from ipujax._poplar import _poplar

    def read(name: str, device_id: int = 0) -> int:
        return int(_poplar.device_stats()[device_id][name])

    return read


@pytest.fixture
def aligned() -> Callable[..., np.ndarray]:
    """`aligned(count, offset=0)`: float32 0, 1, ... that begin `offset` bytes past 64 x n."""

    def make(count: int, offset: int = 0) -> np.ndarray:
        raw = np.zeros(count * 4 + 128, np.uint8)
        start = -raw.ctypes.data % 64 + offset
        array = raw[start : start + count * 4].view(np.float32)
        array[:] = np.arange(count)
        return array

    return make
