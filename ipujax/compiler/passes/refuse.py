"""Refuses ops that cannot be lowered: all of them at once, with their source lines."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import chain

import numpy as np

from ipujax.compiler.ir import Op, Program, Shape, Value, blocks_run, walk_ops
from ipujax.compiler.rules.custom_call import misread, refusal
from ipujax.compiler.rules.elementwise import body_refusals
from ipujax.compiler.rules.precision import algorithm_refusal
from ipujax.compiler.rules.registry import RULES
from ipujax.errors import OutOfMemoryError, UnsupportedOpError

#: The most that an int32 index can address; more than a Mk2 IPU has bytes.
MAX_ELEMENTS = 2**31 - 1


def refuse_unsupported(program: Program) -> Program:
    """Raises UnsupportedOpError with every op of the program that has no rule."""
    found = []
    for block in blocks_run(program.main):
        for op in block.ops:
            reason = _refusal(op)
            if reason is not None:
                found.append((op.shown_name, reason, op.source.line))
            if not op.traits.control_flow:
                for region in op.regions:
                    found += body_refusals(region, op)
    if found:
        raise UnsupportedOpError(found)
    _refuse_larger(program, MAX_ELEMENTS, lambda value: value.num_elements)
    return program


def refuse_misread(program: Program) -> Program:
    """Refuses custom calls that their rules cannot read, while types are still the program's."""
    calls = [op for op in walk_ops(program.main) if op.name == "custom_call"]
    found = [(op.shown_name, why, op.source.line) for op in calls if (why := misread(op))]
    if found:
        raise UnsupportedOpError(found)
    return program


def refuse_unaddressable(program: Program) -> Program:
    """Refuses arrays too large for the passes to even make a view that repeats one element."""
    _refuse_larger(program, np.iinfo(np.int64).max // 16, lambda value: _volume(value.shape))
    return program


def _volume(shape: Shape) -> int:
    """The number of elements, with empty dimensions counted as 1."""
    return math.prod(max(size, 1) for size in shape)


def _refuse_larger(program: Program, limit: int, size_of: Callable[[Value], int]) -> None:
    """Refuses arrays by their shape, since views cost nothing and may never be computed."""
    of_ops = (
        (value, f"{op.name} (at {op.source.line})")
        for op in walk_ops(program.main)
        for value in (*op.results, *op.operands)
    )
    results = ((value, f"result {index}") for index, value in enumerate(program.main.results))
    for value, where in chain(of_ops, results):
        if size_of(value) > limit:
            raise OutOfMemoryError(
                f"[compile] needs arrays of at most {MAX_ELEMENTS} elements; got "
                f"{value.dtype}{list(value.shape)} of {where}. Compute it in parts, with a loop."
            )


def _refusal(op: Op) -> str | None:
    if op.name == "custom_call":
        return refusal(op)
    if op.name == "dot_general":
        return algorithm_refusal(op)
    if op.name in RULES:
        return None
    return op.traits.refused or "it is not known"
