"""One small use of each primitive that JAX's harnesses have, preferably in float32."""

from __future__ import annotations

import numpy as np

from tests.conformance.harnesses import WIDE, Harness, all_harnesses

#: Arguments of more elements than this are for the full run of the harnesses.
_MOST_ELEMENTS = 1 << 12


def small_harnesses() -> dict[str, Harness]:
    """By group: the harness with the fewest elements, in float32 where there is one."""
    groups: dict[str, list[Harness]] = {}
    for harness in all_harnesses():
        if harness.dtype not in WIDE:
            groups.setdefault(harness.group, []).append(harness)
    return {group: found for group, all_ in groups.items() if (found := _smallest(all_))}


def _smallest(harnesses: list[Harness]) -> Harness | None:
    single = [h for h in harnesses if h.dtype == "float32"] or harnesses
    sizes = [(sum(np.size(a) for a in h.arguments()), i) for i, h in enumerate(single)]
    least = [(size, i) for size, i in sizes if 1 < size <= _MOST_ELEMENTS]
    return single[min(least)[1]] if least else None
