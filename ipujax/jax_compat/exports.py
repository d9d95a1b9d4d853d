"""How an exported program is laid out over several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.export
import numpy as np
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec, Sharding

from ipujax.jax_compat.modules import deserialize_artifact, run_passes
from ipujax.jax_compat.platform import PLATFORM


def module_of_exported(exported: jax.export.Exported) -> Any:
    """The program's module for IPUs, which only takes the function's kept arguments and tokens.

    A program for several platforms takes the number of its platform first and chooses by it: here
    that number is known, and the choices are made.
    """
    module = deserialize_artifact(exported.mlir_module_serialized)
    if len(exported.platforms) > 1:
        _set_platform(module, exported.platforms.index(platform_of_exported(exported)))
    return module


def platform_of_exported(exported: jax.export.Exported) -> str:
    """The platform for which `module_of_exported` takes the program: IPUs, or its first one."""
    return PLATFORM if PLATFORM in exported.platforms else exported.platforms[0]


def _set_platform(module: Any, index: int) -> None:
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    main = ir.SymbolTable(module.operation)["main"]
    block = main.regions[0].blocks[0]
    number = block.arguments[0]
    with module.context, ir.InsertionPoint.at_block_begin(block), number.location:
        kind = ir.RankedTensorType(number.type)
        element = ir.IntegerAttr.get(kind.element_type, index)
        known = stablehlo.constant(ir.DenseElementsAttr.get_splat(kind, element))
        number.replace_all_uses_with(known)
        block.erase_argument(0)
        old = ir.FunctionType(main.type)
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(old.inputs[1:], old.results)
        )
        if "arg_attrs" in main.attributes:
            main.attributes["arg_attrs"] = ir.ArrayAttr.get(list(main.attributes["arg_attrs"])[1:])
    run_passes(module, ["sccp", "canonicalize"])


def mesh_of_exported(
    exported: jax.export.Exported, devices: Sequence[Any] | None = None
) -> AbstractMesh | Mesh:
    """The mesh over which a program was exported; over these devices, or over none.

    Public functions take this mesh and do not return it.
    """
    abstract = _named_mesh(exported) or _written_mesh(exported)
    if abstract is None:
        abstract = AbstractMesh((exported.nr_devices,), ("devices",))
    return abstract if devices is None else mesh_over(abstract, devices)


def mesh_over(abstract: AbstractMesh, devices: Sequence[Any]) -> Mesh:
    """The mesh of these devices, as many as it has."""
    grid = np.array(devices, object).reshape(abstract.axis_sizes)
    return Mesh(grid, abstract.axis_names, axis_types=abstract.axis_types)


def in_shardings_of(exported: jax.export.Exported, mesh: AbstractMesh | Mesh) -> list[Sharding]:
    """The sharding of each argument; replicated if the program gives none."""
    found = exported.in_shardings_jax(mesh)
    return [NamedSharding(mesh, PartitionSpec()) if each is None else each for each in found]


def out_shardings_of(
    exported: jax.export.Exported, mesh: AbstractMesh | Mesh
) -> list[Sharding | None]:
    """The sharding of each result; None if the program gives none."""
    return list(exported.out_shardings_jax(mesh))


def with_automatic_axes(sharding: Any) -> Any:
    """The same sharding, over a mesh none of whose axes is a part of JAX's types."""
    if sharding is None:
        return None
    mesh = AbstractMesh(sharding.mesh.axis_sizes, sharding.mesh.axis_names)
    return NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)


def abstract_mesh(attribute: Any) -> AbstractMesh:
    """JAX's abstract mesh for Shardy's mesh."""
    from jaxlib.mlir.dialects import sdy

    axes = [sdy.MeshAxisAttr(axis) for axis in sdy.MeshAttr(attribute).axes]
    return AbstractMesh(tuple(axis.size for axis in axes), tuple(axis.name for axis in axes))


def _named_mesh(exported: jax.export.Exported) -> AbstractMesh | None:
    """The mesh of arguments' and results' shardings, without the kind of its devices."""
    named = [*exported._in_named_shardings, *exported._out_named_shardings]
    for mesh in (each.mesh for each in named if each is not None):
        if mesh.size == exported.nr_devices:
            return AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=mesh.axis_types)
    return None


def _written_mesh(exported: jax.export.Exported) -> AbstractMesh | None:
    """The mesh of shardings inside the program."""
    module = deserialize_artifact(exported.mlir_module_serialized)
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            mesh = abstract_mesh(op.operation.attributes["mesh"])
            if mesh.size == exported.nr_devices:
                return mesh
    return None
