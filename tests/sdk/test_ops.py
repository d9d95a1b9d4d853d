"""Each primitive of JAX's harnesses, once, through poplar::Engine and by the fast build."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sdk.conftest import Run
from tests.sdk.ops import small_harnesses

#: Relative bounds of results that are sums or iterations in another order; else 1 ulp.
BOUNDS: dict[str, float] = {}

#: What public names cannot do: refused, with this in the error.
REFUSED: dict[str, str] = {}


@pytest.mark.parametrize("group", small_harnesses())
def test_op(group: str, results: Run) -> None:
    fast, sdk = results("ops", "fast")[group], results("ops", "sdk")[group]
    if "error" in fast:
        assert "error" in sdk, "the fast build refuses it"
        return
    if group in REFUSED:
        assert REFUSED[group] in sdk["error"]
        return
    assert "error" not in sdk, sdk["error"]
    assert len(fast["arrays"]) == len(sdk["arrays"])
    for wanted, got in zip(fast["arrays"], sdk["arrays"], strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind not in "fc":
            np.testing.assert_array_equal(got, wanted)
        elif group in BOUNDS:
            scale = np.max(np.abs(wanted), initial=0)
            np.testing.assert_allclose(got, wanted, rtol=BOUNDS[group], atol=BOUNDS[group] * scale)
        else:
            np.testing.assert_array_max_ulp(got, wanted, maxulp=1)


def test_bounds_name_ops_that_are_run() -> None:
    assert set(BOUNDS) | set(REFUSED) <= set(small_harnesses())
