"""Lowers `ipujax.custom_op`: a function of the user's library adds to the graph."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from ipujax.compiler.ir import Op, Value
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.errors import ConfigError
from ipujax.host import custom_op_libraries


@custom_call_rule("ipu_custom_op")
def custom_op(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Returns the outputs of the library's function as the results."""
    builder.prints = True  # users' code may
    config: dict[str, Any] = json.loads(op.attrs["mhlo.backend_config"]["config"])
    library = _library(builder, config)
    inputs = list(builder.operands(op))
    attributes = config["attributes"]
    call = (attributes, builder.program, builder.debug(op))
    name, first = config["name"], config["gradients"]
    try:
        if first is None:
            outputs = library.build(builder.graph, name, inputs, *call)
        else:
            end = first + config["inputs"]
            parts = (inputs[:first], inputs[first:end], inputs[end:])
            outputs = library.buildGradient(builder.graph, name, config["input"], *parts, *call)
    except ipu.poplar.poplar_error as error:  # the user's error
        raise ConfigError(str(error)) from None
    function = name if first is None else f"{name}_grad"
    outputs = _with_empty(builder, op, _wanted(config, outputs))
    _check(builder, function, outputs, op.results)
    return outputs


def _library(builder: Builder, config: dict[str, Any]) -> ipu.popx.CustomOpLibrary:
    """The library's functions; its codelets are added to the graph, once for a program."""
    digest = config["library"]
    try:
        library = custom_op_libraries.find(digest)
        if library is None:
            raise ConfigError(
                f"[custom_op] needs the library of {config['name']!r} declared by this process; "
                "got its digest alone. Import the module that calls ipujax.custom_op for it."
            )
        for number, file in enumerate(library.codelets):
            key = (digest, str(number))
            if key not in builder.codelets:
                graph = builder.whole_graph
                graph.addCodelets(file.text) if file.text else graph.addCodeletFile(file.path)
                builder.codelets.add(key)
    except ipu.poplar.poplar_error as error:  # no compiler, no folder, or no such library
        raise ConfigError(str(error)) from None
    return library.functions


def _wanted(config: dict[str, Any], outputs: Sequence[ipu.Tensor]) -> list[ipu.Tensor]:
    """Selects the wanted gradients from those of all inputs."""
    numbers = config["of_all"]
    if numbers is None or len(outputs) != config["inputs"]:
        return list(outputs)
    return [outputs[i] for i in numbers]


def _with_empty(builder: Builder, op: Op, outputs: list[ipu.Tensor]) -> list[ipu.Tensor]:
    """Adds outputs without elements, which a function may leave out."""
    missing = op.results[len(outputs) :]
    if any(np.prod(value.shape) for value in missing):
        return outputs
    made = [
        builder.graph.addVariable(builder.type_of(value), list(value.shape), builder.debug(op))
        for value in missing
    ]
    return outputs + made


def _check(
    builder: Builder, function: str, outputs: Sequence[ipu.Tensor], wanted: Sequence[Value]
) -> None:
    if len(outputs) != len(wanted):
        raise ConfigError(
            f"[custom_op] needs {len(wanted)} outputs from {function}; got {len(outputs)}. Declare "
            "in Python what the function makes."
        )
    for i, (tensor, value) in enumerate(zip(outputs, wanted, strict=True)):
        type_ = builder.type_of(value)
        if tuple(tensor.shape) != value.shape or tensor.elementType() != type_:
            raise ConfigError(
                f"[custom_op] needs output {i} of {function} to be {type_} {list(value.shape)}, as "
                f"declared in Python; got {tensor.elementType()} {list(tensor.shape)}. Change one "
                "of the two."
            )
