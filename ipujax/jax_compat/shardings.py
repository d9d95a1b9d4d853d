"""Shardings as XLA's protocol buffers, and `inspect_array_sharding`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.interpreters import mlir

from ipujax.host import callbacks as host_callbacks
from ipujax.jax_compat.platform import PLATFORM

INSPECT_TARGET = "ipu_inspect_sharding"


def allow_inspect_sharding() -> None:
    """Lowers `inspect_array_sharding` over several devices to a call for our partitioner.

    For one device JAX's own rule calls the function at once. For several it emits a custom call
    that holds the address of a C++ object; this one holds the id of the registered function.
    """
    from jax._src import debugging

    others = debugging._inspect_sharding_lowering_rule

    def lower(ctx: Any, value: Any, *, callback: Callable[[Any], None]) -> Sequence[Any]:
        from jaxlib.mlir import ir

        kept = ctx.module_context.keepalives
        before = len(kept)
        others(ctx, value, callback=callback)
        if len(kept) > before:
            inspect = kept[-1]
            # Registered functions return a sequence of results; this one has none.
            handle = host_callbacks.register(lambda sharding: (inspect(sharding), ())[1], [], [])
            ctx.module_context.add_keepalive(handle)
            call = list(ir.InsertionPoint.current.block.operations)[-1].operation
            call.attributes["call_target_name"] = ir.StringAttr.get(INSPECT_TARGET)
            call.attributes["backend_config"] = ir.StringAttr.get(handle.callback_id)
        return []

    mlir.register_lowering(debugging.inspect_sharding_p, lower, platform=PLATFORM)


def hlo_sharding(serialised: bytes) -> Any:
    """What JAX passes to the callback of `inspect_array_sharding`, from `sharding_bytes`."""
    from jax._src.lib import xla_client

    sharding = xla_client.OpSharding()
    sharding.ParseFromString(serialised)
    return xla_client.HloSharding.from_proto(sharding)


def sharding_bytes(devices: np.ndarray | None, copies: bool, parts: bool = False) -> bytes:
    """A serialised xla.OpSharding, as PJRT passes it to JAX.

    Args:
        devices: the device of each block, with one dimension for each of the tensor's; None for a
            replicated tensor.
        copies: whether `devices` has one more dimension, of devices that hold the same block.
        parts: whether `devices` has one more before that, of devices whose blocks are unreduced.
    """
    from jax._src.lib import xla_client

    sharding = xla_client.OpSharding()
    if devices is None:
        sharding.type = xla_client.OpSharding.Type.REPLICATED
    else:
        sharding.type = xla_client.OpSharding.Type.OTHER
        sharding.tile_assignment_dimensions = list(devices.shape)
        counted = _as_iota(devices.reshape(-1))
        if counted is None:
            sharding.tile_assignment_devices = devices.reshape(-1).tolist()
        else:
            sharding.iota_reshape_dims, sharding.iota_transpose_perm = counted
        sharding.replicate_on_last_tile_dim = copies and not parts
        if parts:
            kinds = xla_client.OpSharding.Type
            sharding.last_tile_dims = [kinds.UNREDUCED, kinds.REPLICATED][: 1 + copies]
    return bytes(sharding.SerializeToString())


def is_unreduced(serialised: bytes) -> bool:
    """Whether devices hold parts of blocks, from `sharding_bytes`."""
    from jax._src.lib import xla_client

    sharding = hlo_sharding(serialised)
    return bool(
        sharding.is_unreduced() or xla_client.OpSharding.Type.UNREDUCED in sharding.subgroup_types()
    )


def _as_iota(devices: np.ndarray) -> tuple[list[int], list[int]] | None:
    """Dimensions and an order of them: `arange(n).reshape(dims).transpose(order)` is `devices`.

    XLA names devices in this way if it can; JAX does not treat a list of them as equal.
    Returns:
        None if there are none.
    """
    found: list[tuple[int, int]] = []  # (stride, size) of each dimension, the minor one first
    done = 1
    while done < len(devices):
        stride = int(devices[done])
        expected = devices[:done] + stride * np.arange(len(devices) // done)[:, None]
        equal = (devices[: expected.size].reshape(expected.shape) == expected).all(1)
        size = len(equal) if equal.all() else int(np.argmin(equal))
        if size < 2:
            return None
        found.append((stride, size))
        done *= size
    order = np.argsort([-stride for stride, _ in reversed(found)], kind="stable")
    sizes = [found[::-1][k][1] for k in order]
    transposed = np.argsort(order).tolist()
    counted = np.arange(len(devices)).reshape(sizes).transpose(transposed).reshape(-1)
    return (sizes, transposed) if done == len(devices) and (counted == devices).all() else None


def blocks_of(serialised: bytes, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How an array of that rank lies on devices, from `sharding_bytes`.

    Returns:
        the number of blocks along each dimension, none if each device has all of it; and the
        block, in row-major order, of each device.
    """
    sharding = hlo_sharding(serialised)
    if sharding.is_replicated():
        return (), ()
    dims = tuple(sharding.tile_assignment_dimensions())[:rank]
    devices = np.reshape(sharding.tile_assignment_devices(), (int(np.prod(dims)), -1))
    blocks = np.empty(devices.size, np.int32)
    blocks[devices] = np.arange(len(devices))[:, None]
    return dims, tuple(blocks.tolist())


def block_bytes(counts: Sequence[int], blocks: Sequence[int]) -> bytes:
    """The `sharding_bytes` for which `blocks_of` gives these."""
    if not counts:
        return sharding_bytes(None, False)
    devices = np.argsort(np.asarray(blocks), kind="stable")
    copies = len(blocks) // int(np.prod(counts))
    shape = (*counts, copies) if copies > 1 else counts
    return sharding_bytes(devices.reshape(tuple(shape)), copies > 1)
