"""Dtypes of values in MLIR, and of arrays that stand for them."""

from __future__ import annotations

from typing import Any

import numpy as np
from jax import lax

from ipujax.compiler.dtypes import DTYPES

_COMPLEX = {"complex<f32>": np.complex64, "complex<f64>": np.complex128}


def dtype_of(value: Any) -> np.dtype[Any]:
    """The dtype of a value in MLIR."""
    name = str(value.type.element_type)
    return np.dtype(_COMPLEX[name] if name in _COMPLEX else DTYPES[name].numpy)


def cast(value: Any, dtype: np.dtype[Any]) -> Any:
    """The value in that dtype."""
    return value if value.dtype == dtype else lax.convert_element_type(value, dtype)
