"""Reads the dense attributes that the reference interpreter returns, of every real dtype."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np

#: Element types as MLIR writes them.
_DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"float{bits}") for bits in (16, 32, 64)},
    **{name: getattr(ml_dtypes, f"int{name[1:]}") for name in ("i2", "i4")},
    **{name: getattr(ml_dtypes, f"uint{name[2:]}") for name in ("ui2", "ui4")},
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
#: Types that the buffer protocol supports; others are parsed from the attribute's text.
_BUFFERED = re.compile(r"i1|u?i(8|16|32|64)|f(16|32|64)")
_TOKEN = re.compile(r"0x[0-9A-Fa-f]+|[-+]?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?")


def dtype_of(element_type: str) -> np.dtype:
    """The NumPy dtype of an MLIR element type; KeyError if there is none."""
    return np.dtype(_DTYPES[element_type])


def dtype_by_name(name: str) -> np.dtype:
    """The dtype of a name, including those of ml_dtypes such as "bfloat16"."""
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def array_of(attribute: Any) -> np.ndarray:
    """A copy of the elements of a dense attribute."""
    element_type = str(attribute.type.element_type)
    if _BUFFERED.fullmatch(element_type):
        return np.array(attribute)
    dtype, shape = dtype_of(element_type), tuple(attribute.type.shape)
    text = str(attribute)
    body = text[text.index("<") + 1 : text.rindex("> : ")]
    if body.startswith('"0x'):
        raw = np.frombuffer(bytes.fromhex(body[3:-1]), dtype)
        return np.array(np.broadcast_to(raw, shape) if raw.size == 1 else raw.reshape(shape))
    values = np.array([_number(token, dtype) for token in _TOKEN.findall(body)]).astype(dtype)
    if values.size == 1:
        return np.array(np.broadcast_to(values.reshape(()), shape))
    return values.reshape(shape)


def _number(token: str, dtype: np.dtype) -> float:
    if not token.startswith("0x"):
        return float(token)
    word = np.dtype(f"uint{8 * dtype.itemsize}")
    return float(np.array(int(token, 16), word).view(dtype))
