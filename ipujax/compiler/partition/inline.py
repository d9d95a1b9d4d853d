"""The functions of a module: @main, and those that it calls, which are put into it."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ipujax.compiler.sources import METADATA
from ipujax.errors import InvalidProgramError


def main_of(module: Any) -> Any:
    """The function @main.

    Raises:
        InvalidProgramError: there is none.
    """
    functions = functions_of(module)
    if "main" not in functions:
        raise InvalidProgramError(
            f"[partition] needs a function @main; got {sorted(functions)}. Export the whole module."
        )
    return functions["main"]


def functions_of(module: Any) -> dict[str, Any]:
    """All functions by name."""
    return {
        ir.StringAttr(op.operation.attributes["sym_name"]).value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
    }


def inline_calls(module: Any) -> None:
    """Puts a copy of each called function in the call's place.

    Only @main is left, and those that custom calls name.
    """
    functions = functions_of(module)
    main = main_of(module)
    pending = [main]
    while pending:
        root = pending.pop()
        for call in ops_named(root, "func.call"):
            callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
            copy = functions[callee].clone(ip=False)
            pending.extend(_inline(call, copy))
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


def ops_named(root: Any, name: str) -> list[Any]:
    """The ops of that name: the root, or those in it."""
    if root.name == name:
        return [root]
    found = []
    for region in root.regions:
        for block in region.blocks:
            for op in block.operations:
                operation = op.operation
                if operation.name == name:
                    found.append(operation)
                elif len(operation.regions):
                    found += ops_named(operation, name)
    return found


def _inline(call: Any, function: Any) -> list[Any]:
    """Moves the body of a function, which then is empty, before the call; returns its ops."""
    block = function.regions[0].blocks[0]
    *ops, terminator = [op.operation for op in block.operations]
    scope = call.attributes.get(METADATA)
    for argument, value in zip(list(block.arguments), list(call.operands), strict=True):
        argument.replace_all_uses_with(value)
    for op in ops:
        op.move_before(call)
        if scope is not None and METADATA not in op.attributes:
            op.attributes[METADATA] = scope
    for result, value in zip(list(call.results), list(terminator.operands), strict=True):
        result.replace_all_uses_with(value)
    call.erase()
    return [op for op in ops if op.name == "func.call" or len(op.regions)]
