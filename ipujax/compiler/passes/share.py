"""Computes equal values once.

Before:  %1 = exponential(%0)     After:  %1 = exponential(%0)
         %2 = exponential(%0)             %3 = add(%1, %1)
         %3 = add(%1, %2)
Values after an optimization_barrier are different values, so ops that jax.remat recomputes stay
apart. Ops with regions are equal if their regions are, as in two equal reductions; loops and
branches always stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.elements import first
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
            key: Any = (value.dtype, value.shape, first(const).tobytes())
        elif const.size <= 64:
            key = (value.dtype, value.shape, const.tobytes())
        else:
            return value
        return self.constants.setdefault(key, value)

    def rule(self, op: Op) -> Sequence[Value] | None:
        key = self._key(op, {})
        if key is None:
            return None
        earlier = self.seen.setdefault(key, op.results)
        return None if earlier is op.results else earlier

    def _key(self, op: Op, local: dict[Value, int]) -> Any:
        """A key that equal ops share; None if the op always stays.

        `local` numbers the values of the regions that contain the op.
        """
        traits = op.traits
        if traits.effect or traits.unique or traits.control_flow:
            return None
        regions = tuple(self._region_key(region, dict(local)) for region in op.regions)
        if None in regions:
            return None
        return (
            op.name,
            self._operands(op.operands, local),
            tuple((result.dtype, result.shape) for result in op.results),
            _frozen(op.attrs),
            op.source.options,
            op.source.placed,
            regions,
        )

    def _operands(self, values: Sequence[Value], local: dict[Value, int]) -> tuple[Any, ...]:
        return tuple(
            ("local", local[value]) if value in local else id(self.now(value)) for value in values
        )

    def _region_key(self, block: Block, local: dict[Value, int]) -> Any:
        for arg in block.args:
            local[arg] = len(local)
        keys = []
        for op in block.ops:
            key = self._key(op, local)
            if key is None:
                return None
            keys.append(key)
            for result in op.results:
                local[result] = len(local)
        types = tuple((arg.dtype, arg.shape) for arg in block.args)
        return types, tuple(keys), self._operands(block.results, local)


def _frozen(attrs: dict[str, Any]) -> Any:
    """A key for attributes; ones that cannot be compared by value are compared by identity."""
    if not attrs:
        return ()
    return tuple(
        (name, item if isinstance(item, (str, int, float, bool, tuple)) else id(item))
        for name, item in attrs.items()
    )
