"""Runs results of the partition stage on as many CPU devices, as replicas of one program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax._src.lib import xla_client
from jax._src.sharding_impls import GSPMDSharding
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax
from jaxlib.mlir import ir

from ipujax import jax_compat
from ipujax.compiler.partition.stage import make_local


class LocalProgram:
    """A program that the stage made local.

    Attributes:
        module: the local module; `run` changes it for XLA.
        num_devices: how many run it.
        parameters, results: serialised shardings.
    """

    def __init__(self, f: Any, args: Sequence[Any], platform: str = "cpu"):
        lowered = f.trace(*args).lower(lowering_platforms=(platform,))
        self.module = jax_compat.deserialize_artifact(jax_compat.serialize_artifact(lowered))
        attributes = self.module.operation.attributes
        self.num_devices = ir.IntegerAttr(attributes["mhlo.num_partitions"]).value
        with self.module.context, ir.Location.unknown():
            self.parameters, self.results = make_local(self.module, self.num_devices)
        self.text = str(self.module)

    def blocks(self, sharding: bytes, array: np.ndarray) -> list[np.ndarray]:
        """Each device's block, in the order of the device assignment."""
        devices = tuple(jax.devices("cpu")[: self.num_devices])
        proto = xla_client.OpSharding()
        proto.ParseFromString(sharding)
        sharded = GSPMDSharding(devices, xla_client.HloSharding.from_proto(proto))
        indices = sharded.devices_indices_map(array.shape)
        return [array[indices[device]] for device in devices]

    def run(self, arrays: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """Blocks of each result, given whole arguments."""
        _as_replicas(self.module, self.num_devices)
        devices = jax.devices("cpu")[: self.num_devices]
        options = _jax.CompileOptions()
        options.num_replicas, options.num_partitions = self.num_devices, 1
        ids = np.arange(self.num_devices)[:, None]
        options.device_assignment = xla_client.DeviceAssignment.create(ids)
        executable = devices[0].client.compile_and_load(
            self.module,
            executable_devices=_jax.DeviceList(tuple(devices)),
            compile_options=options,
        )
        everywhere = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec())
        inputs = []
        for sharding, array in zip(self.parameters, arrays, strict=True):
            blocks = self.blocks(sharding, array)
            parts = [jax.device_put(b, d) for b, d in zip(blocks, devices, strict=True)]
            # As if each device had a copy: JAX does not compare the numbers.
            made = jax.make_array_from_single_device_arrays(blocks[0].shape, everywhere, parts)
            inputs.append(made)
        outputs = executable.execute_sharded(inputs)
        per_result = outputs.disassemble_into_single_device_arrays()
        return [[np.asarray(block) for block in blocks] for blocks in per_result]


def compare(
    f: Any,
    args: Sequence[Any],
    expected: Callable[..., Any],
    rtol: float,
    atol: float,
) -> LocalProgram:
    """Asserts that every block of every result equals that of `expected(*args)`."""
    program = LocalProgram(f, args)
    leaves = [np.asarray(x) for x in jax.tree.leaves(args)]
    paths, want = zip(*jax.tree_util.tree_leaves_with_path(expected(*args)), strict=True)
    want = [np.asarray(x) for x in want]
    got = program.run(leaves)
    assert len(got) == len(want) == len(program.results)
    for path, whole, blocks, sharding in zip(paths, want, got, program.results, strict=True):
        name = jax.tree_util.keystr(path)
        wanted = program.blocks(sharding, whole)
        for device, (block, wanted_block) in enumerate(zip(blocks, wanted, strict=True)):
            assert block.shape == wanted_block.shape, name
            assert block.dtype == wanted_block.dtype, name
            np.testing.assert_allclose(
                block, wanted_block, rtol=rtol, atol=atol, err_msg=f"{name} on device {device}"
            )
    return program


def _as_replicas(module: Any, count: int) -> None:
    """XLA's CPU backend runs partitions only of programs that it has sharded itself: the devices
    become replicas."""
    with module.context, ir.Location.unknown():
        dead: list[Any] = []

        def rewrite(op: Any) -> Any:
            operation = op.operation
            for name in ("channel_handle", "use_global_device_ids"):
                if name in operation.attributes:
                    del operation.attributes[name]
            if operation.name == "stablehlo.partition_id":
                kind = operation.results[0].type
                made = ir.Operation.create(
                    "stablehlo.replica_id", results=[kind], ip=ir.InsertionPoint(operation)
                )
                operation.results[0].replace_all_uses_with(made.results[0])
                dead.append(operation)
            return ir.WalkResult.ADVANCE

        module.operation.walk(rewrite)
        for operation in dead:
            operation.erase()
        kind = ir.IntegerType.get_signless(32)
        attributes = module.operation.attributes
        attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(kind, count)
        attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(kind, 1)
