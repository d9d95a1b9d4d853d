"""Refuses ops that cannot be lowered: all of them at once, with their source lines."""

from __future__ import annotations

from ipujax.compiler.ir import Op, Program, blocks_run, walk_ops
from ipujax.compiler.rules.custom_call import refusal
from ipujax.compiler.rules.elementwise import body_refusals
from ipujax.compiler.rules.precision import algorithm_refusal
from ipujax.compiler.rules.registry import RULES
from ipujax.errors import OutOfMemoryError, UnsupportedOpError

#: More elements than an int32 index reaches, and than a Mk2 IPU has bytes.
MAX_ELEMENTS = 2**31 - 1


def refuse_unsupported(program: Program) -> Program:
    """Raises UnsupportedOpError with every op of the program that has no rule."""
    found = []
    for block in blocks_run(program.main):
        for op in block.ops:
            reason = _refusal(op)
            if reason is not None:
                found.append((_shown_name(op), reason, op.source.line))
            if not op.traits.control_flow:
                for region in op.regions:
                    found += body_refusals(region, op)
    if found:
        raise UnsupportedOpError(found)
    _refuse_too_large(program)
    return program


def _refuse_too_large(program: Program) -> None:
    """Views cost nothing, so arrays that are never computed must be refused by their shape."""
    for op in walk_ops(program.main):
        for value in op.results:
            if value.num_elements > MAX_ELEMENTS:
                raise OutOfMemoryError(
                    f"[compile] needs arrays of at most {MAX_ELEMENTS} elements; got "
                    f"{value.dtype}{list(value.shape)} of {op.name} (at {op.source.line}). "
                    "Compute it in parts, with a loop."
                )


def _shown_name(op: Op) -> str:
    if op.name == "custom_call":
        return f"custom_call @{op.attrs['call_target_name']}"
    return op.name


def _refusal(op: Op) -> str | None:
    if op.name == "custom_call":
        return refusal(op)
    if op.name == "dot_general":
        return algorithm_refusal(op)
    if op.name in RULES:
        return None
    return op.traits.refused or "it is not known"
