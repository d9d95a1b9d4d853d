"""Computes equal things once.

Before:  %1 = exponential(%0)     After:  %1 = exponential(%0)
         %2 = exponential(%0)             %3 = add(%1, %1)
         %3 = add(%1, %2)
Values behind an optimization_barrier are different values, so what jax.remat recomputes stays
apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.ir import Block, Op, Program, Rewriter, Value


def share(program: Program) -> Program:
    """Replaces each op by an earlier equal one of its own or a surrounding block."""
    return _Sharer().program(program)


class _Sharer(Rewriter):
    outer_first = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[Any, list[Value]] = {}
        self.constants: dict[Any, Value] = {}

    def block(self, block: Block) -> None:
        outer, self.seen = self.seen, dict(self.seen)
        super().block(block)
        self.seen = outer

    def now(self, value: Value) -> Value:
        const = value.const
        if const is None:
            return self.replaced.get(value, value)
        if value.is_splat and const.size:
            key: Any = (value.dtype, value.shape, const.flat[0].tobytes())
        elif const.size <= 64:
            key = (value.dtype, value.shape, const.tobytes())
        else:
            return value
        return self.constants.setdefault(key, value)

    def rule(self, op: Op) -> Sequence[Value] | None:
        if op.regions or op.traits.effect or op.traits.unique:
            return None
        result = op.results[0]
        key = (
            op.name,
            tuple(map(id, op.operands)),
            result.dtype,
            result.shape,
            _frozen(op.attrs),
            op.source.options,
            op.source.placed,
        )
        earlier = self.seen.setdefault(key, op.results)
        return None if earlier is op.results else earlier


def _frozen(attrs: dict[str, Any]) -> Any:
    """A key for attributes; ones that cannot be compared by value are compared by identity."""
    if not attrs:
        return ()
    return tuple(
        (name, item if isinstance(item, (str, int, float, bool, tuple)) else id(item))
        for name, item in attrs.items()
    )
