"""Shardings of `jax.Array`s for the blocks on each device of a saved program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

Blocks = tuple[tuple[int, ...], tuple[int, ...]]  #: as `jax_compat.blocks_of` gives them


def block_shardings(
    arrays: Sequence[tuple[Blocks, str]], devices: Sequence[Any]
) -> list[NamedSharding] | None:
    """`NamedSharding`s over one mesh that give arrays these blocks; None if there are none.

    Args:
        arrays: the blocks and the memory kind of each.
        devices: the program's devices, in its order.

    `jax.jit` takes arrays of different meshes only if the devices are in the same order, so the
    mesh keeps their order, and its axes are the prime factors of their number.
    """
    for sizes in sorted(set(permutations(_primes(len(devices))))):
        mesh = Mesh(np.reshape(np.array(devices, object), sizes), _axis_names(sizes))
        specs = [(_spec(counts, blocks, sizes), kind) for (counts, blocks), kind in arrays]
        if all(spec is not None for spec, _ in specs):
            return [
                NamedSharding(mesh, spec or PartitionSpec(), memory_kind=k) for spec, k in specs
            ]
    return None


def _spec(
    counts: tuple[int, ...], blocks: tuple[int, ...], sizes: tuple[int, ...]
) -> PartitionSpec | None:
    """The axes of a mesh of these sizes that shard each dimension; None if there are none."""
    if not counts:
        return PartitionSpec()
    places = np.reshape(np.unravel_index(blocks, counts), (len(counts), *sizes))
    parts: list[tuple[str, ...]] = []
    for place, count in zip(places, counts, strict=True):
        axes = range(len(sizes))
        steps = [
            int(place[tuple(int(i == axis) for i in axes)]) if sizes[axis] > 1 else 0
            for axis in axes
        ]
        chosen = sorted((axis for axis in axes if steps[axis]), key=lambda axis: -steps[axis])
        named = np.zeros(sizes, int)
        for axis in chosen:  # major first
            named = named * sizes[axis] + np.indices(sizes)[axis]
        if math.prod(sizes[axis] for axis in chosen) != count or not np.array_equal(named, place):
            return None
        parts.append(tuple(_axis_names(sizes)[axis] for axis in chosen))
    return PartitionSpec(*(part or None for part in parts))


def _axis_names(sizes: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"axis{i}" for i in range(len(sizes)))


def _primes(number: int) -> tuple[int, ...]:
    """The prime factors."""
    found: list[int] = []
    factor = 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return tuple(found)
