"""Casts between float16 and float32, which `ipu.autocast` makes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

HALF, FLOAT = jnp.dtype(jnp.float16), jnp.dtype(jnp.float32)


class Held(NamedTuple):
    """A value, and whether it comes from literals alone, which take any dtype."""

    value: Any
    weak: bool = False


def is_cast(dtype: Any) -> bool:
    """Whether a policy may change values of this dtype."""
    return dtype in (HALF, FLOAT)


def cast(value: Any, dtype: Any, weak: bool = False) -> Any:
    """The value in the dtype if both are float16 or float32; finite literals stay finite."""
    if value.dtype == dtype or not (is_cast(value.dtype) and is_cast(dtype)):
        return value
    if weak and dtype == HALF:
        largest = float(jnp.finfo(dtype).max)
        if isinstance(value, np.ndarray):
            kept = np.where(np.isfinite(value), np.clip(value, -largest, largest), value)
            return kept.astype(dtype)
        value = jnp.where(jnp.isfinite(value), jnp.clip(value, -largest, largest), value)
    return jax.lax.convert_element_type(value, dtype)


def cast_like(values: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """The values in the dtypes of their variables."""
    return [
        cast(value, aval.dtype) if hasattr(aval, "dtype") else value
        for value, aval in zip(values, avals, strict=True)
    ]
