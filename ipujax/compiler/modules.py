"""Finds functions and ops in an MLIR module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jaxlib.mlir import ir

from ipujax.errors import InvalidProgramError


def functions_of(module: Any) -> dict[str, Any]:
    """All functions by name."""
    return {
        op.attributes["sym_name"].value: op
        for op in ops_in(module.operation)
        if op.name == "func.func"
    }


def main_of(module: Any) -> Any:
    """The function @main.

    Raises:
        InvalidProgramError: there is none.
    """
    functions = functions_of(module)
    if "main" not in functions:
        raise InvalidProgramError(
            f"[compile] needs a function @main; got {sorted(functions)}. Export the whole module."
        )
    return functions["main"]


def dictionaries_of(function: Any, name: str) -> list[Any]:
    """The attributes of each argument ("arg_attrs") or result; empty if none has any."""
    return list(ir.ArrayAttr(function.attributes[name])) if name in function.attributes else []


def ops_in(operation: Any) -> Iterator[Any]:
    """The ops directly in its regions, not those nested deeper."""
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield op.operation


def ops_named(root: Any, name: str) -> list[Any]:
    """The ops of that name: the root, or those in it."""
    if root.name == name:
        return [root]
    found = []
    for operation in ops_in(root):
        if operation.name == name:
            found.append(operation)
        elif len(operation.regions):
            found += ops_named(operation, name)
    return found


def target_of(call: Any) -> str:
    """The name that a custom call calls."""
    return ir.StringAttr(call.attributes["call_target_name"]).value
