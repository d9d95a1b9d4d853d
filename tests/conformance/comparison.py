"""Whether a result from "ipu" is right, given the CPU's: by value, or by what it must satisfy.

Factorisations have more than one right answer (signs, phases, order), so they are held to what
defines them and to the CPU's eigenvalues or singular values, as JAX's own tests do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.conformance.harnesses import Harness
from tests.conformance.tolerances import bound

Arrays = Sequence[np.ndarray[Any, Any]]


def difference(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    """What is wrong with `ours`, or None.

    Args:
        arguments: the harness's inputs.
        ours: results of "ipu".
        theirs: results of JAX's CPU backend.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} results for {len(theirs)}"
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine.shape != other.shape or mine.dtype != other.dtype:
            return f"result {number} is {mine.dtype}{mine.shape}, not {other.dtype}{other.shape}"
    check = _PROPERTIES.get(harness.group, _by_value)
    return check(harness, arguments, ours, theirs)


def _by_value(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    del arguments
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        limit = bound(harness.group, harness.dtype, mine.dtype.name)
        found = _unequal(mine, other, limit)
        if found:
            return f"result {number} {mine.dtype}{list(mine.shape)}: {found}"
    return None


def wide(array: Any) -> np.ndarray[Any, Any]:
    """The same numbers in a dtype that NumPy computes with; PRNG keys as their words."""
    array = np.asarray(array)
    if array.dtype.kind in "biufc":
        return array
    return array.astype(np.float32) if "float" in array.dtype.name else array.astype(np.int32)


def _unequal(mine: Any, other: Any, limit: float) -> str | None:
    mine, other = wide(mine), wide(other)
    if limit == 0:
        bad = mine != other
    else:
        with np.errstate(all="ignore"):
            bad = ~np.isclose(mine, other, rtol=limit, atol=limit, equal_nan=True)
    if not bad.any():
        return None
    place = tuple(int(i) for i in np.argwhere(bad)[0])
    return (
        f"{int(bad.sum())} of {bad.size} differ, first at {list(place)}: "
        f"{mine[place]} for {other[place]} (bound {limit:g})"
    )


def _residual(name: str, found: Any, wanted: Any, dtype: Any, slack: float = 200) -> str | None:
    """The relative error in the norm, in units of eps times the size."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if wanted.size == 0:
        return None
    eps = max(np.finfo(dtype).eps, 1.2e-7)
    scale = 1 + np.abs(wanted).max()
    error = np.abs(found - wanted).max() / (scale * eps * max(wanted.shape[-2:]))
    return None if error < slack else f"{name} off by {error:.0f} eps"


def _t(matrix: Any) -> Any:
    return np.conj(np.swapaxes(matrix, -1, -2))


def _up(array: Any) -> Any:
    array = wide(array)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _svd(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    found = _residual("singular values", _up(ours[0]), _up(theirs[0]), ours[0].dtype)
    if found or len(ours) == 1:
        return found
    s, u, vt = (_up(each) for each in ours)
    k, dtype = s.shape[-1], ours[0].dtype
    product = (u[..., :k] * s[..., None, :]) @ vt[..., :k, :]
    return (
        _residual("u s v^H", product, _up(arguments[0]), dtype)
        or _residual("u^H u", _t(u) @ u, np.eye(u.shape[-1]), dtype)
        or _residual("v^H v", vt @ _t(vt), np.eye(vt.shape[-2]), dtype)
    )


def _eigh(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    values_first = ours[0].ndim < ours[-1].ndim
    w, v = (ours[0], ours[1]) if values_first else (ours[1], ours[0])
    w_cpu = theirs[0] if values_first else theirs[1]
    a, dtype = _up(arguments[0]), w.dtype
    lower = np.tril(a) if harness.params.get("lower", True) else _t(np.triu(a))
    full = lower + _t(np.tril(lower, -1))
    w, v = _up(w), _up(v)
    return (
        _residual("eigenvalues", w, _up(w_cpu), dtype)
        or _residual("a v", full @ v, v * w[..., None, :], dtype)
        or _residual("v^H v", _t(v) @ v, np.eye(v.shape[-1]), dtype)
    )


def _eig(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    a, w, dtype = _up(arguments[0]), _up(ours[0]), ours[0].real.dtype
    order, order_cpu = (np.sort_complex(np.round(_up(x), 3)) for x in (ours[0], theirs[0]))
    if not np.allclose(order, order_cpu, rtol=1e-2, atol=1e-2):
        return "eigenvalues differ"
    vectors = [_up(each) for each in ours[1:]]
    left = harness.params.get("compute_left_eigenvectors", False)
    if left:
        vl = vectors[0]
        found = _residual("a^H vl", _t(a) @ vl, vl * np.conj(w)[..., None, :], dtype)
        if found:
            return found
    if harness.params.get("compute_right_eigenvectors", False):
        vr = vectors[1 if left else 0]
        return _residual("a vr", a @ vr, vr * w[..., None, :], dtype)
    return None


def _qr(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    q, r, a = _up(ours[0]), _up(ours[1]), _up(arguments[0])
    dtype = ours[0].dtype
    return (
        _residual("q r", q @ r, a, dtype)
        or _residual("q^H q", _t(q) @ q, np.eye(q.shape[-1]), dtype)
        or _residual("r", r, np.triu(r), dtype)
    )


def _lu(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    lu, a, perm = _up(ours[0]), _up(arguments[0]), ours[2]
    m, n = lu.shape[-2:]
    k = min(m, n)
    lower = np.tril(lu, -1)[..., :, :k] + np.eye(m, k)
    upper = np.triu(lu)[..., :k, :]
    permuted = np.take_along_axis(a, perm[..., None], -2)
    return _residual("l u", lower @ upper, permuted, ours[0].dtype)


def _cholesky(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    # The strictly upper part of the primitive's result is undefined.
    return _by_value(
        harness, arguments, [np.tril(wide(x)) for x in ours], [np.tril(wide(x)) for x in theirs]
    )


def _sort(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    """An unstable sort may order equal keys as it likes: the keys and the set of rows count."""
    if harness.params.get("is_stable", True) or len(ours) == 1:
        return _by_value(harness, arguments, ours, theirs)
    num_keys = harness.params.get("num_keys", 1)
    rows = [np.sort(np.rec.fromarrays([wide(x).ravel() for x in each])) for each in (ours, theirs)]
    if rows[0].tolist() != rows[1].tolist():
        return "rows were torn apart"
    return _by_value(harness, arguments, ours[:num_keys], theirs[:num_keys])


def _approx_top_k(harness: Harness, arguments: Arrays, ours: Arrays, theirs: Arrays) -> str | None:
    """Among equal values any may be taken: indices must lead to the values, each once."""
    values, indices = ours
    operand = wide(arguments[0])
    if np.any(np.diff(np.sort(indices)) == 0):
        return "an index was given twice"
    found = np.take_along_axis(operand, indices, -1)
    if not np.array_equal(found, wide(values), equal_nan=True):
        return "indices lead to other values"
    return _by_value(harness, arguments, ours[:1], theirs[:1])


_PROPERTIES: dict[str, Callable[[Harness, Arrays, Arrays, Arrays], str | None]] = {
    "approx_top_k": _approx_top_k,
    "cholesky": _cholesky,
    "eig": _eig,
    "eigh": _eigh,
    "lu": _lu,
    "qr": _qr,
    "sort": _sort,
    "svd": _svd,
}
