"""Computes equal things once.

Before:  %1 = exponential(%0)     After:  %1 = exponential(%0)
         %2 = exponential(%0)             %3 = add(%1, %1)
         %3 = add(%1, %2)
Values behind an optimization_barrier are different values, so what jax.remat recomputes stays
apart.
"""

from __future__ import annotations

from typing import Any

from ipujax.compiler.ir import Block, Program, Value
from ipujax.compiler.passes.effects import EFFECTS

#: Barriers keep values apart on purpose.
_NEVER = EFFECTS | {"optimization_barrier", "create_token", "after_all"}


def share(program: Program) -> Program:
    """Replaces each op by an earlier equal one of its own or a surrounding block."""
    _share_in(program.main, {}, {}, {})
    return program


def _share_in(
    block: Block,
    seen: dict[Any, list[Value]],
    constants: dict[Any, Value],
    replaced: dict[Value, Value],
) -> None:
    kept = []
    for op in block.ops:
        op.operands = [_canonical(value, constants, replaced) for value in op.operands]
        if op.regions or op.name in _NEVER:
            for region in op.regions:
                _share_in(region, dict(seen), constants, replaced)
            kept.append(op)
            continue
        result = op.results[0]
        key = (
            op.name,
            tuple(map(id, op.operands)),
            result.dtype,
            result.shape,
            _frozen(op.attrs),
            op.source.options,
        )
        earlier = seen.get(key)
        if earlier is None:
            seen[key] = op.results
            kept.append(op)
        else:
            replaced.update(zip(op.results, earlier, strict=True))
    block.ops = kept
    block.results = [_canonical(value, constants, replaced) for value in block.results]


def _canonical(value: Value, constants: dict[Any, Value], replaced: dict[Value, Value]) -> Value:
    const = value.const
    if const is None:
        return replaced.get(value, value)
    if value.is_splat and const.size:
        key: Any = (value.dtype, value.shape, const.flat[0].tobytes())
    elif const.size <= 64:
        key = (value.dtype, value.shape, const.tobytes())
    else:
        return value
    return constants.setdefault(key, value)


def _frozen(attrs: dict[str, Any]) -> Any:
    """A key for attributes; ones that cannot be compared by value are compared by identity."""
    if not attrs:
        return ()
    return tuple(
        (name, item if isinstance(item, (str, int, float, bool, tuple)) else id(item))
        for name, item in attrs.items()
    )
