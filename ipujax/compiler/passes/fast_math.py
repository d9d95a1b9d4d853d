"""Rewrites by rules that hold for real numbers, where `fast_math` allows it.

Before:  %1 = divide(%0, 3.0)      After:  %1 = multiply(%0, 0.333...)
         %2 = multiply(%1, 6.0)            %2 = multiply(%0, 2.0)
         %3 = subtract(%2, %2)             0.0
NaN, infinities and the sign of zero are not kept, and results may differ in the last place.
"""

from __future__ import annotations

from collections.abc import Callable

from ipujax.compiler.ir import Block, Op, Program, Value, number
from ipujax.compiler.passes.checks import FLOATS
from ipujax.compiler.scopes import ScopedOptions


def rewrite_fast(program: Program, options: ScopedOptions) -> Program:
    """Rewrites the ops of all blocks that allow it."""
    _rewrite_in(program.main, options, {})
    return program


def _rewrite_in(block: Block, options: ScopedOptions, replaced: dict[Value, Value]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        op.operands = [replaced.get(value, value) for value in op.operands]
        for region in op.regions:
            _rewrite_in(region, options, replaced)
        rule = RULES.get(op.name)
        if rule and op.results[0].dtype in FLOATS and options.of(op).fast_math:
            value = rule(op)
            if value is not None:
                replaced[op.results[0]] = value
                continue
        kept.append(op)
    block.ops = kept
    block.results = [replaced.get(value, value) for value in block.results]


def _is(value: Value, wanted: float) -> bool:
    return _splat_of(value) == wanted


def _splat_of(value: Value) -> float | None:
    """The one element of a constant, also of a broadcast one."""
    if value.is_splat and value.const is not None:
        return float(value.const.flat[0])
    if value.op is not None and value.op.name == "broadcast_in_dim":
        return _splat_of(value.op.operands[0])
    return None


def _add(op: Op) -> Value | None:
    a, b = op.operands
    return a if _is(b, 0) else b if _is(a, 0) else None


def _subtract(op: Op) -> Value | None:
    a, b = op.operands
    if a is b:
        return number(0, a.shape, a.dtype)
    return a if _is(b, 0) else None


def _multiply(op: Op) -> Value | None:
    a, b = op.operands
    if _is(a, 0) or _is(b, 0):
        return number(0, a.shape, a.dtype)
    if _splat_of(a) is not None:
        a, b = b, a
    factor = _splat_of(b)
    if factor is None:
        return None
    op.operands = [a, b]
    inner = a.op
    if inner is not None and inner.name == "multiply" and _splat_of(inner.operands[1]) is not None:
        other = _splat_of(inner.operands[1])
        assert other is not None
        op.operands = [inner.operands[0], number(factor * other, a.shape, a.dtype)]
    return op.operands[0] if _is(op.operands[1], 1) else None


def _divide(op: Op) -> Value | None:
    a, b = op.operands
    if a is b:
        return number(1, a.shape, a.dtype)
    divisor = _splat_of(b)
    if divisor is None or divisor == 0:
        return None
    op.name = "multiply"
    op.operands = [a, number(1 / divisor, b.shape, b.dtype)]
    return _multiply(op)


#: What an op becomes, or None where it stays; its operands may have been changed.
RULES: dict[str, Callable[[Op], Value | None]] = {
    "add": _add,
    "divide": _divide,
    "multiply": _multiply,
    "subtract": _subtract,
}
