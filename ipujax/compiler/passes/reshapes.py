"""Moves reshapes below elementwise ops and barriers, so that chains which change shape can fuse.

Before:  %1: 8x1 = add(%0, 1)                After:  %1: 8x1 = add(%0, 1)
         %2: 8 = reshape(%1)                         %2: 8x1 = tanh(%1)
         %3: 8 = tanh(%2)                            %3: 8 = reshape(%2)
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, Program, Rewriter, Shape, Value
from ipujax.compiler.simplifiers.shapes import reshaped


def sink_reshapes(program: Program) -> Program:
    """Rewrites all blocks; reshapes without users are dropped later."""
    return _Sinker().program(program)


class _Sinker(Rewriter):
    def rule(self, op: Op) -> Sequence[Value] | None:
        if op.name == "reshape":
            # A reshape of a reshape reads the first one's operand.
            producer = op.operands[0].op
            if producer is not None and producer.name == "reshape":
                op.operands = producer.operands
            return None
        if op.name == "optimization_barrier":
            return self._barrier(op)
        shape = _source_shape(op) if op.traits.elementwise else None
        if shape is None:
            return None
        result = op.results[0]
        # A scalar predicate or bound stays.
        operands = [
            reshaped(self, value, shape) if value.shape == result.shape else value
            for value in op.operands
        ]
        inner = self.op(op.name, operands, op.attrs, shape=shape, dtype=result.dtype)
        return [self.reshape(inner, result.shape)]

    def _barrier(self, op: Op) -> Sequence[Value] | None:
        """Moves reshapes below, so that recomputed ops have them where the first ones had them."""
        sources = [
            value.op.operands[0] if value.op is not None and value.op.name == "reshape" else value
            for value in op.operands
        ]
        if sources == op.operands:
            return None
        barrier = Op(op.name, sources, op.attrs, op.source)
        self.ops.append(barrier)
        return [
            reshaped(self, barrier.add_result(source.shape, source.dtype), result.shape)
            for source, result in zip(sources, op.results, strict=True)
        ]


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
