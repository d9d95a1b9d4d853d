"""Merges meshes that differ only in the names of axes: Shardy propagates within one mesh.

sdy.mesh @m = <["a"=2, "b"=4]>, @n = <["x"=2, "y"=4]>                            before
add %0 {<@m, [{"a"}, {}]>}, %1 {<@n, [{}, {"y"}]>}
add %0 {<@m, [{"a"}, {}]>}, %1 {<@m, [{}, {"b"}]>}                               after
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ipujax import jax_compat
from ipujax.compiler.modules import dictionaries_of, functions_of
from ipujax.compiler.partition.shardings import SHARDING, manual_axes

#: For each mesh: the mesh that replaces it, and its axes' new names; None for axes of size 1.
Names = dict[str, tuple[str, dict[str, str | None]]]

_OF_FUNCTIONS = ("arg_attrs", "res_attrs")
_MANUAL = "manual_axes"


def name_axes_alike(module: Any) -> None:
    """Rewrites the shardings of such meshes, in place."""
    jax_compat.run_passes(module, ["sdy-lift-inlined-meshes"])
    names = _names(module)
    if not names:
        return
    renamed: dict[Any, Any] = {}

    def of(sharding: Any) -> Any:
        if sharding not in renamed:
            renamed[sharding] = _renamed(sharding, names)
        return renamed[sharding]

    for function in functions_of(module).values():
        for name in _OF_FUNCTIONS:
            given = dictionaries_of(function, name)
            if given:
                changed = [_in_dictionary(attributes, of) for attributes in given]
                function.attributes[name] = ir.ArrayAttr.get(changed)

    def rewrite(op: Any) -> Any:
        _rewrite(op.operation, of, names)
        return ir.WalkResult.ADVANCE

    module.operation.walk(rewrite)


def _names(module: Any) -> Names:
    """New names for the meshes that equal an earlier one but for names."""
    first: dict[Any, tuple[str, list[str]]] = {}
    names: Names = {}
    for op in module.body.operations:
        if op.operation.name != "sdy.mesh":
            continue
        name = ir.StringAttr(op.operation.attributes["sym_name"]).value
        mesh = sdy.MeshAttr(op.operation.attributes["mesh"])
        axes = [(axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, mesh.axes)]
        own = [axis for axis, size in axes if size > 1]
        grid = tuple(size for _, size in axes if size > 1), tuple(mesh.device_ids)
        there, theirs = first.setdefault(grid, (name, own))
        if there != name and own:
            to = dict(zip(own, theirs, strict=True))
            names[name] = there, {axis: to.get(axis) for axis, _ in axes}
    return names


def _rewrite(operation: Any, of: Callable[[Any], Any], names: Names) -> None:
    attributes = operation.attributes
    mesh = None
    for name in list(attributes):
        value = attributes[name]
        if sdy.TensorShardingAttr.isinstance(value):
            attributes[name] = of(value)
        elif sdy.TensorShardingPerValueAttr.isinstance(value):
            each = list(sdy.TensorShardingPerValueAttr(value).shardings)
            mesh = mesh or next((found for found in map(_mesh_of, each) if found in names), None)
            attributes[name] = sdy.TensorShardingPerValueAttr.get([of(one) for one in each])
    if _MANUAL in attributes and mesh is not None:
        to = (names[mesh][1][axis] for axis in manual_axes(attributes[_MANUAL]))
        kept = [ir.StringAttr.get(axis) for axis in to if axis is not None]
        attributes[_MANUAL] = sdy.ManualAxesAttr.get(kept)


def _in_dictionary(attributes: Any, of: Callable[[Any], Any]) -> Any:
    named = {item.name: item.attr for item in attributes}
    if SHARDING in named:
        named[SHARDING] = of(named[SHARDING])
    return ir.DictAttr.get(named)


def _mesh_of(sharding: Any) -> str | None:
    reference = sdy.TensorShardingAttr(sharding).mesh_or_ref
    if isinstance(reference, ir.FlatSymbolRefAttr):
        return ir.FlatSymbolRefAttr(reference).value
    return reference if isinstance(reference, str) else None


def _renamed(sharding: Any, names: Names) -> Any:
    mesh = _mesh_of(sharding)
    if mesh not in names:
        return sharding
    there, to = names[mesh]
    given = sdy.TensorShardingAttr(sharding)

    def axes(references: Iterable[Any]) -> list[Any]:
        found = map(sdy.AxisRefAttr, references)
        return [sdy.AxisRefAttr.get(to[x.name], x.sub_axis_info) for x in found if to[x.name]]

    dims = [
        sdy.DimensionShardingAttr.get(axes(dim.axes), dim.is_closed, dim.priority)
        for dim in map(sdy.DimensionShardingAttr, given.dimension_shardings)
    ]
    kept = axes(given.replicated_axes), axes(given.unreduced_axes)
    return sdy.TensorShardingAttr.get(there, dims, *kept)
