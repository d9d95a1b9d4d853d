"""Computes 64-bit integers in 32 bits if all their possible values fit; for a Poplar SDK.

Before:  %c:2 = while(0, %x) {trip_count=10}    i64    After:  ... while(0, %x) {trip_count=10}  i32
                body { %1 = minimum(%c, 7)      i64                    %1 = minimum(%c, 7)       i32
                       %2 = convert(%1)         i32
                       return add(%c, 1), ...   i64                    return add(%c, 1), ...    i32
PopLibs copies and casts 64-bit integers and has no arithmetic on them. With x64 enabled JAX counts
loops and computes indices in them. The results are the same: an op is narrowed only if intervals,
known from constants, types and numbers of iterations, show that operands and result fit 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, Program, Rewriter, Value, Writer, converted, number_of
from ipujax.compiler.passes.loops import drop_dead

#: The least and the largest number that an element can be.
Interval: TypeAlias = tuple[int, int]

_WIDE = frozenset({"i64", "ui64"})
_NARROW = np.iinfo(np.int32)
_ARITHMETIC: dict[str, Callable[[Interval, Interval], list[int]]] = {
    "add": lambda a, b: [a[0] + b[0], a[1] + b[1]],
    "subtract": lambda a, b: [a[0] - b[1], a[1] - b[0]],
    "multiply": lambda a, b: [x * y for x in a for y in b],
    "minimum": lambda a, b: [min(a[0], b[0]), min(a[1], b[1])],
    "maximum": lambda a, b: [max(a[0], b[0]), max(a[1], b[1])],
}


def narrow_integers(program: Program) -> Program:
    """Rewrites ops on 64-bit integers whose values fit 32 bits; see the module."""
    return drop_dead(_Narrower().program(program))


def _fits(interval: Interval) -> bool:
    return _NARROW.min <= interval[0] and interval[1] <= _NARROW.max


class _Narrower(Rewriter):
    outer_first = True

    def __init__(self) -> None:
        super().__init__()
        #: For each 64-bit value, the same numbers in 32 bits.
        self.twins: dict[Value, Value] = {}
        self.intervals: dict[Value, Interval] = {}  #: of values of 32 bits, where known

    def rule(self, op: Op) -> Sequence[Value] | None:
        if op.name == "while" and "trip_count" in op.attrs:
            return self._counted(op)
        if op.name == "compare":
            self._take_twins(op)
        elif op.name == "convert":
            return self._convert(op)
        elif len(op.results) == 1 and op.results[0].dtype in _WIDE:
            return self._compute(op)
        return None

    def twin(self, value: Value) -> Value | None:
        """The same numbers in 32 bits; None if they may not fit."""
        if value.dtype not in _WIDE:
            return None
        if value not in self.twins and value.const is not None and value.const.size:
            interval = int(value.const.min()), int(value.const.max())
            if _fits(interval):
                narrow = converted(value, "i32", lambda wide: wide.astype(np.int32))
                self._remember(value, narrow, interval)
        return self.twins.get(value)

    def _remember(self, wide: Value, narrow: Value, interval: Interval) -> None:
        self.twins[wide], self.intervals[narrow] = narrow, interval

    def _interval(self, value: Value) -> Interval:
        """The interval of a value of 32 bits or fewer."""
        if value.dtype == "i1":
            return 0, 1
        info = np.iinfo(DTYPES[value.dtype].numpy)
        return self.intervals.get(value, (int(info.min), int(info.max)))

    def _wide(self, narrow: Value, interval: Interval, like: Value) -> Value:
        """The narrow value, widened for the rest of the program."""
        wide = self.op("convert", [narrow], shape=like.shape, dtype=like.dtype)
        self._remember(wide, narrow, interval)
        return wide

    def _take_twins(self, op: Op) -> bool:
        """Replaces 64-bit operands by their 32-bit twins, if all have one; returns whether."""
        wide = [value for value in op.operands if value.dtype in _WIDE]
        if not wide or any(self.twin(value) is None for value in wide):
            return False
        op.operands = [self.twin(value) or value for value in op.operands]
        return True

    def _convert(self, op: Op) -> Sequence[Value] | None:
        (value,), (result,) = op.operands, op.results
        if result in self.twins:  # made here
            return None
        twin = self.twin(value)
        if twin is not None:
            interval = self.intervals[twin]
            if result.dtype == "i32":
                return [twin]
            if result.dtype in _WIDE and (result.dtype == "i64" or interval[0] >= 0):
                return [self._wide(twin, interval, result)]
            if result.dtype not in _WIDE and not result.dtype.startswith("u"):
                op.operands = [twin]
            return None
        if result.dtype not in _WIDE or DTYPES[value.dtype].kind not in "iub":
            return None
        if value.dtype in _WIDE:
            return None
        interval = self._interval(value)
        if not _fits(interval) or (result.dtype == "ui64" and interval[0] < 0):
            return None
        narrow = value
        if value.dtype != "i32":
            narrow = self.op("convert", [value], shape=value.shape, dtype="i32")
        return [self._wide(narrow, interval, result)]

    def _compute(self, op: Op) -> Sequence[Value] | None:
        interval = self._interval_of(op)
        result = op.results[0]
        if interval is None or not _fits(interval):
            return None
        if result.dtype == "ui64" and interval[0] < 0:
            return None
        operands = [self.twin(value) or value for value in op.operands]
        narrow = self.op(op.name, operands, op.attrs, shape=result.shape, dtype="i32")
        return [self._wide(narrow, interval, result)]

    def _interval_of(self, op: Op) -> Interval | None:
        """The result's interval; None if an operand's interval or the op is not known."""
        if op.name == "iota":
            return 0, max(op.results[0].shape, default=1)
        values = op.operands[1:] if op.name == "select" else op.operands
        known = [self.intervals[twin] for value in values if (twin := self.twin(value)) is not None]
        if not known or len(known) < len(values):
            return None
        if op.name in _ARITHMETIC:
            ends = _ARITHMETIC[op.name](*known)
        elif op.traits.view or op.name in ("concatenate", "select"):
            ends = [end for interval in known for end in interval]
        else:
            return None
        return min(ends), max(ends)

    def _counted(self, op: Op) -> Sequence[Value] | None:
        """Makes the counters of a loop 32-bit numbers inside and after it."""
        cond, body = op.regions
        first, counters = Writer([], op.source), {}
        for index, value in enumerate(body.args):
            interval = _counts(op, index)
            if interval is None:
                continue
            counters[index] = interval
            inside = body.args[index] = Value((), "i32")
            cond.args[index] = Value((), "i32")
            wide = first.op("convert", [inside], shape=(), dtype=value.dtype)
            self._remember(wide, inside, (interval[0], max(interval[0], interval[1] - 1)))
            self.replaced[value] = wide
        if not counters:
            return None
        body.ops = [*first.ops, *body.ops]
        results, op.results = op.results, list(op.results)
        for index in counters:
            start = self.twin(op.operands[index])
            assert start is not None
            op.operands[index] = start
            op.results[index] = Value((), "i32", op, index)
        self.regions(op)
        for index in counters:
            counted = self.twin(body.results[index])
            assert counted is not None, body.results[index]
            body.results[index] = counted
        self.ops.append(op)
        return [
            self._wide(op.results[i], counters[i], result) if i in counters else result
            for i, result in enumerate(results)
        ]


def _counts(loop: Op, index: int) -> Interval | None:
    """The first and the last number of a carry that grows by one, if these fit 32 bits."""
    body = loop.regions[1]
    start, step = number_of(loop.operands[index]), body.results[index].op
    if body.args[index].dtype not in _WIDE or body.args[index].shape or start is None:
        return None
    if step is None or step.name != "add" or step.operands[0] is not body.args[index]:
        return None
    if number_of(step.operands[1]) != 1:
        return None
    interval = int(start), int(start) + int(loop.attrs["trip_count"])
    return interval if _fits(interval) else None
