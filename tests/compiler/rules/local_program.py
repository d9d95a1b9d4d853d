"""Runs StableHLO text with one device's shapes, as the partition stage would write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest
from jax._src.lib import xla_client
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax

from ipujax.compiler import compile as compiler

NUM_DEVICES = 4


def module_of(arguments: Sequence[str], results: Sequence[str], body: str) -> str:
    """A module of one function; arguments are %0, %1 ...; `body` ends with its return."""
    takes = ", ".join(f"%{i}: tensor<{kind}>" for i, kind in enumerate(arguments))
    gives = ", ".join(f"tensor<{kind}>" for kind in results)
    return (
        f"module @f attributes {{mhlo.num_partitions = {NUM_DEVICES} : i32}} {{\n"
        f"func.func public @main({takes}) -> ({gives}) {{\n{body}\n}}\n}}"
    )


def compiled(text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The loaded executable of a module for NUM_DEVICES IPUs, each with the module's shapes."""
    monkeypatch.setattr(compiler, "partition", lambda request: request)
    devices = jax.devices("ipu")[:NUM_DEVICES]
    options = _jax.CompileOptions()
    options.num_replicas, options.num_partitions = 1, NUM_DEVICES
    build = options.executable_build_options
    build.num_partitions, build.use_spmd_partitioning = NUM_DEVICES, True
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(NUM_DEVICES)[None])
    return devices[0].client.compile_and_load(
        text, executable_devices=_jax.DeviceList(tuple(devices)), compile_options=options
    )


def run(
    text: str, arguments: Sequence[Sequence[np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> list[list[np.ndarray]]:
    """[result][device] of a module, given [argument][device]."""
    executable = compiled(text, monkeypatch)
    devices = jax.devices("ipu")[:NUM_DEVICES]
    everywhere = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec())
    inputs = []
    for arrays in arguments:
        parts = [jax.device_put(a, d) for a, d in zip(arrays, devices, strict=True)]
        # As if each device had a copy: JAX does not compare the numbers.
        inputs.append(jax.make_array_from_single_device_arrays(arrays[0].shape, everywhere, parts))
    outputs = executable.execute_sharded(inputs).disassemble_into_single_device_arrays()
    return [[np.asarray(part) for part in parts] for parts in outputs]
