"""Ops that depend on devices: Shardy's reshards, StableHLO's collectives, calls to the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ipujax import jax_compat
from ipujax.annotations import placement
from ipujax.compiler.modules import target_of
from ipujax.compiler.partition.emit import Emitter
from ipujax.compiler.partition.localise import Localiser, localises, replicate
from ipujax.compiler.partition.mesh import dims_of, layout_of, without_padding
from ipujax.compiler.partition.op_calls import localise_op, numbered
from ipujax.compiler.partition.rules.custom_partitioning import partition_custom
from ipujax.compiler.partition.rules.elementwise import each_its_own, is_added
from ipujax.compiler.partition.shardings import serialised
from ipujax.compiler.partition.stand_ins import as_op, is_stand_in
from ipujax.errors import CallbackError
from ipujax.host import callbacks as host_callbacks


@localises(
    "sdy.reshard",
    "sdy.sharding_constraint",
    "sdy.all_slice",
    "sdy.all_to_all",
    "sdy.collective_permute",
    "sdy.reduce_scatter",
    "sdy.replicated_to_unreduced",
    "sdy.sharded_to_unreduced",
    always=True,
)
def reshard_to(localiser: Localiser, operation: Any) -> None:
    """sdy.reshard and sdy's collectives: only their final layout matters."""
    attributes = operation.attributes
    name = "out_sharding" if "out_sharding" in attributes else "sharding"
    value = operation.operands[0]
    layout = localiser.shardings.layout(attributes[name], localiser.shape(value), localiser.manual)
    localiser.rename(operation, [localiser.take_as(value, layout)])


@localises("sdy.all_gather", always=True)
def all_gather(localiser: Localiser, operation: Any) -> None:
    """Joins blocks, also of parts: Shardy's sharding omits the axes that stay unreduced."""
    value = operation.operands[0]
    sharding, shape = operation.attributes["out_sharding"], localiser.shape(value)
    joined = localiser.shardings.layout(sharding, shape, localiser.manual)
    layout = localiser.layout(value)
    if layout is not None and layout.unreduced and (joined is None or joined.mesh is layout.mesh):
        dims = dims_of(joined, len(shape))
        joined = layout_of(layout.mesh, dims, layout.unreduced, layout.kind)
    localiser.rename(operation, [localiser.take_as(value, joined)])


@localises("sdy.all_reduce", always=True)
def all_reduce(localiser: Localiser, operation: Any) -> None:
    """Leaves the sum to the op that uses it, if that is cheaper.

    If only blocks of the sum are used, one collective combines and scatters them; sums that are
    added are combined after the addition.
    """
    value, result = operation.operands[0], operation.results[0]
    layout = localiser.layout(value)
    if layout is not None and layout.unreduced and (_is_cut(result) or is_added(result, operation)):
        localiser.rename(operation, [value])
    else:
        reshard_to(localiser, operation)


def _is_cut(value: Any) -> bool:
    """Whether only blocks of a value are used, perhaps after Shardy reduces it once more."""
    users = [use.owner for use in value.uses]
    return bool(users) and all(
        user.name == "sdy.all_slice"
        or (user.name == "sdy.all_reduce" and _is_cut(user.operation.results[0]))
        for user in users
    )


@localises("partition_id", always=True)
def by_device(localiser: Localiser, operation: Any) -> None:
    """Differs from device to device: the op stays as it is."""


@localises("sdy.propagation_barrier", "sdy.data_flow_edge", always=True)
def same(localiser: Localiser, operation: Any) -> None:
    localiser.rename(operation, list(operation.operands))


@localises("sdy.sharding_group", always=True)
def nothing(localiser: Localiser, operation: Any) -> None:
    operation.erase()


@localises("replica_id", always=True)
def replica_id(localiser: Localiser, operation: Any) -> None:
    """Always 0: there is one replica, and the devices are its partitions."""
    zero = localiser.emit.filled(0, operation.results[0].type)
    localiser.substitute(operation, zero, None)


@localises("custom_call", always=True)
def custom_call(localiser: Localiser, operation: Any) -> None:
    """Runs Python calls on one of the devices with equal operands, or on all with their blocks.

    Functions of `custom_partitioning` become the user's program for one device. Calls that say how
    their dimensions correspond run on blocks where possible.
    """
    target = target_of(operation)
    if is_stand_in(operation):
        localiser.apply(as_op(operation))
        return
    if target in placement.CALLS:
        each_its_own(localiser, operation)
        return
    if target == jax_compat.CUSTOM_PARTITIONING_TARGET:
        partition_custom(localiser, operation)
        return
    if target == jax_compat.INSPECT_TARGET:
        inspect_sharding(localiser, operation)
        return
    dimensions = numbered(operation)
    if dimensions is not None:
        localise_op(localiser, operation, dimensions)
        return
    if jax_compat.PARTITIONED in operation.attributes:
        call_with_blocks(localiser, operation)
        return
    replicate(localiser, operation)
    if target != jax_compat.CALLBACK_TARGET:
        return
    groups = _alike(localiser)
    if groups.shape[1] > 1:
        _call_once(localiser, operation, groups)


def call_with_blocks(localiser: Localiser, operation: Any) -> None:
    """Every device calls with its own blocks; dimensions that would need padding are whole."""
    for index, value in enumerate(operation.operands):
        layout = without_padding(localiser.layout(value), localiser.shape(value))
        localiser.require(operation, index, layout)


def inspect_sharding(localiser: Localiser, operation: Any) -> None:
    """Tells the user's function how the operand is sharded; manual axes count as copies."""
    callback_id = ir.StringAttr(operation.attributes["backend_config"]).value
    sharding = jax_compat.hlo_sharding(serialised(localiser.layout(operation.operands[0])))
    try:
        host_callbacks.run(callback_id, [sharding])
    except Exception as error:  # whatever the user's function raises
        raise CallbackError(
            "[inspect_array_sharding] needs a callback that returns; "
            f"got {type(error).__name__}: {error}. Correct the callback."
        ) from error
    operation.erase()


@localises("rng", always=True)
def rng(localiser: Localiser, operation: Any) -> None:
    """Each device would draw its own numbers, so all take those of the first."""
    replicate(localiser, operation)
    groups = _alike(localiser)
    if groups.shape[1] > 1:
        drawn = operation.clone(ip=ir.InsertionPoint(operation))
        value = localiser.emit.broadcast_from(drawn.results[0], groups)
        localiser.substitute(operation, value, None)


def _alike(localiser: Localiser) -> np.ndarray:
    """Groups of devices that compute the same: they differ in no manual axis."""
    if not localiser.manual:
        return np.arange(localiser.num_devices)[None]
    for mesh in localiser.shardings.meshes():
        if localiser.manual <= {name for name, _ in mesh.axes}:
            free = tuple(d for d in mesh.all_sub_axes() if d.name not in localiser.manual)
            return mesh.groups(free)
    return np.arange(localiser.num_devices)[:, None]


def _call_once(localiser: Localiser, operation: Any, groups: np.ndarray) -> None:
    """Writes `if first_of_group { call } else { zeros }`, and sends the results to the others."""
    emit = localiser.emit
    first = np.zeros(localiser.num_devices, np.int64)
    first[groups[:, 0]] = 1
    kinds = [result.type for result in operation.results]
    made = emit.op("stablehlo.if", kinds, [emit.is_device(first)], regions=2)
    called, left_out = (region.blocks.append() for region in made.regions)
    call = operation.clone(ip=ir.InsertionPoint(called))
    with emit.at_end_of(called):
        emit.op("stablehlo.return", [], call.results)
    with emit.at_end_of(left_out):
        emit.op("stablehlo.return", [], [_zeros(emit, operation, kind) for kind in kinds])
    for old, new in zip(operation.results, made.results, strict=True):
        if not _is_token(new.type):
            new = emit.broadcast_from(new, groups)
        old.replace_all_uses_with(new)
    operation.erase()


def _zeros(emit: Emitter, operation: Any, kind: Any) -> Any:
    if _is_token(kind):
        tokens = [value for value in operation.operands if _is_token(value.type)]
        return tokens[0] if tokens else emit.one("stablehlo.create_token", kind, [])
    return emit.zeros(kind.shape, kind)


def _is_token(kind: Any) -> bool:
    return "token" in str(kind)
