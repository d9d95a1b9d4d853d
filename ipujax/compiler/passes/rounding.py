"""Rounds float16 products separately if the program does not want rounding to nearest.

Before:  %2: f16 = dot_general(%0, %1)      After:  %2: f32 = dot_general(%0, %1)
                                                    %3: f16 = convert(%2)
Products sum in float32 and round once. A separate convert rounds as elementwise ops do, which
honours `stochastic_rounding` and `half_overflow`. Sums (reduce and its kin) keep rounding to
nearest.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, Program, Rewriter, Value


def round_products(program: Program) -> Program:
    """Rewrites all blocks."""
    return _Rounder().program(program)


class _Rounder(Rewriter):
    def rule(self, op: Op) -> Sequence[Value] | None:
        if not op.traits.product or op.results[0].dtype != "f16":
            return None
        chosen = self.options.of(op)
        if not chosen.stochastic_rounding and chosen.half_overflow == "infinity":
            return None
        (result,) = op.results
        wide = self.op(op.name, op.operands, op.attrs, shape=result.shape, dtype="f32")
        return [self.op("convert", [wide], dtype="f16")]
