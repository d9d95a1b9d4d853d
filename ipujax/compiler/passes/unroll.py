"""Writes out short counted loops of elementwise ops, so that all their rounds become one fused op.

Before:  %r = while(0, %x) {trip_count=2}       After:  %1 = add(%x, 0)
             body { return add(%i, 1),                  %r = add(%1, 1)
                           add(%x, %i) }
The rounds of jax.random's generator are such a loop: 5 rounds over 4 scalars and the whole array.
"""

from __future__ import annotations

from ipujax.compiler.ir import Block, Op, Program, Value, walk_ops
from ipujax.compiler.passes.simplify import simplify
from ipujax.compiler.rules.elementwise import ELEMENTWISE

MAX_ROUNDS = 8
MAX_BODY = 64
#: Beside elementwise ops, those that are views, and small joins of scalars.
_CHEAP = frozenset({"reshape", "slice", "broadcast_in_dim", "transpose", "concatenate", "iota"})


def unroll(program: Program) -> Program:
    """Unrolls, then simplifies again: the rounds' counters are constants now."""
    if any(op.name == "while" for op in walk_ops(program.main)):
        _unroll_in(program.main, {})
        simplify(program)
    return program


def _is_short(op: Op) -> bool:
    if op.name != "while" or op.attrs.get("trip_count", MAX_ROUNDS + 1) > MAX_ROUNDS:
        return False
    body = op.regions[1]
    return len(body.ops) <= MAX_BODY and all(
        inner.name in ELEMENTWISE or inner.name in _CHEAP for inner in body.ops
    )


def _unroll_in(block: Block, replaced: dict[Value, Value]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        if replaced:
            op.operands = [replaced.get(value, value) for value in op.operands]
        for region in op.regions:
            _unroll_in(region, replaced)
        if _is_short(op):
            replaced.update(zip(op.results, _rounds(op, kept), strict=True))
        else:
            kept.append(op)
    block.ops = kept
    if replaced:
        block.results = [replaced.get(value, value) for value in block.results]


def _rounds(loop: Op, kept: list[Op]) -> list[Value]:
    """Appends the loop's rounds to `kept`; gives what the last one carries out."""
    body = loop.regions[1]
    carried = loop.operands
    for _ in range(loop.attrs["trip_count"]):
        env = dict(zip(body.args, carried, strict=True))
        for op in body.ops:
            copy = Op(op.name, [env.get(v, v) for v in op.operands], dict(op.attrs), op.source)
            for result in op.results:
                env[result] = copy.add_result(result.shape, result.dtype)
            kept.append(copy)
        carried = [env.get(value, value) for value in body.results]
    return carried
