"""Shardings in an exported program: Shardy's ops as JAX functions."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import jax
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ipujax import jax_compat
from ipujax.convert.ops import rule
from ipujax.errors import ConvertError
from ipujax.verification.slices import module_around


@rule("sdy.reshard")
@rule("sdy.sharding_constraint")
def _constrained(op: Any, x: Any) -> Any:
    sharding = sdy.TensorShardingAttr(op.operation.attributes["sharding"])
    spec = _spec(sharding)
    if all(entry is PartitionSpec.UNCONSTRAINED for entry in spec):
        return x
    return lax.with_sharding_constraint(x, NamedSharding(_mesh(op.operation, sharding), spec))


@rule("sdy.manual_computation")
def _manual(op: Any, *operands: Any) -> Any:
    """`jax.shard_map` over the manual axes only: the operands have the others."""
    attributes = op.operation.attributes
    axes = frozenset(sdy.ManualAxesAttr(attributes["manual_axes"]))
    ins, outs = (
        [sdy.TensorShardingAttr(each) for each in sdy.TensorShardingPerValueAttr(listed).shardings]
        for listed in (attributes["in_shardings"], attributes["out_shardings"])
    )
    mapped = jax.shard_map(
        lambda *arrays: tuple(op.run_region(0, *arrays)),
        mesh=_mesh(op.operation, [*ins, *outs][0]),
        in_specs=tuple(_spec(each, axes) for each in ins),
        out_specs=tuple(_spec(each, axes) for each in outs),
        axis_names=axes,
        check_vma=False,
    )
    return mapped(*operands)


def _spec(sharding: Any, axes: Collection[str] | None = None) -> PartitionSpec:
    """The axes that shard each dimension, or only those in `axes`."""
    entries: list[Any] = []
    for dimension in map(sdy.DimensionShardingAttr, sharding.dimension_shardings):
        named = [sdy.AxisRefAttr(axis) for axis in dimension.axes]
        if any(axis.sub_axis_info for axis in named):
            raise ConvertError(
                f"[convert] needs shardings over whole axes of a mesh; got {sharding}. Export the "
                "function with a mesh that has an axis for each part."
            )
        names = tuple(axis.name for axis in named if axes is None or axis.name in axes)
        is_open = axes is None and not dimension.is_closed and not names
        entries.append(PartitionSpec.UNCONSTRAINED if is_open else names or None)
    return PartitionSpec(*entries)


def _mesh(operation: Any, sharding: Any) -> Any:
    """The mesh of the enclosing `jax.shard_map`, or the one that the sharding names."""
    here = jax.sharding.get_abstract_mesh()
    if not here.empty:
        return here
    named = sharding.mesh_or_ref
    if isinstance(named, ir.FlatSymbolRefAttr):
        symbols = ir.SymbolTable(module_around(operation).operation)
        named = symbols[ir.FlatSymbolRefAttr(named).value].attributes["mesh"]
    return jax_compat.abstract_mesh(named)
