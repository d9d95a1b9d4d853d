"""Collectives: gcl where its groups and operators can express the op, popx for all others.

`replica_groups` and `source_target_pairs` name the program's devices in order: replicas of the
graph. A program for several devices has either several partitions or several replicas, so either
id is the replica's number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ipujax.compiler.ir import Op, Value, combiner_of, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.elementwise import body_of
from ipujax.compiler.rules.registry import rule
from ipujax.errors import InvalidProgramError

declare("partition_id", "replica_id")
declare("all_reduce", partition="each", collective=True, combines=True)
declare("cross-replica-sum", collective=True, replicated="JAX no longer emits it")
declare("reduce_scatter", along=("scatter_dimension",), collective=True, combines=True)
declare("all_gather", along=("all_gather_dim",), collective=True, moves=True)
declare("all_to_all", along=("split_dimension", "concat_dimension"), collective=True, moves=True)
declare(
    "collective_permute",
    "collective_broadcast",
    partition="elementwise",
    collective=True,
    moves=True,
)

Groups = list[list[int]]

#: StableHLO op of a body -> gcl.CollectiveOperator.
OPERATORS = {
    "add": "ADD",
    "multiply": "MUL",
    "minimum": "MIN",
    "maximum": "MAX",
    "and": "LOGICAL_AND",
    "or": "LOGICAL_OR",
}
#: Results of these need no rounding to bfloat16 if their operands are bfloat16.
_EXACT = frozenset({"MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR"})
#: The arrays of up to this many members are combined by one map if no operator equals the body.
_ARRAYS_PER_MAP = 8


@rule("partition_id", "replica_id")
def device_id(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The number of the replica that runs the program."""
    return [builder.graph.addReplicationIndexConstant(builder.debug(op))]


@rule("all_reduce")
def all_reduce(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Several arrays at once, each combined by the same body."""
    groups = groups_of(builder, op)
    tensors = builder.operands(op)
    name = operator_of(op)
    if name is None:
        results = [_combine(builder, op, value, groups) for value in op.operands]
        return builder.round_bfloat16(op, results)
    group = _comm_group(builder, name, op.operands, groups)
    operator, debug = getattr(ipu.gcl.CollectiveOperator, name), builder.debug(op)
    if group is None:
        results = ipu.popx.allReduce(
            builder.graph,
            tensors,
            operator,
            groups,
            builder.program,
            debug,
            builder.collective_options,
        )
    else:
        results = ipu.gcl.allReduceCrossReplica(
            builder.graph,
            tensors,
            operator,
            builder.program,
            group,
            debug,
            builder.collective_options,
        )
    return list(results) if name in _EXACT else builder.round_bfloat16(op, results)


@rule("cross-replica-sum")
def cross_replica_sum(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The older form of an all_reduce that adds."""
    operator = ipu.gcl.CollectiveOperator.ADD
    results = ipu.popx.allReduce(
        builder.graph,
        builder.operands(op),
        operator,
        groups_of(builder, op),
        builder.program,
        builder.debug(op),
        builder.collective_options,
    )
    return builder.round_bfloat16(op, results)


@rule("reduce_scatter")
def reduce_scatter(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Each member gets its part of dimension `scatter_dimension` of each array's combination."""
    groups, name = groups_of(builder, op), operator_of(op)
    dim, debug = op.attrs["scatter_dimension"], builder.debug(op)
    if name is None:
        wholes = [_combine(builder, op, value, groups) for value in op.operands]
        parts = [_own_part(builder, whole, dim, groups, debug) for whole in wholes]
        return builder.round_bfloat16(op, parts)
    datas = [_parts_in_order(builder, value, dim, len(groups[0]), debug) for value in op.operands]
    operator = getattr(ipu.gcl.CollectiveOperator, name)
    group = _comm_group(builder, name, op.operands, groups)
    if group is None:
        parts = ipu.popx.reduceScatter(
            builder.graph,
            datas,
            operator,
            groups,
            builder.program,
            debug,
            builder.collective_options,
        )
    else:
        parts = ipu.gcl.reduceScatterCrossReplica(
            builder.graph,
            datas,
            operator,
            builder.program,
            group,
            debug,
            builder.collective_options,
        )
    parts = [
        part.reshape(list(result.shape)) for part, result in zip(parts, op.results, strict=True)
    ]
    return parts if name in _EXACT else builder.round_bfloat16(op, parts)


@rule("all_gather")
def all_gather(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The members' arrays, concatenated along `all_gather_dim`."""
    groups, dim, debug = groups_of(builder, op), op.attrs["all_gather_dim"], builder.debug(op)
    wholes = [builder.variable(builder.type_of(v), v.shape, debug) for v in op.results]
    for tensor, whole in zip(builder.operands(op), wholes, strict=True):
        ipu.popx.allGatherToDestination(
            builder.graph,
            tensor,
            _members_first(whole, dim, len(groups[0])),
            groups,
            builder.program,
            debug,
        )
    return wholes


@rule("all_to_all")
def all_to_all(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Part j of `split_dimension` goes to member j, which concatenates along `concat_dimension`."""
    groups, attrs, debug = groups_of(builder, op), op.attrs, builder.debug(op)
    size = len(groups[0])
    wholes = [builder.variable(builder.type_of(v), v.shape, debug) for v in op.results]
    for tensor, whole in zip(builder.operands(op), wholes, strict=True):
        ipu.popx.allToAllToDestination(
            builder.graph,
            _members_first(tensor, attrs["split_dimension"], size),
            _members_first(whole, attrs["concat_dimension"], size),
            groups,
            builder.program,
            debug,
            builder.collective_options,
        )
    return wholes


@rule("collective_permute")
def collective_permute(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Sends along pairs (source, target); a device that receives nothing gets zeros."""
    pairs = [(int(a), int(b)) for a, b in op.attrs["source_target_pairs"]]
    return [
        ipu.popx.collectivePermute(builder.graph, tensor, pairs, builder.program, builder.debug(op))
        for tensor in builder.operands(op)
    ]


@rule("collective_broadcast")
def collective_broadcast(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """All members get the first one's array; devices in no group get zeros."""
    groups = groups_of(builder, op)
    return [
        ipu.popx.broadcast(
            builder.graph,
            tensor,
            0,
            groups,
            builder.program,
            builder.debug(op),
            builder.collective_options,
        )
        for tensor in builder.operands(op)
    ]


# Groups ------------------------------------------------------------------------------------------


def groups_of(builder: Builder, op: Op) -> Groups:
    """The members of each group, by replica.

    No groups at all mean all devices. One group of only replica 0, in a program of several
    partitions, means all partitions if the op has a channel, else each partition on its own.
    """
    num_replicas = builder.graph.getReplicationFactor()
    rows = op.attrs.get("replica_groups")
    groups = [[int(i) for i in row if i >= 0] for row in (() if rows is None else rows)]
    groups = [group for group in groups if group]
    if not groups:
        return [list(range(num_replicas))]
    if groups == [[0]] and num_replicas > 1:
        return (
            [list(range(num_replicas))] if _channel(op) > 0 else [[i] for i in range(num_replicas)]
        )
    if op.name != "all_reduce" and len({len(group) for group in groups}) > 1:
        raise InvalidProgramError(
            f"[{op.name}] needs groups of one size; got {groups} (at {op.source.line}). "
            "Divide the devices evenly."
        )
    return groups


def _channel(op: Op) -> int:
    found = re.search(r"handle = (-?\d+)", str(op.attrs.get("channel_handle", "")))
    return int(found[1]) if found else 0


def _comm_group(
    builder: Builder, name: str, values: Sequence[Value], groups: Groups
) -> ipu.gcl.CommGroup | None:
    """The gcl.CommGroup of these groups; None if popx must do it.

    gcl's logical operators are only for bool; popx has them on bits too.
    """
    if name.startswith("LOGICAL") and any(value.dtype != "i1" for value in values):
        return None
    num_replicas = builder.graph.getReplicationFactor()
    size, wanted = len(groups[0]), sorted(groups)
    if any(len(group) != size for group in groups) or num_replicas % size:
        return None
    types = ipu.gcl.CommGroupType
    for type_ in (types.ALL, types.CONSECUTIVE, types.ORTHOGONAL):
        if type_ == types.ALL and size != num_replicas:
            continue
        if _members(type_, size, num_replicas) == wanted:
            return ipu.gcl.CommGroup(type_, size)
    return None


def _members(type_: ipu.gcl.CommGroupType, size: int, num_replicas: int) -> Groups:
    """The replicas of each group: ORTHOGONAL groups take the same place in consecutive blocks."""
    num_groups = num_replicas // size
    if type_ == ipu.gcl.CommGroupType.ORTHOGONAL:
        return [list(range(i, num_replicas, num_groups)) for i in range(num_groups)]
    return [list(range(i * size, (i + 1) * size)) for i in range(num_groups)]


# Bodies ------------------------------------------------------------------------------------------


def operator_of(op: Op) -> str | None:
    """The name of the operator that equals the op's body; None if there is none."""
    return OPERATORS.get(combiner_of(op.regions[0]) or "")


def _combine(builder: Builder, op: Op, value: Value, groups: Groups) -> ipu.Tensor:
    """Combines with any body: each member gets all arrays and combines them in member order."""
    size = len(groups[0])
    if any(len(group) != size for group in groups):
        raise InvalidProgramError(
            f"[{op.name}] needs groups of one size for a custom reduction; got {groups} "
            f"(at {op.source.line}). Divide the devices evenly, or combine with one operator."
        )
    debug, place = builder.debug(op), ipu.popops.expr.PlaceHolder
    shape = [size, *value.shape]
    gathered = builder.variable(builder.type_of(value), shape, debug)
    ipu.popx.allGatherToDestination(
        builder.graph,
        builder.tensor(value),
        gathered,
        groups,
        builder.program,
        debug,
        builder.collective_options,
    )
    combined = gathered[0]
    (region,) = op.regions
    for begin in range(1, size, _ARRAYS_PER_MAP):
        arrays = [gathered[i] for i in range(begin, min(begin + _ARRAYS_PER_MAP, size))]
        expression = place(1)
        for index in range(len(arrays)):
            (expression,) = body_of(region, (expression, place(index + 2)))
        (combined,) = builder.map([expression], [combined, *arrays], debug)
    return combined


def _own_part(
    builder: Builder, whole: ipu.Tensor, dim: int, groups: Groups, debug: ipu.DebugContext
) -> ipu.Tensor:
    """A reduce_scatter's part, cut out of an array that all members have."""
    parts = _members_first(whole, dim, len(groups[0]))
    shape = list(parts.shape)[1:]
    local = ipu.gcl.CollectiveOperator.LOCAL
    parts = builder.materialise(parts, debug)
    (part,) = ipu.popx.reduceScatter(
        builder.graph, [parts], local, groups, builder.program, debug, builder.collective_options
    )
    return part.reshape(shape)


def _parts_in_order(
    builder: Builder, value: Value, dim: int, size: int, debug: ipu.DebugContext
) -> ipu.Tensor:
    """The value's `size` parts along the dimension, each contiguous, one after another."""
    parts = _members_first(builder.tensor(value), dim, size)
    return builder.materialise(parts, debug) if math.prod(value.shape[:dim]) > 1 else parts


def _members_first(tensor: ipu.Tensor, dim: int, size: int) -> ipu.Tensor:
    """A view of `size` equal parts of the dimension, with the parts as the first dimension."""
    shape = list(tensor.shape)
    parts = tensor.reshape([*shape[:dim], size, shape[dim] // size, *shape[dim + 1 :]])
    order = [dim, *(d for d in range(len(shape) + 1) if d != dim)]
    return parts.dimShuffle(order)
