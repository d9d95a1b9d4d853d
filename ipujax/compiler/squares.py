"""Sums of squares are reductions that square what they read, where it is in memory anyway.

Before:  %1, %2 = fused(%0) {body=[negate, multiply]}   After:  %1 = fused(%0) {body=[negate]}
         %3 = reduce(%2) {add}                                  %3 = reduce(%1) {add, squares}
"""

from __future__ import annotations

from collections import Counter

from ipujax.compiler.ir import Block, Op, Value, inputs_of
from ipujax.compiler.passes.wide_sums import is_sum

_VIEWS = frozenset({"reshape", "transpose"})


def square_in_sums(block: Block) -> None:
    """After fusion: the squares alone would be written and read once more.

    In float32, from float32 or float16. A value that only its fused op knows stays there.
    """
    uses = Counter(value for op in block.ops for value in inputs_of(op))
    uses.update(block.results)
    for op in block.ops:
        if is_sum(op):
            _read_squared(op, uses)
    block.ops = [op for op in block.ops if op.name != "fused" or op.attrs["body"]]


def _read_squared(reduce: Op, uses: Counter[Value]) -> None:
    """Also through views of the squares that nothing else reads."""
    reader, squared, views = reduce, reduce.operands[0], []
    while uses[squared] == 1 and squared.op is not None and squared.op.name in _VIEWS:
        reader = squared.op
        views.append(reader)
        squared = reader.operands[0]
    fused = squared.op
    if uses[squared] != 1 or fused is None or fused.name != "fused":
        return
    source = _squared(squared, fused)
    if source is None:
        return
    reader.operands[0] = source
    for view in views:
        view.results[0].dtype = source.dtype
    reduce.attrs["squares"] = True
    _remove(squared, fused)


def _squared(value: Value, fused: Op) -> Value | None:
    """What a value of a fused op is the square of, if the reduction can read it."""
    body = fused.attrs["body"]
    made = {op.results[0]: op for op in body}
    square = made[value]
    if square.name != "multiply" or square.operands[0] is not square.operands[1]:
        return None
    if any(value in op.operands for op in body):
        return None
    factor = square.operands[0]
    producer = made.get(factor)
    if producer is not None and producer.name == "convert" and factor not in fused.results:
        factor = producer.operands[0]
        if factor.dtype != "f16":
            return None
    is_there = factor in fused.results or factor not in made
    return factor if is_there and factor.const is None else None


def _remove(value: Value, fused: Op) -> None:
    """A result, and all ops of the body that only it needs."""
    fused.results = [each for each in fused.results if each is not value]
    kept: list[Op] = []
    needed = set(fused.results)
    for op in reversed(fused.attrs["body"]):
        if op.results[0] in needed:
            kept.append(op)
            needed.update(op.operands)
    fused.attrs["body"] = kept[::-1]
    inside = {op.results[0] for op in kept}
    fused.operands = list(
        dict.fromkeys(
            each
            for op in fused.attrs["body"]
            for each in op.operands
            if each not in inside and not each.is_splat
        )
    )
    for index, each in enumerate(fused.results):
        each.index = index
