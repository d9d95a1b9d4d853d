"""Arrays of a chosen alignment, for the tests of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest


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
