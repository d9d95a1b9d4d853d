"""`custom_partitioning`: the user's program for one device replaces the call.

%1 = custom_call @CustomSPMDPartitioning(%0) : (8x16) -> 8x16           before
%1 = f(%0) : (2x16) -> 2x16                                                 after
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ipujax import jax_compat
from ipujax.compiler.dtypes import numpy_type
from ipujax.compiler.modules import functions_of, main_of, ops_named
from ipujax.compiler.partition.inline import inline_calls
from ipujax.compiler.partition.localise import Info, Localiser, shape_of
from ipujax.compiler.partition.mesh import (
    Layout,
    Mesh,
    SubAxes,
    is_plain,
    layout_of,
    without_padding,
)
from ipujax.compiler.partition.shardings import serialised
from ipujax.compiler.partition.stand_ins import as_op, is_stand_in, name_composites
from ipujax.errors import UnsupportedOpError


def partition_custom(localiser: Localiser, operation: Any) -> None:
    """Calls the user's `partition` with the shardings that operands and results would have."""
    key = ir.StringAttr(operation.attributes["backend_config"]).value
    operands, results = list(operation.operands), list(operation.results)
    layouts = [localiser.layout(value) for value in operands]
    code, needed, made = jax_compat.partition_custom(
        key,
        [_sharded(localiser, *each) for each in zip(operands, layouts, strict=True)],
        [
            _sharded(localiser, *each)
            for each in zip(results, localiser.declared(operation), strict=True)
        ],
    )
    for index, value in enumerate(operands):
        layout = _layout(localiser, needed[index], len(localiser.shape(value)))
        localiser.require(operation, index, layout)
    values = _spliced(operation, code)
    taken = list(operation.operands)
    for index, result in enumerate(results):
        if values[index] in taken:
            # A new value, since the operand's layout may differ.
            values[index] = localiser.emit.reshape(values[index], values[index].type.shape)
        layout = _layout(localiser, made[index], len(shape_of(result)))
        localiser.adopt(values[index], Info(shape_of(result), layout))
    localiser.rename(operation, values)


def _spliced(operation: Any, code: bytes) -> list[Any]:
    """Moves the ops of the program's main function before the call; returns its results."""
    module = jax_compat.deserialize_artifact(jax_compat.artifact_of(code), operation.context)
    name_composites(module)
    inline_calls(module)
    main = main_of(module)
    calls = ops_named(main, "stablehlo.custom_call")
    for call in calls:
        if is_stand_in(call):
            as_op(call)
        elif "called_computations" in call.attributes:
            _bring_functions(operation, call, functions_of(module))
    block = main.regions[0].blocks[0]
    *ops, terminator = [op.operation for op in block.operations]
    for argument, operand in zip(list(block.arguments), list(operation.operands), strict=True):
        argument.replace_all_uses_with(operand)
    for op in ops:
        op.move_before(operation)
    return list(terminator.operands)


def _bring_functions(operation: Any, call: Any, functions: dict[str, Any]) -> None:
    """Copies the functions that a call names into the program, under new names."""
    function = operation
    while function.name != "func.func":
        function = function.parent.operation
    symbols = []
    for symbol in call.attributes["called_computations"]:
        name = ir.FlatSymbolRefAttr(symbol).value
        taken = len(functions_of(function.parent))
        copy = functions[name].clone(ip=ir.InsertionPoint(function))
        copy.attributes["sym_name"] = ir.StringAttr.get(f"{name}.{taken}")
        symbols.append(ir.FlatSymbolRefAttr.get(f"{name}.{taken}"))
    call.attributes["called_computations"] = ir.ArrayAttr.get(symbols)


def _sharded(localiser: Localiser, value: Any, layout: Layout | None) -> jax_compat.Sharded:
    dtype = numpy_type(str(value.type.element_type))
    assert dtype is not None, value.type
    shape = localiser.shape(value)
    layout = without_padding(layout, shape)
    if layout is not None and not is_plain(layout):
        layout = None
    return jax_compat.Sharded(shape, dtype, serialised(layout))


def _layout(localiser: Localiser, sharding: bytes, rank: int) -> Layout | None:
    """The layout that equals this xla.OpSharding.

    Raises:
        UnsupportedOpError: no mesh of the program has axes for it.
    """
    counts, blocks = jax_compat.blocks_of(sharding, rank)
    if not counts:
        return None
    numbers = np.unravel_index(np.asarray(blocks), counts)
    for mesh in localiser.shardings.meshes():
        dims = _dims(mesh, counts, numbers)
        if dims is not None:
            return layout_of(mesh, dims)
    reason = "partition returned a sharding that is not along axes of the program's mesh"
    raise UnsupportedOpError([("custom_partitioning", reason, "")])


def _dims(mesh: Mesh, counts: Sequence[int], numbers: Sequence[np.ndarray]) -> list[SubAxes] | None:
    """For each dimension the axes, major first, along which devices have these block numbers."""
    dims, free = [], list(mesh.all_sub_axes())
    for count, number in zip(counts, numbers, strict=True):
        axes: SubAxes = ()
        while count > 1:
            found = None
            for axis in free:
                digit = number // (count // axis.size or 1) % axis.size
                if count % axis.size == 0 and (mesh.values((axis,)) == digit).all():
                    found = axis
                    break
            if found is None:
                return None
            free.remove(found)
            axes, count = (*axes, found), count // found.size
        dims.append(axes)
    return dims
