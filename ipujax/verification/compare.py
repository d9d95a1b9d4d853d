"""Comparison of arrays: tolerances by dtype, NaN equal to NaN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

#: Relative tolerances by dtype: for a whole program, and for one op with equal inputs. Each applies
#: to the element and, because of cancellation, to the largest one. Integers must be equal.
TOLERANCE = {
    "float64": (1e-9, 1e-12),
    "complex128": (1e-9, 1e-12),
    "float32": (1e-4, 1e-5),
    "complex64": (1e-4, 1e-5),
    "float16": (1e-2, 4e-3),
    "bfloat16": (8e-2, 3.2e-2),
    "float8_e4m3fn": (0.25, 0.13),
    "float8_e5m2": (0.5, 0.26),
}


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two arrays differ."""

    what: str  #: "3 of 12 elements differ by up to 0.5 at (1, 2): 1.0 instead of 1.5"
    max_error: float  #: NaN where undefined, as for shapes
    index: tuple[int, ...]  #: of the worst element


def tolerance_of(dtype: Any, whole_program: bool) -> float:
    """The relative tolerance; 0 for dtypes that must be equal."""
    whole, single = TOLERANCE.get(np.dtype(dtype).name, (0.0, 0.0))
    return whole if whole_program else single


def difference(ours: Any, theirs: Any, rtol: float | None = None) -> Difference | None:
    """Where `ours` differs from `theirs` by more than `rtol` (by default one op's), or None."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if rtol is None:
        rtol = tolerance_of(theirs.dtype, whole_program=False)
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        what = f"{ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
        return Difference(what, np.nan, ())
    if ours.size == 0:
        return None
    a, b = _wide(ours), _wide(theirs)
    with np.errstate(all="ignore"):
        error = np.abs(a - b)
        finite = np.isfinite(b)
        scale = np.abs(b[finite]).max() if finite.any() else 0.0
        allowed = rtol * np.abs(b) + rtol * scale
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (finite & (error <= allowed))
    if same.all():
        return None
    error = np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))
    index = tuple(int(i) for i in np.unravel_index(np.argmax(error), error.shape))
    worst = float(error[index])
    what = (
        f"{int((~same).sum())} of {same.size} elements differ by up to {worst:.6g}, "
        f"at {list(index)}: {ours[index]} instead of {theirs[index]}"
    )
    return Difference(what, worst, index)


def _wide(array: np.ndarray) -> np.ndarray:
    """The array in a dtype in which differences are accurate."""
    if np.issubdtype(array.dtype, np.complexfloating):
        return array.astype(np.complex128)
    if array.dtype.kind in "biu" and array.dtype.itemsize <= 4:
        return array.astype(np.int64).astype(np.float64)
    if array.dtype.kind in "iu":
        return array.astype(np.longdouble)
    return array.astype(np.float64)
