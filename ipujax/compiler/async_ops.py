"""Joins each async_start and async_done into one op: an IPU program runs ops one at a time.

%f = async_start(%x) { %1 = all_reduce(%x); return %1 }      before
%y = async_done(%f)
%y = all_reduce(%x)                                              after
"""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ipujax.compiler.modules import ops_named
from ipujax.errors import UnsupportedOpError


def join_halves(module: Any) -> None:
    """Replaces each async_start by the collective inside it, in place.

    Raises:
        UnsupportedOpError: something other than async_done uses the result of a start.
    """
    with module.context, ir.Location.unknown():
        for start in ops_named(module.operation, "stablehlo.async_start"):
            _join(start)


def _join(start: Any) -> None:
    block = start.regions[0].blocks[0]
    *ops, terminator = [op.operation for op in block.operations]
    for argument, operand in zip(list(block.arguments), list(start.operands), strict=True):
        argument.replace_all_uses_with(operand)
    for op in ops:
        op.move_before(start)
    values = list(terminator.operands)
    for use in list(start.results[0].uses):
        done = use.owner.operation
        if done.name != "stablehlo.async_done":
            reason = "its future leaves the function; call done() where the collective starts"
            raise UnsupportedOpError([("async_start", reason, "")])
        for result, value in zip(list(done.results), values, strict=True):
            result.replace_all_uses_with(value)
        done.erase()
    start.erase()
