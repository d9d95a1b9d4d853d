"""Dtypes of values in MLIR, and of the arrays that represent them."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from ipujax.types import BY_STABLEHLO


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of a value in MLIR."""
    return BY_STABLEHLO[str(value.type.element_type)].numpy


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """The value in that dtype."""
    return value if value.dtype == dtype else lax.convert_element_type(value, dtype)
