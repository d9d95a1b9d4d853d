"""Folds constants and drops ops that change nothing.

Before:  %1 = broadcast_in_dim(0.5:f32) {()}        After:  %2 = multiply(%0, 0.5:f32)
         %2 = multiply(%0, %1)
         %3 = reshape(%2) to its own shape                  return %2
         return %3
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, Program, Rewriter, Value, constant
from ipujax.compiler.ir.fold import fold_elementwise
from ipujax.compiler.simplifiers import RULES


def simplify(program: Program) -> Program:
    """Rewrites all blocks, outer ones first, in one walk."""
    return _Simplifier(RULES).program(program)


class _Simplifier(Rewriter):
    outer_first = True

    def rule(self, op: Op) -> Sequence[Value] | None:
        found = super().rule(op)
        return found if found is not None else fold_elementwise(op) or _empty(op)


def _empty(op: Op) -> list[Value] | None:
    """Replaces arrays without elements by constants, whichever op computes them."""
    if not op.results or any(0 not in value.shape for value in op.results):
        return None
    if op.regions or op.traits.effect or any(v.dtype not in DTYPES for v in op.results):
        return None
    return [constant(np.zeros(v.shape, DTYPES[v.dtype].numpy), v.dtype) for v in op.results]
