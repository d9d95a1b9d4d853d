"""The arguments of a pipeline: shared by all micro-batches, carried between them, or batched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax import jax_compat
from ipujax.api.replicate.weight_shards import (
    Partition,
    WeightShard,
    gather_weights,
    is_shard,
    partition_of,
)
from ipujax.errors import PipelineError

WHERE = "ipu.pipeline"
SHARED, CARRIED, BATCHED = None, "carried", 0


class Arguments:
    """The leaves of the arguments of one call: shared ones first, then carried, then batched.

    Args:
        keeps_shards: shared operands that are an `ipu.WeightShard` stay parts, described by
            `partitions`; otherwise they are gathered here.
        reduces_once: make all operands vary over the same replicas, so that derivatives of the loop
            are summed over the replicas after it; otherwise only the carried ones.
    """

    def __init__(
        self,
        args: tuple[Any, ...],
        in_axes: Any,
        *,
        keeps_shards: bool = False,
        reduces_once: bool = True,
    ):
        if not keeps_shards:
            args = gather_weights(args)
        leaves, self._tree = jax.tree.flatten(args, is_leaf=is_shard)
        axes = _axes_of(jax.tree.unflatten(self._tree, range(len(leaves))), in_axes)
        self._order = [i for kind in (SHARED, CARRIED, BATCHED) for i in _indices(axes, kind)]
        self.is_shared = [axis == SHARED for axis in axes]
        self.num_shared = len(_indices(axes, SHARED))
        self.num_carried = len(_indices(axes, CARRIED))
        ordered = [leaves[i] for i in self._order]
        found = [partition_of(WHERE, x) if is_shard(x) else None for x in ordered]
        _check_partitions(found[self.num_shared :])
        self.partitions = found[: self.num_shared] if any(found) else []
        given = [x.part if is_shard(x) else x for x in ordered]
        operands = [jnp.asarray(x) for x in given]
        varying = _varying_alike(operands)
        first, second = self.num_shared, self.num_shared + self.num_carried
        if reduces_once:
            operands = varying
        operands[first:second] = varying[first:second]
        self.carried = [lax.stop_gradient(x) for x in operands[first:second]]
        self.batched = operands[second:]
        self.operands = [*operands[:first], *self.carried, *self.batched]

    def check(self, leading: tuple[int, ...]) -> None:
        """Refuses batched arguments without the leading axes: micro-batches, or repeats before."""
        for operand in self.batched:
            if operand.shape[: len(leading)] != leading:
                sizes = ", ".join(map(str, leading))
                axes = "axes of repeats and" if len(leading) > 1 else "axis of"
                raise PipelineError(
                    f"[{WHERE}] needs batched arguments with the leading {axes} micro-batches "
                    f"({sizes}); got shape {operand.shape}. Reshape the batch to "
                    f"({sizes}, samples of a micro-batch, ...), or pass None in in_axes "
                    "for what all micro-batches share."
                )

    @property
    def shared(self) -> list[Any]:
        """The shared leaves, as they were given."""
        found = self.operands[: self.num_shared]
        for i, partition in enumerate(self.partitions):
            if partition is not None:
                found[i] = WeightShard(found[i], partition.shape, partition.axis_name)
        return found

    @property
    def micro_avals(self) -> list[Any]:
        """What one micro-batch gets, in order."""
        count = len(self.operands) - len(self.batched)
        whole = [jax_compat.abstract(x) for x in self.operands[:count]]
        for i, partition in enumerate(self.partitions):
            if partition is not None:
                whole[i] = whole[i].update(shape=partition.shape)
        return whole + [jax_compat.abstract(x, of_slice=True) for x in self.batched]

    def unflatten(self, given: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments from their leaves in this order."""
        leaves: list[Any] = [None] * len(self._order)
        for i, leaf in zip(self._order, given, strict=True):
            leaves[i] = leaf
        args: tuple[Any, ...] = jax.tree.unflatten(self._tree, leaves)
        return args


def _check_partitions(of_others: Sequence[Partition | None]) -> None:
    if any(of_others):
        raise PipelineError(
            f"[{WHERE}] needs an ipu.WeightShard to be shared by all micro-batches; got one in a "
            "batched or carried argument. Pass None in in_axes for it, or gather it before."
        )


def _varying_alike(operands: list[Any]) -> list[Any]:
    """With `shard_map(check_vma=True)`, marks operands that are equal on all replicas as varying.

    Their gradients are then summed over the replicas once after the loop, not in each micro-batch.
    """
    axes = {axis for operand in operands for axis in jax_compat.varying_axes(operand)}
    return [
        jax_compat.varying_over(x, axes) if jnp.issubdtype(x.dtype, jnp.inexact) else x
        for x in operands
    ]


def _indices(axes: Sequence[Any], kind: Any) -> list[int]:
    return [i for i, axis in enumerate(axes) if axis == kind]


def _axes_of(args: tuple[Any, ...], in_axes: Any) -> list[Any]:
    """One for each leaf."""
    if in_axes is None:
        in_axes = (SHARED, *[BATCHED] * (len(args) - 1))
    try:
        full = jax.tree.broadcast(in_axes, args, is_leaf=lambda axis: axis is None)
    except ValueError as error:
        raise PipelineError(
            f"[{WHERE}] needs in_axes that are a prefix of the arguments; got {in_axes!r}: "
            f"{error}. Pass one entry for each argument."
        ) from None
    pairs = zip(
        jax.tree.leaves(full, is_leaf=lambda axis: axis is None),
        jax.tree.leaves(args, is_leaf=lambda leaf: leaf is None),
        strict=True,
    )
    axes = [axis for axis, leaf in pairs if leaf is not None]
    for axis in axes:
        if isinstance(axis, bool) or axis not in (SHARED, CARRIED, BATCHED):
            raise PipelineError(
                f"[{WHERE}] needs in_axes made of None, 0 and 'carried'; got {axis!r}. "
                "Move the axis of micro-batches to the front."
            )
    return axes
