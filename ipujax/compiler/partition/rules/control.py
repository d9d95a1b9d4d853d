"""Control flow, and computations whose bodies are local already."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir.dialects import sdy

from ipujax.compiler.partition.localise import Localiser, localises, shape_of
from ipujax.compiler.partition.mesh import Layout, layout_of
from ipujax.compiler.partition.shardings import manual_axes, without


@localises("while", always=True)
def while_(localiser: Localiser, operation: Any) -> None:
    """Carries keep their layout from one iteration to the next."""
    carried = localiser.declared(operation)
    localiser.require_each(operation, carried)
    condition, body = (region.blocks[0] for region in operation.regions)
    for block, wanted in ((condition, [None]), (body, carried)):
        localiser.set_each(block.arguments, carried)
        localiser.run(block, wanted)
    localiser.set_each(operation.results, carried)


@localises("case", "if", always=True)
def choice(localiser: Localiser, operation: Any) -> None:
    """case and if: all branches return the same layout."""
    wanted = localiser.declared(operation)
    localiser.require(operation, 0, None)
    for region in operation.regions:
        localiser.run(region.blocks[0], wanted)
    localiser.set_each(operation.results, wanted)


@localises("sdy.manual_computation", always=True)
def manual_computation(localiser: Localiser, operation: Any) -> None:
    """Replaces the op by its body, whose values may still be sharded over axes not manual."""
    shardings, outer = localiser.shardings, localiser.manual
    attributes = operation.attributes
    block = operation.regions[0].blocks[0]
    ins, outs = (
        sdy.TensorShardingPerValueAttr(attributes[name]).shardings
        for name in ("in_shardings", "out_shardings")
    )
    for index, attr in enumerate(ins):
        value = operation.operands[index]
        layout = shardings.even_layout(attr, localiser.shape(value), outer)
        localiser.require(operation, index, layout)
    manual = outer | frozenset(manual_axes(attributes["manual_axes"]))
    localiser.manual = manual
    for argument, attr in zip(block.arguments, ins, strict=True):
        localiser.set(argument, shardings.even_layout(attr, shape_of(argument), manual))
    wanted = [
        shardings.even_layout(attr, shape_of(result), outer)
        for attr, result in zip(outs, operation.results, strict=True)
    ]
    localiser.run(block, [_inside(layout, manual) for layout in wanted])
    localiser.manual = outer
    localiser.set_each(operation.results, wanted)
    localiser.splice(operation, block)


def _inside(layout: Layout | None, manual: frozenset[str]) -> Layout | None:
    if layout is None:
        return None
    dims = (without(axes, manual) for axes in layout.dims)
    return layout_of(layout.mesh, dims, without(layout.unreduced, manual))
