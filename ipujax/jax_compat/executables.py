"""Executables outside of `jax.jit`: what a lowered program takes, and loading sealed ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ipujax.jax_compat.programs import write_compile_options
from ipujax.types import BY_NAME


def kept_arguments(lowered: Any) -> list[int]:
    """The flat arguments that a lowered program keeps: JAX drops those without a use.

    No public function returns them.
    """
    return sorted(lowered._lowering.compile_args["kept_var_idx"])


def needs_this_process(lowered: Any) -> str:
    """What ties a lowered program to this process; empty if nothing does."""
    given = lowered._lowering.compile_args
    if given["host_callbacks"] or given["ordered_effects"] or given["unordered_effects"]:
        return "calls functions of this Python process"
    return ""


def num_devices(lowered: Any) -> int:
    """The number of devices that a lowered program runs on."""
    return int(lowered._lowering.compile_args["num_devices"])


#: Dtype, shape, memory kind and serialised xla.OpSharding (None on one device) of a result.
Output = tuple[str, tuple[int, ...], str, bytes | None]


def load_executable(
    sealed: bytes, name: str, outputs: Sequence[Output], devices: Sequence[Any]
) -> Callable[[Sequence[Any]], list[list[Any]]]:
    """Loads a sealed executable; returns a function of arrays on its devices to the results'
    shards, one for each device.

    `jax.experimental.serialize_executable` reads pickles. jaxlib itself expects its own description
    of the results before the plugin's bytes, which is written here.
    """
    from jaxlib import _jax

    head = _metadata(name, outputs)
    # The options pass the devices: the plugin does not get them in any other way.
    options = _jax.CompileOptions.ParseFromString(write_compile_options({}, len(devices)))
    ids = np.array([[device.id for device in devices]], np.int32)
    options.device_assignment = _jax.DeviceAssignment.create(ids)
    executable = devices[0].client.deserialize_executable(
        head + sealed, _jax.DeviceList(tuple(devices)), options
    )

    def run(arrays: Sequence[Any]) -> list[list[Any]]:
        results = executable.execute_sharded(list(arrays))
        return list(results.disassemble_into_single_device_arrays())

    return run


def _metadata(name: str, outputs: Sequence[Output]) -> bytes:
    """A SerializedXlaExecutableMetadata (xla/python/pjrt_ifrt), after its length."""
    made = _number(1, 3) + _bytes(2, b"pjrt_ifrt")
    for dtype, shape, memory, sharding in outputs:
        dims = b"".join(_varint(size) for size in shape)
        shape_bytes = _bytes(1, dims) if dims else b""
        made += _bytes(
            5,
            _bytes(1, shape_bytes)
            + _bytes(2, _number(1, BY_NAME[dtype].ifrt))
            + _bytes(4, memory.encode())
            + (b"" if sharding is None else _bytes(5, sharding))
            + _bytes(6, shape_bytes),
        )
    made += _bytes(7, name.encode()) + _bytes(9, b"")
    return _varint(len(made)) + made


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*made, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content
