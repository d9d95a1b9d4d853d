"""Transfers of arrays: to other memories, by DLPack, under transfer guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.interpreters import mlir
from jax.sharding import SingleDeviceSharding

from ipujax.annotations import placement
from ipujax.jax_compat.platform import PLATFORM


def lower_device_put() -> None:
    """Lowers `device_put` in jitted functions as for JAX's platforms with several memories.

    JAX's rule for platforms that it does not know ignores memories. Layouts are checked: inside a
    program nothing can tell them apart.
    """
    from jax._src import dispatch

    def lower(ctx: Any, *values: Any, devices: Sequence[Any], **parameters: Any) -> Sequence[Any]:
        for aval, target in zip(ctx.avals_in, devices, strict=True):
            if isinstance(target, Format) and target.layout is not None:
                layout = str(target.layout._to_xla_layout(aval.dtype))
                dtype = aval.dtype if isinstance(aval.dtype, np.dtype) else None  # None: of a key
                placement.layout_of("device_put", layout, aval.ndim, dtype)
        targets = [each.sharding if isinstance(each, Format) else each for each in devices]
        return dispatch._tpu_gpu_device_put_lowering(ctx, *values, devices=targets, **parameters)

    mlir.register_lowering(dispatch.device_put_p, lower, platform=PLATFORM)


def put_arrays(arrays: Sequence[np.ndarray], shardings: Sequence[Any]) -> list[jax.Array]:
    """`jax.device_put` of NumPy arrays, as they are.

    In one device's default memory an array takes 0.01 ms instead of 0.1 ms, and a model has
    hundreds of them.
    """
    from jax._src.core import ShapedArray
    from jaxlib import _jax

    made: list[Any] = []
    for array, sharding in zip(arrays, shardings, strict=True):
        devices = list(sharding.device_set)
        if len(devices) == 1 and sharding.memory_kind == devices[0].default_memory().kind:
            aval = ShapedArray(array.shape, array.dtype)
            made.append(_jax.batched_device_put(aval, sharding, [array], devices))
        else:
            made.append(jax.device_put(array, sharding))
    return made


def lower_to_memory(ctx: Any, x: Any, *, kind: str) -> list[Any]:
    """The custom call by which JAX asks for a memory, whatever the value's type says.

    Other platforms get the value as it is. A rule for the platform alone could only be registered
    when JAX knows the platform, and JAX may load it after the program is traced.
    """
    from jax._src.interpreters import mlir as private_mlir

    if tuple(ctx.platforms or ctx.module_context.platforms) != (PLATFORM,):
        return [x]
    (aval,) = ctx.avals_out
    return [private_mlir.wrap_with_memory_kind(ctx.module_context, x, kind, aval)]


def allow_dlpack() -> None:
    """Exports arrays by DLPack as CPU arrays, without a copy: they are in host memory.

    DLPack has no device type for IPUs, and jaxlib refuses platforms that it does not know.
    """
    from jax._src import array, dlpack

    device_of, to_dlpack = array.ArrayImpl.__dlpack_device__, dlpack._to_dlpack

    def dlpack_device(self: Any) -> tuple[Any, int]:
        if self.platform() == PLATFORM and len(self.sharding.device_set) == 1:
            return dlpack.DLDeviceType.kDLCPU, 0
        return device_of(self)

    def capsule(
        x: Any, stream: Any, src_device: Any = None, device: Any = None, copy: bool | None = None
    ) -> Any:
        x._check_if_deleted()  # jaxlib would read freed memory
        if x.platform() != PLATFORM or (device is not None and device.platform != "cpu"):
            return to_dlpack(x, stream, src_device, device, copy)
        same = _on_cpu_backend(x)
        return to_dlpack(same, stream, same.device, None, copy)

    array.ArrayImpl.__dlpack_device__ = dlpack_device
    dlpack._to_dlpack = capsule


def _on_cpu_backend(x: Any) -> Any:
    """An array of the CPU backend that shares the memory of `x` and keeps it alive."""
    try:
        cpu = jax.local_devices(backend="cpu")[0]
    except RuntimeError as error:
        raise BufferError(
            f"[dlpack] needs JAX's CPU backend; got: {error}. "
            "Set JAX_PLATFORMS=ipu,cpu or use np.asarray."
        ) from error
    order = x.format.layout.major_to_minor
    with jax.transfer_guard_host_to_device("allow"):
        if order == tuple(range(x.ndim)):
            return jax.device_put(np.asarray(x), cpu)
        return jax.device_put(np.asarray(x), Format(Layout(order), SingleDeviceSharding(cpu)))


def follow_transfer_guard(tell: Callable[[bool | None, bool], None]) -> None:
    """Tells the plugin when `jax.transfer_guard_device_to_host` is set; jaxlib does not.

    Args:
        tell: takes whether this thread is guarded (None: as the process), and whether the process
            is.
    """
    from jax._src import config
    from jax._src.lib import guard_lib

    others = config._update_transfer_guard

    def guards(level: Any) -> bool | None:
        return None if level is None else level != guard_lib.TransferGuardLevel.ALLOW

    def share() -> None:
        thread, process = guard_lib.thread_local_state(), guard_lib.global_state()
        tell(guards(thread.device_to_host), bool(guards(process.device_to_host)))

    def update(state: Any, key: str, value: str | None) -> None:
        others(state, key, value)
        if key == "device_to_host":
            share()

    config._update_transfer_guard = update
    share()
