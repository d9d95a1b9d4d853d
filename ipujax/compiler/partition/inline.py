"""Inlines the functions that @main calls."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from ipujax.annotations import placement
from ipujax.compiler.modules import functions_of, main_of, ops_named
from ipujax.compiler.sources import METADATA


def inline_calls(module: Any) -> None:
    """Replaces each call by a copy of the function's body.

    Only @main and functions that custom calls name remain.
    """
    functions = functions_of(module)
    main = main_of(module)
    pending = [main]
    numbers = itertools.count(1)
    while pending:
        root = pending.pop()
        for call in ops_named(root, "func.call"):
            callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
            copy = functions[callee].clone(ip=False)
            pending.extend(_inline(call, copy, numbers))
    named = _named_by_custom_calls(main)
    for name, function in functions.items():
        if name != "main" and name not in named:
            function.erase()


def _named_by_custom_calls(main: Any) -> set[str]:
    found = set()
    for call in ops_named(main, "stablehlo.custom_call"):
        for symbol in call.attributes.get("called_computations") or ():
            found.add(ir.FlatSymbolRefAttr(symbol).value)
    return found


def _within(outer: Any, inner: Any) -> Any:
    """The metadata of both; the inner one's wins."""
    if inner is None:
        return outer
    return ir.DictAttr.get({item.name: item.attr for both in (outer, inner) for item in both})


def _scope_of(call: Any, numbers: Iterator[int]) -> Any:
    """The metadata of the ops that replace a call; calls of outlined functions get a number."""
    scope = call.attributes.get(METADATA)
    if scope is None or placement.OUTLINED not in scope:
        return scope
    named = {item.name: item.attr for item in scope if item.name != placement.OUTLINED}
    path = named.get(placement.OUTLINED_CALLS)
    outer = [ir.StringAttr(path).value] if path is not None else []
    text = "/".join([*outer, str(next(numbers))])
    return ir.DictAttr.get({**named, placement.OUTLINED_CALLS: ir.StringAttr.get(text)})


def _inline(call: Any, function: Any, numbers: Iterator[int]) -> list[Any]:
    """Moves a function's body before the call; returns its calls and its ops with regions."""
    block = function.regions[0].blocks[0]
    *ops, terminator = [op.operation for op in block.operations]
    scope = _scope_of(call, numbers)
    for argument, value in zip(list(block.arguments), list(call.operands), strict=True):
        argument.replace_all_uses_with(value)
    for op in ops:
        op.move_before(call)
        if scope is not None:
            op.attributes[METADATA] = _within(scope, op.attributes.get(METADATA))
    for result, value in zip(list(call.results), list(terminator.operands), strict=True):
        result.replace_all_uses_with(value)
    call.erase()
    return [op for op in ops if op.name == "func.call" or len(op.regions)]
