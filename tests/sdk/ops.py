"""One use of each primitive that JAX's harnesses have: small, preferably in float32."""

from __future__ import annotations

import numpy as np

from tests.conformance.harnesses import WIDE, Harness, all_harnesses

#: Arguments of more elements than this are used where a primitive has no others.
_MOST_ELEMENTS = 1 << 12


def small_harnesses() -> dict[str, Harness]:
    """By group, of the float32 harnesses where there are any: that with the fewest elements."""
    groups: dict[str, list[Harness]] = {}
    for harness in all_harnesses():
        if harness.dtype not in WIDE:
            groups.setdefault(harness.group, []).append(harness)
    return {group: _smallest(found) for group, found in groups.items()}


def _smallest(harnesses: list[Harness]) -> Harness:
    """More than one element, so that places matter; without arguments only where all are large."""
    single = [h for h in harnesses if h.dtype == "float32"] or harnesses
    sizes = [(sum(np.size(a) for a in h.arguments()), i) for i, h in enumerate(single)]
    least = [(size, i) for size, i in sizes if 1 < size <= _MOST_ELEMENTS]
    without = [(size, i) for size, i in sizes if size == 0]
    return single[min(least or without[-1:] or sizes)[1]]
