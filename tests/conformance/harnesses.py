"""JAX's own test harnesses, one for each use of a primitive, with arguments that never change."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

#: With x64 off JAX computes these in 32 bits, so that such a harness repeats another one.
WIDE = frozenset({"float64", "complex128", "int64", "uint64"})


class Harness(NamedTuple):
    """One use of one primitive: `function(*arguments())` on any platform."""

    name: str
    group: str
    dtype: str
    function: Callable[..., Any]
    arguments: Callable[[], Sequence[Any]]
    #: what the harness was made with, for comparisons that depend on it
    params: dict[str, Any]


def all_harnesses() -> list[Harness]:
    """Every harness that JAX ships, by group and name.

    JAX loops over sets of dtypes, so its own order is another one in each process.
    """
    # The module would send its own flags to whoever runs it from a command line.
    os.environ.setdefault("JAX_ENABLE_X64", "0")
    from jax._src.internal_test_util import test_harnesses

    found = map(_harness, test_harnesses.all_harnesses)
    return sorted(found, key=lambda harness: (harness.group, harness.name))


def _harness(theirs: Any) -> Harness:
    def arguments() -> Sequence[Any]:
        seed = zlib.crc32(theirs.fullname.encode())
        return list(theirs.dyn_args_maker(np.random.RandomState(seed)))

    dtype = "none" if theirs.dtype is None else np.dtype(theirs.dtype).name
    return Harness(
        theirs.fullname, theirs.group_name, dtype, theirs.dyn_fun, arguments, dict(theirs.params)
    )


def chosen(
    harnesses: Sequence[Harness],
    group: str | None = None,
    contains: str | None = None,
    shard: tuple[int, int] = (0, 1),
    limit: int | None = None,
) -> list[int]:
    """Positions of the harnesses to run.

    Args:
        group: only this group.
        contains: only names with this text.
        shard: (i, n): every n-th harness, from the i-th on.
        limit: at most so many of each group, spread evenly over it.
    """
    found = [
        i
        for i, h in enumerate(harnesses)
        if (group is None or h.group == group) and (contains is None or contains in h.name)
    ]
    if limit is not None:
        groups: dict[str, list[int]] = {}
        for i in found:
            groups.setdefault(harnesses[i].group, []).append(i)
        found = sorted(i for each in groups.values() for i in _spread(each, limit))
    return found[shard[0] :: shard[1]]


def _spread(positions: Sequence[int], limit: int) -> list[int]:
    if len(positions) <= limit:
        return list(positions)
    return [positions[k * len(positions) // limit] for k in range(limit)]
