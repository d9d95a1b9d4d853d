"""Calls of functions: code that exists once and runs on its own variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ipujax.compiler.ir import Block, Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule
from ipujax.compiler.rules.rounding_keys import Kind

declare("call", moves=True, integers64=True, replicated="the compiler makes it after partitioning")


@dataclass(slots=True)
class Compiled:
    """A function compiled for operands of one memory layout."""

    operands: list[ipu.Tensor | None]  #: of its first call; None for tokens
    arguments: list[ipu.Tensor | None]
    results: list[ipu.Tensor | None]
    function: ipu.poplar.Function
    keys: dict[Kind, ipu.Tensor]  #: of stochastic rounding


@rule("call")
def call(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    """Copies the operands to the function's arguments, calls it, and copies its results."""
    debug = builder.debug(op)
    operands = [None if value.dtype == "token" else builder.tensor(value) for value in op.operands]
    compiled = _compiled(builder, op.attrs["function"], operands, debug)
    for operand, argument in zip(operands, compiled.arguments, strict=True):
        if operand is not None and argument is not None:
            builder.copy(operand, argument, debug)
    builder.rounding.call(op, compiled.keys)
    builder.program.add(ipu.poplar.program.Call(compiled.function, debug))
    results = [compiled.results[index] for index in op.attrs["returns"]]
    return [None if result is None else _copied(builder, result, debug) for result in results]


def _compiled(
    builder: Builder,
    function: Block,
    operands: list[ipu.Tensor | None],
    debug: ipu.DebugContext,
) -> Compiled:
    """The function for operands of this layout: steps read its arguments in the same order as they
    would read the operands, so that sums are added in the same order, called or not.
    """
    known = builder.functions.setdefault(function, [])
    for compiled in known:
        pairs = zip(operands, compiled.operands, strict=True)
        if all(a is None or b is None or ipu.popx.sameLayout(a, b) for a, b in pairs):
            return compiled
    arguments: list[ipu.Tensor | None] = []
    for value, operand in zip(function.args, operands, strict=True):
        if operand is None:
            arguments.append(None)
            continue
        with builder.at(value):
            argument = builder.tensors[value] = _like(builder, operand, debug)
        arguments.append(argument)
    body = ipu.poplar.program.Sequence(debug)
    keys = builder.rounding.of_function(function)
    with builder.inside(body), builder.rounding.inside(keys):
        lowered = builder.lower(function)
    results = [value if isinstance(value, ipu.poplar.Tensor) else None for value in lowered]
    compiled = Compiled(operands, arguments, results, builder.whole_graph.addFunction(body), keys)
    known.append(compiled)
    return compiled


def _copied(builder: Builder, tensor: ipu.Tensor, debug: ipu.DebugContext) -> ipu.Tensor:
    made = _like(builder, tensor, debug)
    builder.copy(tensor, made, debug)
    return made


def _like(builder: Builder, tensor: ipu.Tensor, debug: ipu.DebugContext) -> ipu.Tensor:
    """A variable on the tensor's tiles, in its order."""
    keep = ipu.poplar.TensorCloneMethod.PRESERVE_ORDER_AND_ALIASES
    return builder.graph.clone(tensor, debug, keep)
