"""Arrays in the host's memory for functions of `jax.experimental.buffer_callback`."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax.experimental.buffer_callback import ExecutionStage

from ipujax.errors import CallbackError


class HostBuffer:
    """An argument, or a result to fill in: NumPy and DLPack see its memory without a copy."""

    def __init__(self, array: np.ndarray):
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        """Whether it is a result."""
        return self._array.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **wanted: Any) -> Any:
        """Copies an argument, as few libraries take arrays that they must not change."""
        array = self._array if self.writeable else self._array.copy()
        return array.__dlpack__(**wanted)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


class ExecutionContext:
    """The callback's first argument."""

    stage = ExecutionStage.EXECUTE

    @property
    def stream(self) -> int:
        raise CallbackError(
            "[host callback] needs a GPU for a stream; got a callback of an IPU program. "
            "Use the arrays, which are in the host's memory."
        )
