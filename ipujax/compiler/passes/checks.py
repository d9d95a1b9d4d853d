"""Ends the program where an operation raises a floating-point exception that users asked for.

Before:  %1 = log(%0)      After:  %1 = log(%0)
                                   %2 = compare(%1, inf) ... and(is_finite(%0)) ...
                                   %3 = reduce(%2) {or}
                                   raise_if(%3) {message="... div0 ... train.py:31"}
An IPU raises such exceptions from its arithmetic and names a tile; here the program looks at the
results instead and names the line. `inv`: a result is NaN. `div0`: finite operands gave infinity at
a pole. `oflo`: finite operands gave infinity otherwise.
"""

from __future__ import annotations

import math

from ipujax.compiler.fuse import CONTROL_FLOW
from ipujax.compiler.ir import Block, Op, Program, Value, number
from ipujax.compiler.scopes import ScopedOptions

FLOATS = frozenset({"f16", "bf16", "f32"})
#: Where x / 0, log 0 and the like are infinite: op -> which operand is at its pole, and where.
POLES = {
    "divide": (1, 0.0),
    "log": (0, 0.0),
    "log_plus_one": (0, -1.0),
    "rsqrt": (0, 0.0),
    "power": (0, 0.0),
}
#: Ops that hand values on without computing: an infinity in their result is no news.
MOVES = frozenset(
    {
        "all_gather",
        "all_to_all",
        "broadcast_in_dim",
        "case",
        "clamp",
        "collective_broadcast",
        "collective_permute",
        "concatenate",
        "custom_call",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "if",
        "maximum",
        "minimum",
        "optimization_barrier",
        "pad",
        "reshape",
        "reverse",
        "select",
        "slice",
        "sort",
        "transpose",
        "while",
    }
)
#: Ops whose operands are on other replicas too.
COMBINES = frozenset({"all_reduce", "reduce_scatter"})
_MEANING = {
    "inv": "an invalid operation: a result is not a number",
    "div0": "a division by zero",
    "oflo": "an overflow: a finite result was too large",
}


def add_checks(program: Program, options: ScopedOptions) -> Program:
    """Adds the checks to every block that is run, not to functions of single elements."""
    _check_block(program.main, options)
    return program


def _check_block(block: Block, options: ScopedOptions) -> None:
    kept: list[Op] = []
    for op in block.ops:
        kept.append(op)
        if op.name in CONTROL_FLOW:
            for region in op.regions:
                _check_block(region, options)
        kinds = options.of(op).floating_point_exceptions
        if not kinds or _moves(op):
            continue
        for result in op.results:
            if result.dtype in FLOATS:
                _Checks(op, result, kept).add([kind.strip() for kind in kinds.split(",")])
    block.ops = kept


def _moves(op: Op) -> bool:
    if op.name in COMBINES:
        return all(inner.name in MOVES for inner in op.regions[0].ops)
    return op.name in MOVES


class _Checks:
    """Those of one result; new ops go to the end of `ops`."""

    def __init__(self, op: Op, result: Value, ops: list[Op]):
        self.op, self.result, self.ops = op, result, ops

    def add(self, kinds: list[str]) -> None:
        if "inv" in kinds:
            self._raise_if("inv", self._any(self._compare(self.result, self.result, "NE")))
        if not {"div0", "oflo"} & set(kinds):
            return
        size = self._op("abs", [self.result], self.result.dtype)
        infinite = self._compare(size, number(math.inf, self.result.shape, self.result.dtype), "EQ")
        operands = [value for value in self.op.operands if value.dtype in FLOATS]
        combines = self.op.name in COMBINES
        together = not combines and all(value.shape == self.result.shape for value in operands)
        if not together:
            infinite = self._any(infinite)
        for value in operands:
            finite = self._op("is_finite", [value], "i1")
            if not together:
                finite = self._all(finite)
            if combines:
                finite = self._on_all_replicas(finite)
            infinite = self._and(infinite, finite)
        if self.op.name in POLES:
            index, where = POLES[self.op.name]
            pole = self.op.operands[index]
            at_pole = self._compare(pole, number(where, pole.shape, pole.dtype), "EQ")
            if "div0" in kinds:
                self._raise_if("div0", self._any(self._and(infinite, at_pole)))
            infinite = self._and(infinite, self._op("not", [at_pole], "i1"))
        if "oflo" in kinds:
            self._raise_if("oflo", self._any(infinite))

    def _op(self, name: str, operands: list[Value], dtype: str, **attrs: str) -> Value:
        op = Op(name, operands, attrs, self.op.source)
        self.ops.append(op)
        return op.add_result(operands[0].shape, dtype)

    def _compare(self, a: Value, b: Value, direction: str) -> Value:
        attrs = {"comparison_direction": direction, "compare_type": "FLOAT"}
        return self._op("compare", [a, b], "i1", **attrs)

    def _and(self, a: Value, b: Value) -> Value:
        return self._op("and", [a, b], "i1")

    def _any(self, flags: Value) -> Value:
        return self._reduce(flags, "or", False)

    def _all(self, flags: Value) -> Value:
        return self._reduce(flags, "and", True)

    def _reduce(self, flags: Value, name: str, start: bool) -> Value:
        if not flags.shape:
            return flags
        attrs = {"dimensions": tuple(range(len(flags.shape)))}
        initial = number(start, (), "i1")
        op = Op("reduce", [flags, initial], attrs, self.op.source, [self._body(name)])
        self.ops.append(op)
        return op.add_result((), "i1")

    def _on_all_replicas(self, flag: Value) -> Value:
        """Whether it holds on all replicas that the op joins."""
        attrs = {name: x for name, x in self.op.attrs.items() if name != "scatter_dimension"}
        op = Op("all_reduce", [flag], attrs, self.op.source, [self._body("and")])
        self.ops.append(op)
        return op.add_result((), "i1")

    def _body(self, name: str) -> Block:
        body = Block(args=[Value((), "i1"), Value((), "i1")])
        combine = Op(name, list(body.args), {}, self.op.source)
        body.results = [combine.add_result((), "i1")]
        body.ops = [combine]
        return body

    def _raise_if(self, kind: str, flag: Value) -> None:
        source = self.op.source
        where = f"{source.name or self.op.name} {source.line}".strip()
        message = (
            f"[floating point] needs operations without {kind}; got {_MEANING[kind]} in "
            f"{self.op.name} of {where}. Check its operands, or remove {kind} from "
            "floating_point_exceptions."
        )
        self.ops.append(Op("raise_if", [flag], {"message": message}, source))
