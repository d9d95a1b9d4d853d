"""Each primitive of JAX's harnesses, once, through poplar::Engine and by the fast build."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conformance.harnesses import all_harnesses
from tests.sdk.conftest import Run
from tests.sdk.ops import small_harnesses

#: Bounds relative to the largest element, where sums are in another order or iterations take other
#: steps; elsewhere 1 ulp of each element.
BOUNDS = {
    "cholesky": 2e-7,  # by columns, not by blocks
    "cumlogsumexp": 2e-7,  # scans by doubling, not from left to right
    "cumprod": 2e-7,
    "cumsum": 4e-7,
    "custom_linear_solve": 2e-7,  # LU without blocks
    "eig": 4e-6,  # QR iterations
    "eigh": 5e-6,  # Jacobi rotations, not tridiagonal form
    "erfc": 4e-7,  # a formula of exponentials, 3 ulp at most
    "lu": 2e-7,
    "qr": 4e-7,
    "svd": 4e-7,
}
#: Groups whose first result's columns are known up to a sign.
UP_TO_SIGN = frozenset({"eigh"})


@pytest.mark.parametrize("group", small_harnesses())
def test_op(group: str, results: Run) -> None:
    fast, sdk = results("ops", "fast")[group], results("ops", "sdk")[group]
    assert "error" not in fast, fast["error"]
    assert "error" not in sdk, sdk["error"]
    assert len(fast["arrays"]) == len(sdk["arrays"])
    for index, (wanted, got) in enumerate(zip(fast["arrays"], sdk["arrays"], strict=True)):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if index == 0 and group in UP_TO_SIGN:
            wanted, got = _signed(wanted), _signed(got)
        _compare(group, _real(wanted), _real(got))


def _compare(group: str, wanted: np.ndarray, got: np.ndarray) -> None:
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(got, wanted)
    elif group in BOUNDS:
        scale = np.max(np.abs(wanted), initial=0)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=BOUNDS[group] * scale)
    else:
        np.testing.assert_array_max_ulp(got, wanted, maxulp=1)


def _real(array: np.ndarray) -> np.ndarray:
    return np.stack([array.real, array.imag]) if array.dtype.kind == "c" else array


def _signed(columns: np.ndarray) -> np.ndarray:
    """The same columns, the largest element of each positive."""
    rows = np.argmax(np.abs(columns), axis=-2, keepdims=True)
    return columns * np.sign(np.take_along_axis(columns, rows, axis=-2))


def test_every_primitive_of_the_harnesses_is_run() -> None:
    groups = {harness.group for harness in all_harnesses()}
    assert set(small_harnesses()) == groups
    assert len(groups) > 130


def test_bounds_name_ops_that_are_run() -> None:
    assert set(BOUNDS) <= set(small_harnesses())
