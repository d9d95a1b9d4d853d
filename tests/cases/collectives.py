"""Rows of collectives: what each replica calls, and the results by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from jax import lax

import ipujax as ipu
from tests.cases.case import dtype_of

AXIS = "replica"
FLOATS = ("float32", "float16", "bfloat16")
WHOLE = ("int32", "uint32", "int16", "int8", "uint8")
NUMBERS = (*FLOATS, *WHOLE, "complex64")
EVERY = (*NUMBERS, "bool")
#: Operators that divide.
QUOTIENTS = (*FLOATS, "complex64")
REALS = (*FLOATS, *WHOLE)
SHAPE = (8, 3)

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Collective:
    """One row.

    Attributes:
        name: unique.
        call: (x of one replica [8, 3], groups or None) -> its result; axis "replica".
        oracle: (x of the replicas of one group [r, 8, 3]) -> their results, stacked.
        dtypes: that it has.
        grouped: whether it also works in groups.
    """

    name: str
    call: Callable[[Any, Groups | None], Any]
    oracle: Callable[[np.ndarray], np.ndarray]
    dtypes: tuple[str, ...] = EVERY
    grouped: bool = True

    def want(self, x: np.ndarray, groups: Groups | None) -> np.ndarray:
        """The results of all replicas, from x [R, 8, 3]."""
        out: list[Any] = [None] * len(x)
        for group in groups or [range(len(x))]:
            for replica, result in zip(group, self.oracle(x[list(group)]), strict=True):
                out[replica] = result
        return np.stack(out)


def values(dtype: str, num_replicas: int, seed: int = 0) -> np.ndarray:
    """[num_replicas, 8, 3] of small values, of which sums and products of 8 fit most types."""
    rng = np.random.default_rng(seed)
    shape = (num_replicas, *SHAPE)
    if dtype == "bool":
        return rng.integers(0, 8, shape) > 0  # mostly true: "and" must see both
    if dtype == "complex64":
        return (rng.uniform(-1, 1, shape) + 1j * rng.uniform(-1, 1, shape)).astype(dtype)
    if dtype in WHOLE:
        low = 0 if dtype.startswith("u") else -3
        return rng.integers(low, 4, shape).astype(dtype)
    return rng.uniform(-1.5, 1.5, shape).astype(dtype_of(dtype))


def _exact(x: np.ndarray) -> np.ndarray:
    """Wide enough that NumPy's own rounding does not matter."""
    if x.dtype == bool or np.issubdtype(x.dtype, np.integer):
        return x.astype(np.int64)
    return x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)


def _on_all(reduce: Callable[[np.ndarray], np.ndarray], x: np.ndarray) -> np.ndarray:
    return np.stack([reduce(x)] * len(x))


def _sum(x: np.ndarray) -> np.ndarray:
    return _exact(x).sum(0)


def _scattered(reduced: np.ndarray, num_replicas: int) -> np.ndarray:
    """Flattened, padded with zeros, one part for each replica."""
    flat = reduced.reshape(-1)
    size = -(-flat.size // num_replicas)
    padded = np.zeros(size * num_replicas, flat.dtype)
    padded[: flat.size] = flat
    return padded.reshape(num_replicas, size)


def _exchanged(x: np.ndarray, split: int, concat: int) -> np.ndarray:
    parts = [np.split(one, len(x), split) for one in x]
    return np.stack([np.concatenate([p[i] for p in parts], concat) for i in range(len(x))])


def _own_part(x: np.ndarray) -> np.ndarray:
    return np.stack([_scattered(one, len(x))[i] for i, one in enumerate(x)])


def _reduce_scatter(
    op: str, reduce: Callable[[np.ndarray], np.ndarray], dtypes: tuple[str, ...]
) -> Collective:
    return Collective(
        f"ipu.reduce_scatter {op}",
        lambda x, g: ipu.reduce_scatter(x, op, _size(g)),
        lambda x: _scattered(reduce(_exact(x)), len(x)),
        dtypes,
    )


def _size(groups: Groups | None) -> int | None:
    """Of groups of consecutive replicas, in which the functions of `ipujax` work."""
    return None if groups is None else len(groups[0])


def _permuted(pairs: Callable[[int], list[tuple[int, int]]], x: np.ndarray) -> np.ndarray:
    out = np.zeros_like(x)
    for source, target in pairs(len(x)):
        out[target] = x[source]
    return out


def _ring(n: int) -> list[tuple[int, int]]:
    return [(i, (i + 1) % n) for i in range(n)]


def _half_ring(n: int) -> list[tuple[int, int]]:
    """No replica sends to replica 0."""
    return [(i, i + 1) for i in range(n - 1)]


def _ppermute(name: str, pairs: Callable[[int], list[tuple[int, int]]]) -> Collective:
    return Collective(
        f"lax.ppermute {name}",
        lambda x, g: lax.ppermute(x, AXIS, pairs(lax.axis_size(AXIS))),
        partial(_permuted, pairs),
        grouped=False,
    )


#: Of `jax.lax`: groups may be any.
OF_LAX = (
    Collective(
        "lax.psum",
        lambda x, g: lax.psum(x, AXIS, axis_index_groups=g),
        partial(_on_all, _sum),
        NUMBERS,
    ),
    Collective(
        "lax.pmean",
        lambda x, g: lax.pmean(x, AXIS, axis_index_groups=g),
        partial(_on_all, lambda x: _exact(x).mean(0)),
        QUOTIENTS,
    ),
    Collective(
        "lax.pmax",
        lambda x, g: lax.pmax(x, AXIS, axis_index_groups=g),
        partial(_on_all, lambda x: x.max(0)),
        (*REALS, "bool"),
    ),
    Collective(
        "lax.pmin",
        lambda x, g: lax.pmin(x, AXIS, axis_index_groups=g),
        partial(_on_all, lambda x: x.min(0)),
        (*REALS, "bool"),
    ),
    Collective(
        "lax.all_gather",
        lambda x, g: lax.all_gather(x, AXIS, axis_index_groups=g),
        partial(_on_all, lambda x: x),
    ),
    Collective(
        "lax.all_gather tiled along 1",
        lambda x, g: lax.all_gather(x, AXIS, axis_index_groups=g, axis=1, tiled=True),
        partial(_on_all, lambda x: np.concatenate(list(x), 1)),
    ),
    Collective(
        "lax.psum_scatter",
        lambda x, g: lax.psum_scatter(x, AXIS, axis_index_groups=g, tiled=True),
        lambda x: _sum(x).reshape(len(x), -1, SHAPE[1]),
        NUMBERS,
    ),
    Collective(
        "lax.all_to_all",
        lambda x, g: lax.all_to_all(x, AXIS, 0, 1, axis_index_groups=g, tiled=True),
        lambda x: _exchanged(x, 0, 1),
    ),
    _ppermute("ring", _ring),
    _ppermute("half ring", _half_ring),
)

#: Of `ipujax`: groups are of consecutive replicas.
OF_IPUJAX = (
    Collective(
        "ipu.cross_replica_sum",
        lambda x, g: ipu.cross_replica_sum(x, _size(g)),
        partial(_on_all, _sum),
    ),
    Collective(
        "ipu.cross_replica_mean",
        lambda x, g: ipu.cross_replica_mean(x, _size(g)),
        partial(_on_all, lambda x: _exact(x).mean(0)),
    ),
    Collective(
        "ipu.all_gather",
        lambda x, g: ipu.all_gather(x, _size(g)),
        partial(_on_all, lambda x: x),
    ),
    Collective(
        "ipu.all_to_all 0 1",
        lambda x, g: ipu.all_to_all(x, 0, 1, _size(g)),
        lambda x: _exchanged(x, 0, 1),
    ),
    Collective(
        "ipu.all_to_all 0 0",
        lambda x, g: ipu.all_to_all(x, 0, 0, _size(g)),
        lambda x: _exchanged(x, 0, 0),
    ),
    Collective(
        "ipu.assume_equal_across_replicas",
        lambda x, g: ipu.assume_equal_across_replicas(x),
        partial(_on_all, lambda x: x[0]),
        grouped=False,
    ),
    _reduce_scatter("add", lambda x: x.sum(0), NUMBERS),
    _reduce_scatter("mean", lambda x: x.mean(0), NUMBERS),
    _reduce_scatter("mul", lambda x: x.prod(0), NUMBERS),
    _reduce_scatter("min", lambda x: x.min(0), REALS),
    _reduce_scatter("max", lambda x: x.max(0), REALS),
    _reduce_scatter("square_add", lambda x: (x * x).sum(0), NUMBERS),
    _reduce_scatter("logical_and", lambda x: x.min(0), ("bool",)),
    _reduce_scatter("logical_or", lambda x: x.max(0), ("bool",)),
    Collective(
        "ipu.reduce_scatter local",
        lambda x, g: ipu.reduce_scatter(x, "local", _size(g)),
        _own_part,
    ),
)


def groupings(row: Collective, num_replicas: int) -> list[Groups | None]:
    """All replicas, groups of consecutive ones, and for `jax.lax` strided and scrambled ones."""
    if not row.grouped:
        return [None]
    every = np.arange(num_replicas)
    halves = [every.reshape(2, -1), every.reshape(-1, 2), every.reshape(-1, 1)]
    if row in OF_LAX:
        scrambled = np.random.default_rng(1).permutation(num_replicas)
        halves += [every.reshape(-1, 2).T, scrambled.reshape(-1, 2)]
    return [None, *(tuple(tuple(map(int, group)) for group in table) for table in halves)]
