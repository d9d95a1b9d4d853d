"""Ends the program if an operation raises an enabled floating-point exception.

Before:  %1 = log(%0)      After:  %1 = log(%0)
                                   %2 = compare(%1, inf) ... and(is_finite(%0)) ...
                                   %3 = reduce(%2) {or}
                                   raise_if(%3) {message="... div0 ... train.py:31"}
An IPU raises such exceptions from its arithmetic and names a tile; here the program looks at the
results instead and names the line. `inv`: a result is NaN. `div0`: finite operands gave infinity at
a pole. `oflo`: finite operands gave infinity otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.dtypes import FLOATS
from ipujax.compiler.ir import Op, Program, Rewriter, Term, Value, combiner
from ipujax.compiler.rules.registry import COMPUTING_CALLS

#: Poles of x / 0, log 0 and the like: op -> index of an operand, and its value at the pole.
POLES = {
    "divide": (1, 0.0),
    "log": (0, 0.0),
    "log_plus_one": (0, -1.0),
    "rsqrt": (0, 0.0),
    "power": (0, 0.0),
}
_MEANING = {
    "inv": "an invalid operation: a result is not a number",
    "div0": "a division by zero",
    "oflo": "an overflow: a finite result was too large",
}


def add_checks(program: Program) -> Program:
    """Adds the checks to every block that is run, not to functions of single elements."""
    return _Checker().program(program)


class _Checker(Rewriter):
    """Writes an op's checks after it."""

    def regions(self, op: Op) -> None:
        if op.traits.control_flow:
            super().regions(op)

    def rule(self, op: Op) -> Sequence[Value] | None:
        kinds = self.options.of(op).floating_point_exceptions
        if not kinds or _hands_on(op):
            return None
        self.ops.append(op)
        for result in op.results:
            if result.dtype in FLOATS:
                self._check(op, result, kinds.split(","))
        return op.results

    def _check(self, op: Op, result: Value, kinds: list[str]) -> None:
        term = self.term(result)
        if "inv" in kinds:
            self._raise_if(op, "inv", term.is_nan())
        if not {"div0", "oflo"} & set(kinds):
            return
        infinite = term.is_infinite()
        operands = [value for value in op.operands if value.dtype in FLOATS]
        combines = op.traits.combines and op.traits.collective
        together = not combines and all(value.shape == result.shape for value in operands)
        if not together:
            infinite = self._reduce(infinite, "or", False)
        for value in operands:
            finite = self.term(value).is_finite()
            if not together:
                finite = self._reduce(finite, "and", True)
            if combines:
                finite = self._on_all_replicas(op, finite)
            infinite = infinite & finite
        if op.name in POLES:
            index, where = POLES[op.name]
            at_pole = self.term(op.operands[index]).eq(where)
            if "div0" in kinds:
                self._raise_if(op, "div0", infinite & at_pole)
            infinite = infinite & ~at_pole
        if "oflo" in kinds:
            self._raise_if(op, "oflo", infinite)

    def _reduce(self, flags: Term, name: str, start: bool) -> Term:
        dims = range(len(flags.value.shape))
        return self.term(self.reduce(flags.value, dims, name, start))

    def _on_all_replicas(self, op: Op, flag: Term) -> Term:
        """Whether the flag is true on all replicas that the op combines."""
        attrs = {name: x for name, x in op.attrs.items() if name != "scatter_dimension"}
        regions = [combiner("and", "i1", self.source)]
        return self.term(self.op("all_reduce", [flag.value], attrs, shape=(), regions=regions))

    def _raise_if(self, op: Op, kind: str, flags: Term) -> None:
        flag = self._reduce(flags, "or", False).value
        source = op.source
        where = f"{source.name or op.name} {source.line}".strip()
        message = (
            f"[floating point] needs operations without {kind}; got {_MEANING[kind]} in "
            f"{op.name} of {where}. Check its operands, or remove {kind} from "
            "floating_point_exceptions."
        )
        self.ops.append(Op("raise_if", [flag], {"message": message}, source))


def _hands_on(op: Op) -> bool:
    """Whether infinities in its results are expected, since it does not compute its elements."""
    traits = op.traits
    if traits.combines and traits.collective:
        return all(inner.traits.moves or inner.traits.chooses for inner in op.regions[0].ops)
    if op.name == "custom_call":
        return op.attrs["call_target_name"] not in COMPUTING_CALLS
    return traits.moves or traits.chooses
