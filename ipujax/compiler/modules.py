"""What an MLIR module holds: its functions, and ops by name."""

from __future__ import annotations

from typing import Any

from ipujax.errors import InvalidProgramError


def functions_of(module: Any) -> dict[str, Any]:
    """All functions by name."""
    return {
        op.operation.attributes["sym_name"].value: op.operation
        for op in module.body.operations
        if op.operation.name == "func.func"
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
