"""Unrolls short counted loops of elementwise ops, so that all iterations become one fused op.

Before:  %r = while(0, %x) {trip_count=2}       After:  %1 = add(%x, 0)
             body { return add(%i, 1),                  %r = add(%1, 1)
                           add(%x, %i) }
The rounds of jax.random's generator are such a loop: 5 rounds over 4 scalars and the whole array.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, Program, Rewriter, Value, walk_ops
from ipujax.compiler.passes.simplify import simplify

MAX_ROUNDS = 8
MAX_BODY = 64


def unroll(program: Program) -> Program:
    """Unrolls, then simplifies again: the iterations' counters are constants now."""
    if any(op.name == "while" for op in walk_ops(program.main)):
        Rewriter({"while": _rounds}).program(program)
        simplify(program)
    return program


def _is_short(loop: Op) -> bool:
    body = loop.regions[1]
    return (
        loop.attrs.get("trip_count", MAX_ROUNDS + 1) <= MAX_ROUNDS
        and all(op.source.placed.stage is None for op in body.ops)  # a pipeline stays a loop
        and len(body.ops) <= MAX_BODY
        and all(_is_small(op) for op in body.ops)
    )


def _is_small(op: Op) -> bool:
    traits = op.traits
    return traits.elementwise or traits.view or traits.cheap


def _rounds(w: Rewriter, loop: Op) -> Sequence[Value] | None:
    """The values that the last iteration of a short loop returns."""
    if not _is_short(loop):
        return None
    body, carried = loop.regions[1], loop.operands
    for _ in range(loop.attrs["trip_count"]):
        env = dict(zip(body.args, carried, strict=True))
        for op in body.ops:
            copy = Op(op.name, [env.get(v, v) for v in op.operands], dict(op.attrs), op.source)
            for result in op.results:
                env[result] = copy.add_result(result.shape, result.dtype)
            w.ops.append(copy)
        carried = [env.get(value, value) for value in body.results]
    return carried
