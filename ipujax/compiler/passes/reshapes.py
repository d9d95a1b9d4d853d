"""Moves reshapes below elementwise ops, so that chains that change their shape can fuse.

Before:  %1: 8x1 = add(%0, 1)                After:  %1: 8x1 = add(%0, 1)
         %2: 8 = reshape(%1)                         %2: 8x1 = tanh(%1)
         %3: 8 = tanh(%2)                            %3: 8 = reshape(%2)
"""

from __future__ import annotations

from ipujax.compiler.ir import Block, Op, Program, Shape, Value, constant, splat
from ipujax.compiler.rules.elementwise import ELEMENTWISE


def sink_reshapes(program: Program) -> Program:
    """Rewrites all blocks; what is left of reshapes without users is dropped later."""
    _sink_in(program.main, {})
    return program


def _sink_in(block: Block, replaced: dict[Value, Value]) -> None:
    kept: list[Op] = []
    for op in block.ops:
        if replaced:
            op.operands = [replaced.get(value, value) for value in op.operands]
        for region in op.regions:
            _sink_in(region, replaced)
        kept.append(op)
        shape = _source_shape(op) if op.name in ELEMENTWISE else None
        if shape is None:
            if op.name == "reshape":
                _join(op)
            continue
        result = op.results[0]
        op.operands = [_seen_as(value, result.shape, shape) for value in op.operands]
        op.results = []
        inner = op.add_result(shape, result.dtype)
        back = Op("reshape", [inner], {}, op.source)
        replaced[result] = back.add_result(result.shape, result.dtype)
        kept.append(back)
    block.ops = kept
    if replaced:
        block.results = [replaced.get(value, value) for value in block.results]


def _join(op: Op) -> None:
    """A reshape of a reshape looks at what the first one does."""
    producer = op.operands[0].op
    if producer is not None and producer.name == "reshape":
        op.operands = producer.operands


def _source_shape(op: Op) -> Shape | None:
    """The one shape that all operands are reshaped from; constants fit any shape."""
    found: Shape | None = None
    own = op.results[0].shape
    for value in op.operands:
        if value.const is not None:
            continue
        if value.shape != own or value.op is None or value.op.name != "reshape":
            return None
        source = value.op.operands[0].shape
        if found is not None and source != found:
            return None
        found = source
    return found if found != own else None


def _seen_as(value: Value, own: Shape, shape: Shape) -> Value:
    """An operand of an op on `own`, for the op on `shape`."""
    if value.const is None:
        assert value.op is not None
        return value.op.operands[0]
    if value.shape != own:
        return value  # a scalar predicate or bound
    if value.is_splat:
        return splat(value.const.flat[0:1], shape, value.dtype)
    return constant(value.const.reshape(shape), value.dtype)
