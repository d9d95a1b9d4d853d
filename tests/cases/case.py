"""One row of an op table: a function, its arguments, and how it is run and compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import ml_dtypes
import numpy as np

FLOATS = ("float32", "float16", "bfloat16")
SIGNED = ("int32", "int16", "int8")
UNSIGNED = ("uint32", "uint16", "uint8")
INTEGERS = SIGNED + UNSIGNED
ALL_RUNS = ("eager", "jit", "grad", "vmap")

#: Relative and absolute tolerance by the least precise dtype in play.
TOLERANCE = {"float32": (2e-5, 2e-6), "float16": (4e-3, 2e-3), "bfloat16": (3e-2, 1e-2)}


@dataclass(frozen=True)
class Case:
    """`f(*args)`; every run on the IPU must equal JAX on the CPU."""

    name: str
    f: Callable[..., Any] = field(compare=False)
    args: tuple[Any, ...] = field(compare=False)
    runs: tuple[str, ...] = ("eager", "jit", "vmap")
    rtol: float | None = None
    atol: float | None = None

    def tolerance(self, *arrays: Any) -> tuple[float, float]:
        names = {str(np.asarray(a).dtype) for a in jax.tree.leaves((self.args, arrays))}
        rtol, atol = TOLERANCE["float32"]
        for name in FLOATS:
            if name in names:
                rtol, atol = TOLERANCE[name]
        return (
            self.rtol if self.rtol is not None else rtol,
            self.atol if self.atol is not None else atol,
        )


def dtype_of(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def array(shape: tuple[int, ...], dtype: str = "float32", low: float = -2, high: float = 2) -> Any:
    """Numbers from `low` to `high`, the same for the same arguments."""
    seed = sum(shape) * 7919 + len(shape) + int(10 * high)
    values = np.random.default_rng(seed).uniform(low, high, shape)
    if dtype == "bool":
        return np.asarray(values > (low + high) / 2)
    if dtype in INTEGERS:
        values = np.round(values)
    return np.asarray(values).astype(dtype_of(dtype))
