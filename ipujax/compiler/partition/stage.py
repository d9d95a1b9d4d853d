"""Stage 2: turns one program for all devices into one program for each device.

func @main(%x: 8x8 {sdy.sharding = [{"x"}, {}]}) -> 8xf32        before: global shapes
  %1 = reduce(%x) across [0]
func @main(%x: 2x8) -> 8xf32                                      after: blocks, collectives
  %1 = reduce(%x) across [0]
  %2 = all_reduce(%1) groups [[0, 1, 2, 3]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

import ipujax.compiler.partition.rules  # noqa: F401  (registers every rule)
from ipujax import jax_compat
from ipujax.compiler.ingest import Request
from ipujax.compiler.modules import dictionaries_of, functions_of, main_of, ops_named, target_of
from ipujax.compiler.partition.localise import Localiser, shape_of
from ipujax.compiler.partition.mesh import Layout, is_plain
from ipujax.compiler.partition.propagate import propagate
from ipujax.compiler.partition.shardings import SHARDING, Shardings, serialised
from ipujax.compiler.reader import OLD_ANNOTATIONS
from ipujax.errors import UnsupportedOpError


def partition(request: Request) -> Request:
    """Makes the program local; a program for one device stays as it is.

    Raises:
        UnsupportedOpError: it has several replicas, or annotations of the old partitioner.
        InvalidProgramError: Shardy refuses its shardings.
    """
    if request.num_replicas > 1:
        _refuse(
            f"a program of {request.num_replicas} replicas",
            "devices must be partitions of one program, as jax.jit, jax.shard_map and jax.pmap"
            " make them; do not set num_replicas",
        )
    if request.num_partitions > 1:
        module = request.module
        with module.context, ir.Location.unknown():
            _refuse_old_annotations(module)
            parameters, results = make_local(module, request.num_partitions)
        request.parameter_shardings, request.result_shardings = parameters, results
    return request


def make_local(module: Any, num_devices: int) -> tuple[list[bytes], list[bytes]]:
    """Turns the global module into that of one device, in place.

    Returns:
        the shardings of parameters and of results, as serialised xla.OpSharding.
    """
    propagate(module)
    main = main_of(module)
    shardings = Shardings(module, num_devices)
    block = main.regions[0].blocks[0]
    localiser = Localiser(shardings, num_devices, block)
    terminator = list(block.operations)[-1].operation
    parameters = _declared(shardings, main, "arg_attrs", block.arguments)
    results = _declared(shardings, main, "res_attrs", terminator.operands)
    localiser.set_each(block.arguments, parameters)
    localiser.run(block, results)
    for function in functions_of(module).values():
        # In functions that custom calls name, only the spelling of constants changes.
        for operation in ops_named(function, "sdy.constant"):
            localiser.apply(operation)
    localiser.finish()
    _write_signature(main, block)
    jax_compat.run_passes(module, ["sdy-drop-sharding-and-mesh"])
    module.operation.verify()
    return _serialised(parameters), _serialised(results)


def _declared(
    shardings: Shardings, main: Any, name: str, values: Sequence[Any]
) -> list[Layout | None]:
    """The layouts that the named attributes, of arguments or results, ask for."""
    layouts: list[Layout | None] = [None] * len(values)
    for index, attributes in enumerate(dictionaries_of(main, name)):
        if SHARDING in attributes:
            shape = shape_of(values[index])
            layout = shardings.even_layout(attributes[SHARDING], shape, frozenset())
            layouts[index] = layout if layout is not None and is_plain(layout) else None
    return layouts


def _serialised(layouts: list[Layout | None]) -> list[bytes]:
    """Equal layouts are serialised once."""
    known = {layout: serialised(layout) for layout in set(layouts)}
    return [known[layout] for layout in layouts]


def _write_signature(main: Any, block: Any) -> None:
    terminator = list(block.operations)[-1].operation
    inputs = [argument.type for argument in block.arguments]
    outputs = [value.type for value in terminator.operands]
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, outputs))
    given = dictionaries_of(main, "arg_attrs")
    if given:
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [_fitting(each, kind, outputs) for each, kind in zip(given, inputs, strict=True)]
        )


def _fitting(attributes: Any, kind: Any, outputs: list[Any]) -> Any:
    """Replaces an alias by a donation if the result has another local type."""
    named = {item.name: item.attr for item in attributes}
    alias = named.get("tf.aliasing_output")
    if alias is not None and outputs[ir.IntegerAttr(alias).value] != kind:
        del named["tf.aliasing_output"]
        named["jax.buffer_donor"] = ir.BoolAttr.get(True)
    return ir.DictAttr.get(named)


def _refuse_old_annotations(module: Any) -> None:
    main = main_of(module)
    old = any(
        "mhlo.sharding" in attributes
        for name in ("arg_attrs", "res_attrs")
        for attributes in dictionaries_of(main, name)
    )
    calls = ops_named(module.operation, "stablehlo.custom_call")
    if old or any(target_of(call) in OLD_ANNOTATIONS for call in calls):
        _refuse(
            "mhlo.sharding",
            "this program was annotated for GSPMD; set jax.config.update("
            '"jax_use_shardy_partitioner", True), which is the default, and lower it again',
        )


def _refuse(what: str, reason: str) -> None:
    raise UnsupportedOpError([(what, reason, "")])
