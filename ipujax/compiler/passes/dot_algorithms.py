"""Replaces algorithms of products in types that an IPU cannot multiply by conversions.

Before:  %2 = dot_general(%0, %1) {algorithm = f64 x f64, summed in f64}   f32
After:   %2 = convert(%0)            f64
         %3 = convert(%1)            f64
         %4 = dot_general(%2, %3)    f64
         %5 = convert(%4)            f32
Later passes then treat float64 as `ipu_x64` says, and 8-bit floats as elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.formulas.float8 import SMALL_FLOATS
from ipujax.compiler.ir import Op, Program, Rewriter, Value
from ipujax.compiler.rules.precision import algorithm_of

_CONVERTED = {"f64", *SMALL_FLOATS}


def convert_for_algorithms(program: Program) -> Program:
    """Rewrites all blocks; runs before the passes that treat these types."""
    return _Converter().program(program)


class _Converter(Rewriter):
    def rule(self, op: Op) -> Sequence[Value] | None:
        algorithm = algorithm_of(op) if op.name == "dot_general" else None
        if algorithm is None or not {algorithm.left, algorithm.right} <= _CONVERTED:
            return None
        (result,) = op.results
        operands = [
            self.term(value).convert(wanted).value
            for value, wanted in zip(op.operands, (algorithm.left, algorithm.right), strict=True)
        ]
        attrs = {name: value for name, value in op.attrs.items() if name != "algorithm"}
        product = self.op(op.name, operands, attrs, shape=result.shape, dtype=algorithm.summed)
        return [self.term(product).convert(result.dtype).value]
