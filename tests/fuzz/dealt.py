"""Random programs over several devices: their arguments are dealt at random."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from jax._src.interpreters import mlir as private_mlir
from jax._src.lib import xla_client
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from ipujax import jax_compat
from tests.compiler.sharded_oracle import LocalProgram
from tests.fuzz.generator import RandomProgram


def deal(program: RandomProgram, rng: random.Random) -> tuple[bytes, int]:
    """The program as an artifact for several devices, and how many."""
    module = jax_compat.parse_module(program.code)
    axes = rng.choice(({"a": 2}, {"a": 4}, {"a": 2, "b": 2}))
    count = int(np.prod(list(axes.values())))
    with module.context, ir.Location.unknown():
        main = next(
            op.operation
            for op in module.body.operations
            if op.operation.name == "func.func"
            and ir.StringAttr(op.operation.attributes["sym_name"]).value == "main"
        )
        sharded = [
            ir.DictAttr.get(
                {"sdy.sharding": ir.Attribute.parse(_sharding(a.type.shape, axes, rng))}
            )
            for a in main.regions[0].blocks[0].arguments
        ]
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(sharded)
        named = ", ".join(f'"{name}"={size}' for name, size in axes.items())
        ir.InsertionPoint(main).insert(ir.Operation.parse(f"sdy.mesh @mesh = <[{named}]>"))
        kind = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(kind, count)
    code = private_mlir.module_to_bytecode(module)
    version = stablehlo.get_current_version()
    return bytes(_jax.mlir.serialize_portable_artifact(code, version, True)), count


def _sharding(shape: Sequence[int], axes: dict[str, int], rng: random.Random) -> str:
    dims: list[list[str]] = [[] for _ in shape]
    left = list(shape)
    for name, size in axes.items():
        fits = [d for d in range(len(left)) if left[d] and left[d] % size == 0]
        if fits and rng.random() < 0.8:
            d = rng.choice(fits)
            left[d] //= size
            dims[d].append(f'"{name}"')
    listed = ", ".join("{" + ", ".join(names) + "}" for names in dims)
    return f"#sdy.sharding<@mesh, [{listed}]>"


def run_on_ipus(code: bytes, program: LocalProgram, arrays: Sequence[np.ndarray]) -> list[Any]:
    """Each device's blocks of the results; `program` says how arguments are dealt."""
    count = program.num_devices
    devices = jax.devices("ipu")[:count]
    options = _jax.CompileOptions()
    options.num_partitions = count
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(count)[None])
    executable = devices[0].client.compile_and_load(
        jax_compat.deserialize_artifact(code),
        executable_devices=_jax.DeviceList(tuple(devices)),
        compile_options=options,
    )
    everywhere = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec())
    inputs = []
    for sharding, array in zip(program.parameters, arrays, strict=True):
        blocks = program.blocks(sharding, array)
        parts = [jax.device_put(b, d) for b, d in zip(blocks, devices, strict=True)]
        inputs.append(jax.make_array_from_single_device_arrays(blocks[0].shape, everywhere, parts))
    results = executable.execute_sharded(inputs).disassemble_into_single_device_arrays()
    return [[np.asarray(block) for block in blocks] for blocks in results]
