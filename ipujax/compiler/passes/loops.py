"""Simplifies loops: drops carries that never change or are never read, counts iterations.

Before:  %r:3 = while(%w, 0, %x) cond { compare LT, %i, 10 }
                body { return %w, add(%i, 1), tanh(%x @ %w) }
After:   %r:2 = while(0, %x) {trip_count=10}
                body { return add(%i, 1), tanh(%x @ %w) }    # %w from outside
A loop is counted if its condition is `i < constant`, and i starts at a constant and grows by one.
"""

from __future__ import annotations

from ipujax.compiler.ir import (
    Block,
    Op,
    Program,
    Rewriter,
    Value,
    captured,
    has_effect,
    inputs_of,
    walk_ops,
)


def simplify_loops(program: Program) -> Program:
    """Rewrites every while loop, inner ones first, and drops dead code."""
    for op in walk_ops(program.main):
        if op.name == "while":
            _count(op)
    return drop_dead(_Hoister({"while": _hoist}).program(program))


class _Hoister(Rewriter):
    outer_first = True


def _hoist(w: Rewriter, op: Op) -> None:
    """A carry that never changes is replaced by its operand, in the loop and after it."""
    cond, body = op.regions
    replaced, kept = w.replaced, []
    for index, result in enumerate(op.results):
        new = replaced.get(body.results[index], body.results[index])
        if new is body.args[index]:
            outside = op.operands[index]
            replaced[body.args[index]] = outside
            replaced[cond.args[index]] = outside
            replaced[result] = outside
        else:
            kept.append(index)
    if len(kept) < len(op.results):
        _keep_carries(op, kept)


def _keep_carries(op: Op, kept: list[int]) -> None:
    cond, body = op.regions
    op.operands = [op.operands[i] for i in kept]
    op.results = [op.results[i] for i in kept]
    for index, result in enumerate(op.results):
        result.index = index
    body.args = [body.args[i] for i in kept]
    body.results = [body.results[i] for i in kept]
    cond.args = [cond.args[i] for i in kept]


def _count(op: Op) -> None:
    """Sets `trip_count` if the number of iterations is known."""
    cond, body = op.regions
    test = cond.results[0].op
    if test is None or test.name != "compare" or test.attrs["comparison_direction"] != "LT":
        return
    counter, limit = test.operands
    if counter not in cond.args or limit.const is None or counter.shape:
        return
    index = cond.args.index(counter)
    start, step = op.operands[index].const, body.results[index].op
    if start is None or step is None or step.name != "add":
        return
    lhs, rhs = step.operands
    if lhs is not body.args[index] or rhs.const is None or int(rhs.const) != 1:
        return
    op.attrs["trip_count"] = max(0, int(limit.const) - int(start))
    cond.ops, cond.results = [], []


def drop_dead(program: Program) -> Program:
    """Drops ops, and carries of loops, that no result and no effect needs."""
    _drop_in(program.main, set())
    return program


def _drop_in(block: Block, needed: set[Value]) -> None:
    """`needed` are values of the block that are used outside it, including its results."""
    needed = needed | set(block.results)
    kept: list[Op] = []
    for op in reversed(block.ops):
        if not any(result in needed for result in op.results) and not has_effect(op):
            continue
        if op.name == "while":
            _drop_carries(op, needed)
        for region in op.regions:
            _drop_in(region, set())
        needed.update(inputs_of(op))
        kept.append(op)
    kept.reverse()
    block.ops = kept


def _drop_carries(op: Op, needed: set[Value]) -> None:
    """Keeps the carries that a needed result, an effect or the condition depends on."""
    cond, body = op.regions
    position = {arg: index for index, arg in enumerate(body.args)}
    live = {index for index, result in enumerate(op.results) if result in needed}
    used_by_cond = set(captured(Block(ops=cond.ops, results=cond.results)))
    live.update(index for index, arg in enumerate(cond.args) if arg in used_by_cond)
    sources = _argument_sources(body, position)
    for inner in body.ops:
        if has_effect(inner):
            live.update(sources[id(inner)])
    pending = list(live)
    while pending:
        result = body.results[pending.pop()]
        reached = (
            {position[result]} if result in position else sources.get(id(result.op), frozenset())
        )
        fresh = reached - live
        live.update(fresh)
        pending.extend(fresh)
    if len(live) < len(op.results):
        _keep_carries(op, sorted(live))


def _argument_sources(body: Block, position: dict[Value, int]) -> dict[int, frozenset[int]]:
    """For each op of the body the arguments it depends on, by index."""
    found: dict[int, frozenset[int]] = {}
    for op in body.ops:
        reached: set[int] = set()
        for value in inputs_of(op):
            if value in position:
                reached.add(position[value])
            elif value.op is not None and id(value.op) in found:
                reached.update(found[id(value.op)])
        found[id(op)] = frozenset(reached)
    return found
