"""Makes float32 sums read float16 values directly: reductions accumulate in float32 anyway.

Before:  %1 = convert(%0) : f32[64,128]            After:  %2 = reduce(%0) {add} : f32[128]
         %2 = reduce(%1) {add} : f32[128]
"""

from __future__ import annotations

from ipujax.compiler.ir import Op, Program, combiner_of, number_of, walk_ops


def widen_in_sums(program: Program) -> Program:
    """Removes conversions from the operands of sums, which would need them in memory."""
    for op in walk_ops(program.main):
        if is_sum(op):
            source = op.operands[0].op
            if source is not None and source.name == "convert":
                (given,) = source.operands
                if given.dtype == "f16" and given.const is None:
                    op.operands[0] = given
    return program


def is_sum(op: Op) -> bool:
    """Whether it is one reduction to float32 by addition."""
    return (
        op.name == "reduce"
        and len(op.results) == 1
        and op.results[0].dtype == "f32"
        and combiner_of(op.regions[0]) == "add"
        and number_of(op.operands[1]) == 0
    )
