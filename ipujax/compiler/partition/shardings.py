"""Converts Shardy's attributes to layouts; each distinct attribute is read once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ipujax import jax_compat
from ipujax.compiler.partition.mesh import (
    Layout,
    Mesh,
    Shape,
    SubAxes,
    distinct,
    even,
    layout_of,
    padded,
)
from ipujax.errors import InvalidProgramError

SHARDING = "sdy.sharding"

Manual = frozenset[str]  #: mesh axes over which a manual computation is sharded already
Fit = Callable[[int, SubAxes], SubAxes]  #: which sub-axes a dimension of some size can have


class Shardings:
    """Reads the shardings of one module for `num_devices` devices."""

    def __init__(self, module: Any, num_devices: int):
        self._num_devices = num_devices
        self._by_name: dict[str, Mesh | None] = {}
        self._by_text: dict[str, Mesh | None] = {}
        self._raw: dict[Any, tuple[Mesh | None, tuple[SubAxes, ...], SubAxes]] = {}
        self._lists: dict[Any, list[Any]] = {}
        self._layouts: dict[Any, Layout | None] = {}
        for op in module.body.operations:
            if op.operation.name == "sdy.mesh":
                attributes = op.operation.attributes
                name = ir.StringAttr(attributes["sym_name"]).value
                self._by_name[name] = self._mesh(attributes["mesh"])

    def layout(self, attr: Any, shape: Sequence[int], manual: Manual) -> Layout | None:
        """The layout that a TensorShardingAttr gives a tensor of this shape.

        Manual axes are left out: inside the computation, tensors are already blocks along them.
        """
        return self._known(attr, tuple(shape), manual, padded)

    def even_layout(self, attr: Any, shape: Sequence[int], manual: Manual) -> Layout | None:
        """The layout without padding, for blocks that users see."""
        return self._known(attr, tuple(shape), manual, even)

    def _known(self, attr: Any, shape: Shape, manual: Manual, fit: Fit) -> Layout | None:
        key = (attr, shape, manual, fit)
        if key not in self._layouts:
            self._layouts[key] = self._layout(attr, shape, manual, fit)
        return self._layouts[key]

    def _layout(self, attr: Any, shape: Shape, manual: Manual, fit: Fit) -> Layout | None:
        mesh, dims, unreduced = self._read(attr)
        if mesh is None or len(dims) != len(shape):
            return None
        if manual:
            dims = tuple(without(axes, manual) for axes in dims)
            unreduced = without(unreduced, manual)
        return layout_of(mesh, map(fit, shape, distinct(dims)), unreduced)

    def each(self, attr: Any) -> list[Any]:
        """The TensorShardingAttrs of a TensorShardingPerValueAttr."""
        known = self._lists.get(attr)
        if known is None:
            known = self._lists[attr] = list(sdy.TensorShardingPerValueAttr(attr).shardings)
        return known

    def meshes(self) -> Iterable[Mesh]:
        return (mesh for mesh in self._by_name.values() if mesh is not None)

    def _read(self, attr: Any) -> tuple[Mesh | None, tuple[SubAxes, ...], SubAxes]:
        """The mesh, the axes of each dimension, and the unreduced ones."""
        known = self._raw.get(attr)
        if known is None:
            sharding = sdy.TensorShardingAttr(attr)
            mesh = self._referenced(sharding.mesh_or_ref)
            known = (None, (), ())
            if mesh is not None:
                dims = map(sdy.DimensionShardingAttr, sharding.dimension_shardings)
                known = (
                    mesh,
                    tuple(_axes(mesh, dim.axes) for dim in dims),
                    _axes(mesh, sharding.unreduced_axes),
                )
            self._raw[attr] = known
        return known

    def _referenced(self, reference: Any) -> Mesh | None:
        if isinstance(reference, str):
            return self._by_name[reference]
        if isinstance(reference, ir.FlatSymbolRefAttr):
            return self._by_name[ir.FlatSymbolRefAttr(reference).value]
        return self._mesh(reference)

    def _mesh(self, attr: Any) -> Mesh | None:
        """One object for equal meshes; None for those that shard nothing."""
        text = str(attr)
        if text in self._by_text:
            return self._by_text[text]
        mesh_attr = sdy.MeshAttr(attr)
        axes = tuple((axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, mesh_attr.axes))
        size = math.prod(size for _, size in axes)
        mesh = None
        if size > 1:
            if size != self._num_devices:
                raise InvalidProgramError(
                    f"[partition] needs meshes of all {self._num_devices} devices of the program; "
                    f"got {text}. Pass the output of jax.jit."
                )
            mesh = Mesh(axes, tuple(mesh_attr.device_ids) or tuple(range(size)))
        self._by_text[text] = mesh
        return mesh


def serialised(layout: Layout | None) -> bytes:
    """The layout as JAX reads it: a serialised xla.OpSharding."""
    return jax_compat.sharding_bytes(*(layout.grid() if layout else (None, False, False)))


def without(axes: SubAxes, manual: Manual) -> SubAxes:
    """The axes that are not manual."""
    return tuple(axis for axis in axes if axis.name not in manual)


def manual_axes(attr: Any) -> list[str]:
    """The names in a ManualAxesAttr."""
    axes = sdy.ManualAxesAttr(attr)
    items = (axes[index] for index in range(len(axes)))
    return [item if isinstance(item, str) else ir.StringAttr(item).value for item in items]


def _axes(mesh: Mesh, references: Any) -> SubAxes:
    """The sub-axes of a list of axes, up to the first part of an axis that has none."""
    found: SubAxes = ()
    for axis in references:
        reference = sdy.AxisRefAttr(axis)
        part = reference.sub_axis_info
        if part is None:
            axes = mesh.sub_axes_of(reference.name)
        else:
            info = sdy.SubAxisInfoAttr(part)
            axes = mesh.sub_axes_of(reference.name, info.pre_size, info.size)
        if axes is None:
            break
        found += axes
    return found
