"""Makes sums read values that are in memory: float16 unconverted, and the operands of squares.

Before:  %1, %2, %3 = fused(%0) {body=[convert, sine, multiply]}   After:  %2 = fused(%0) {...}
         %4 = reduce(%1) {add}                                             %4 = reduce(%0) {add}
         %5 = reduce(%3) {add}                                             %5 = reduce(%2) {add,
                                                                               squares}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ipujax.compiler.ir import Block, Op, Value, inputs_of
from ipujax.compiler.passes.wide_sums import is_sum


def read_what_is_there(block: Block) -> None:
    """Rewrites sums after fusion, when it is known which values are written to memory.

    Sums are in float32, of float32 or float16. Values that only exist in a fused op stay there.
    """
    for squares, find in ((False, _narrow), (True, _squared)):
        uses = Counter(value for op in block.ops for value in inputs_of(op))
        uses.update(block.results)
        changed, ops = False, []
        for op in block.ops:
            views = _reread(op, find, uses if squares else None) if _is_plain_sum(op) else None
            if views is not None:
                op.attrs["squares"] = squares
                changed = True
                ops += views
            ops.append(op)
        if changed:
            block.ops = ops
            _prune(block)
    _convert_where_read(block)


def _is_plain_sum(op: Op) -> bool:
    return is_sum(op) and not op.attrs.get("squares")


def _reread(
    reduce: Op, find: Callable[[Value, Op], Value | None], uses: Counter[Value] | None
) -> list[Op] | None:
    """Views of another value for the reduction to read; None: it reads the same as before.

    With `uses`, only if nothing else reads the value that it read before.
    """
    value, views = reduce.operands[0], []
    while value.op is not None and value.op.traits.permutes:
        views.append(value.op)
        value = value.op.operands[0]
    fused = value.op
    if fused is None or fused.name != "fused":
        return None
    if uses is not None and any(uses[each] != 1 for view in views for each in view.results):
        return None
    if uses is not None and uses[value] != 1:
        return None
    source = find(value, fused)
    if source is None:
        return None
    made = []
    for view in reversed(views):
        again = Op(view.name, [source], view.attrs, view.source)
        again.ipu = view.ipu
        (old,) = view.results
        source = again.add_result(old.shape, source.dtype)
        source.ipu = old.ipu
        made.append(again)
    reduce.operands[0] = source
    return made


def _narrow(value: Value, fused: Op) -> Value | None:
    """The float16 value that a fused op converts to the value, if it is in memory."""
    made = {op.results[0]: op for op in fused.attrs["body"]}
    if made[value].name != "convert":
        return None
    (given,) = made[value].operands
    return given if given.dtype == "f16" and _is_there(given, fused, made) else None


def _squared(value: Value, fused: Op) -> Value | None:
    """The value that a fused op squares to get this one, if it is in memory.

    None for squares that are rounded to float16: the sum would add them unrounded.
    """
    body = fused.attrs["body"]
    made = {op.results[0]: op for op in body}
    square = made[value]
    if value.dtype != "f32":
        return None
    if square.name != "multiply" or square.operands[0] is not square.operands[1]:
        return None
    if any(value in op.operands for op in body):
        return None
    factor = square.operands[0]
    narrow = _narrow(factor, fused) if factor in made else None
    if narrow is not None:
        return narrow
    return factor if _is_there(factor, fused, made) else None


def _is_there(value: Value, fused: Op, made: dict[Value, Op]) -> bool:
    return value.const is None and (value in fused.results or value not in made)


def _convert_where_read(block: Block) -> None:
    """Converts float16 values that only fused ops read as float32 there, not in memory."""
    readers: dict[Value, list[Op]] = {}
    for op in block.ops:
        for value in inputs_of(op):
            readers.setdefault(value, []).append(op)
    removed: set[Op] = set()
    for op in block.ops:
        body: list[Op] = op.attrs["body"] if op.name == "fused" else []
        if len(body) != 1 or body[0].name != "convert" or body[0].operands[0].dtype != "f16":
            continue
        (wide,), (given,) = op.results, body[0].operands
        others = readers.get(wide, [])
        if wide in block.results or not all(_may_convert(op, other) for other in others):
            continue
        for other in dict.fromkeys(others):
            _convert_in(other, body[0], wide, given)
        removed.add(op)
    block.ops = [op for op in block.ops if op not in removed]


def _may_convert(conversion: Op, reader: Op) -> bool:
    return reader.name == "fused" and reader.ipu == conversion.ipu


def _convert_in(reader: Op, conversion: Op, wide: Value, given: Value) -> None:
    again = Op("convert", [given], conversion.attrs, conversion.source)
    again.ipu = conversion.ipu
    value = again.add_result(wide.shape, wide.dtype)
    value.ipu = wide.ipu
    for op in reader.attrs["body"]:
        op.operands = [value if each is wide else each for each in op.operands]
    reader.attrs["body"] = [again, *reader.attrs["body"]]
    operands = [given if each is wide else each for each in reader.operands]
    reader.operands = list(dict.fromkeys(operands))


def _prune(block: Block) -> None:
    """Drops views, and results of fused ops, that nothing reads."""
    needed, kept = set(block.results), []
    for op in reversed(block.ops):
        if op.name == "fused":
            _keep_results(op, needed)
        may_go = op.traits.permutes or op.name == "fused"
        if may_go and not any(value in needed for value in op.results):
            continue
        kept.append(op)
        needed.update(inputs_of(op))
    block.ops = kept[::-1]


def _keep_results(fused: Op, wanted: set[Value]) -> None:
    """Removes the other results, and all ops of the body that only they need."""
    if all(value in wanted for value in fused.results):
        return
    fused.results = [value for value in fused.results if value in wanted]
    kept: list[Op] = []
    needed = set(fused.results)
    for op in reversed(fused.attrs["body"]):
        if op.results[0] in needed:
            kept.append(op)
            needed.update(op.operands)
    body = fused.attrs["body"] = kept[::-1]
    inside = {op.results[0] for op in body}
    fused.operands = list(
        dict.fromkeys(
            value
            for op in body
            for value in op.operands
            if value not in inside and not value.is_splat
        )
    )
    for index, value in enumerate(fused.results):
        value.index = index
