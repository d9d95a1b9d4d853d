"""From a traced function to the bytes that every oracle gets."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np


def lower(function: Callable[..., Any], arguments: Sequence[np.ndarray]) -> tuple[bytes, str]:
    """StableHLO for the IPU, as bytecode and as text; every parameter is kept."""
    traced = jax.jit(function, keep_unused=True).trace(*arguments)
    module = traced.lower(lowering_platforms=("ipu",)).compiler_ir()
    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    return bytecode.getvalue(), str(module)
