"""Rounds float16 products where the program wants another rounding than the nearest.

Before:  %2: f16 = dot_general(%0, %1)      After:  %2: f32 = dot_general(%0, %1)
                                                    %3: f16 = convert(%2)
Products sum in float32 and round once; as a convert of its own that rounding is done the way that
elementwise ops round, which honours `stochastic_rounding` and `half_overflow`. Sums (reduce and its
kin) keep rounding to nearest.
"""

from __future__ import annotations

from ipujax.compiler.ir import Block, Op, Program, Value
from ipujax.compiler.scopes import ScopedOptions

PRODUCTS = frozenset({"dot_general", "convolution"})


def round_products(program: Program, options: ScopedOptions) -> Program:
    """Rewrites all blocks."""
    _round_in(program.main, options, {})
    return program


def _round_in(block: Block, options: ScopedOptions, replaced: dict[Value, Value]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        op.operands = [replaced.get(value, value) for value in op.operands]
        for region in op.regions:
            _round_in(region, options, replaced)
        kept.append(op)
        if op.name not in PRODUCTS or op.results[0].dtype != "f16":
            continue
        chosen = options.of(op)
        if not chosen.stochastic_rounding and chosen.half_overflow == "infinity":
            continue
        (result,) = op.results
        op.results = []
        convert = Op("convert", [op.add_result(result.shape, "f32")], {}, op.source)
        replaced[result] = convert.add_result(result.shape, "f16")
        kept.append(convert)
    block.ops = kept
    block.results = [replaced.get(value, value) for value in block.results]
