"""Programs give the same through poplar::Engine as through the IPU Model's own executor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sdk.conftest import Run
from tests.sdk.feed_programs import FEEDS
from tests.sdk.programs import PROGRAMS, STAGED

#: What a loop of steps makes of one ulp in each.
RELATIVE, ABSOLUTE = 2e-6, 1e-6


@pytest.mark.parametrize("name", [*PROGRAMS, *FEEDS])
def test_program(name: str, results: Run) -> None:
    _compare(results("programs", "fast")[name], results("programs", "sdk")[name])


@pytest.mark.parametrize("name", STAGED)
def test_program_in_stages(name: str, results: Run) -> None:
    _compare(results("staged", "fast")[name], results("staged", "sdk")[name])


def _compare(fast: dict[str, Any], sdk: dict[str, Any]) -> None:
    assert "error" not in fast, fast
    assert "error" not in sdk, sdk
    assert len(fast["arrays"]) == len(sdk["arrays"]) > 0
    for wanted, got in zip(fast["arrays"], sdk["arrays"], strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind == "f":
            np.testing.assert_allclose(got, wanted, rtol=RELATIVE, atol=ABSOLUTE)
        else:
            np.testing.assert_array_equal(got, wanted)
