"""Makes dtypes legal: small unsigned 64-bit numbers become 32-bit, other types are refused.

jax.random counts the elements of an array in 64 bits and splits the count into two words:
Before:  %1: ui64 = iota()                                  After:  %1: ui32 = iota()
         %2: ui64 = shift_right_logical(%1, 32:ui64)                %3: ui32 = convert(%1)
         %3: ui32 = convert(%1)                                     %4: ui32 = convert(0)
         %4: ui32 = convert(%2)
This is valid if no number can reach 2**32, which the largest value of each op proves. Remaining
64-bit values are refused, unless `ipu_x64` says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ipujax.compiler.dtypes import DTYPES, TOKEN, refusal_of
from ipujax.compiler.ir import (
    Block,
    Op,
    Program,
    Rewriter,
    Value,
    converted,
    number,
    number_of,
    walk_blocks,
    walk_ops,
)
from ipujax.errors import UnsupportedDtypeError

_WORD = 1 << 32


def narrow(program: Program) -> Program:
    """Rewrites the program.

    Raises:
        UnsupportedDtypeError: names each op that computes in a type an IPU does not have.
    """
    if any(value.dtype == "ui64" for op in walk_ops(program.main) for value in op.results):
        _Narrower().program(program)
    illegal = _illegal_values(program.main, program.options.program.x64)
    if illegal:
        raise _refusal(illegal)
    return program


def _illegal_values(block: Block, x64: str) -> dict[Value, Op | None]:
    """Each value of an illegal type with the op that makes it, or that takes it as a constant."""
    found: dict[Value, Op | None] = {}
    legal = {name for name, row in DTYPES.items() if x64 != "error" or not row.wide} | {TOKEN}

    for inner in walk_blocks(block):
        for value in inner.args:
            if value.dtype not in legal:
                found[value] = None
        for op in inner.ops:
            for value in op.operands:
                # Ops without a rule are refused by name, whatever their constants are.
                if value.const is not None and value.dtype not in legal and not op.traits.refused:
                    found.setdefault(value, op)
            for value in op.results:
                if value.dtype not in legal:
                    found[value] = op
        for value in inner.results:
            if value.dtype not in legal:
                found.setdefault(value, None)
    return found


class _Narrower(Rewriter):
    """Narrows values that are known to fit to 32 bits, in place; ops that need 64 bits get them
    widened again.
    """

    outer_first = True

    def __init__(self) -> None:
        super().__init__()
        self.largest: dict[Value, int] = {}  #: the largest number of each narrowed value

    def rule(self, op: Op) -> Sequence[Value] | None:
        replacement = self._narrowed(op)
        if replacement is None and not self._takes_narrow(op):
            op.operands = [self._wide(value) for value in op.operands]
        return replacement

    def results(self, block: Block) -> list[Value]:
        return [self._wide(value) for value in super().results(block)]

    def _takes_narrow(self, op: Op) -> bool:
        """Whether the op accepts narrowed operands; narrows its constants if needed."""
        if op.name == "convert" or (op.results and op.results[0] in self.largest):
            return True
        if op.name != "compare" or any(self._top(value) is None for value in op.operands):
            return False
        op.operands = [self._narrow_constant(value) for value in op.operands]
        return True

    def _wide(self, value: Value) -> Value:
        """The number in 64 bits, if `value` was narrowed."""
        return self.op("convert", [value], dtype="ui64") if value in self.largest else value

    def _top(self, value: Value) -> int | None:
        """The largest possible value, if it is known to fit 32 bits; else None."""
        if value.dtype == "ui64" and value.const is not None and value.const.size:
            top = int(value.const.max())
            return top if top < _WORD else None
        return self.largest.get(value)

    def _narrow_constant(self, value: Value) -> Value:
        if value.const is None or value.dtype != "ui64":
            return value
        return converted(value, "ui32", lambda const: const.astype(np.uint32))

    def _narrowed(self, op: Op) -> list[Value] | None:
        """Narrows the op if it is known to fit; may return a value that replaces its result."""
        result = op.results[0] if op.results else None
        if result is None or (result.dtype != "ui64" and op.name != "convert"):
            return None
        if op.name == "convert":
            return (
                op.operands if op.operands[0] in self.largest and result.dtype == "ui64" else None
            )
        top = self._largest_of(op)
        if top is None or top >= _WORD:
            return None
        if top == 0 and op.name == "shift_right_logical":
            zero = number(0, result.shape, "ui32")
            self.largest[zero] = 0
            return [zero]
        op.operands = [self._narrow_constant(value) for value in op.operands]
        result.dtype = "ui32"
        self.largest[result] = top
        return None

    def _largest_of(self, op: Op) -> int | None:
        # The other operands of a dynamic slice are its starts, of 32 bits.
        values = op.operands[:1] if op.name == "dynamic_slice" else op.operands
        tops = [self._top(value) for value in values]
        if any(top is None for top in tops):
            return None
        known = [top for top in tops if top is not None]
        if op.name == "iota":
            return max(0, op.results[0].shape[op.attrs["iota_dimension"]] - 1)
        if op.traits.view or op.name == "dynamic_slice":
            return known[0]
        if op.name == "add":
            return known[0] + known[1]
        if op.name == "minimum":
            return min(known)
        if op.name == "multiply":
            return known[0] * known[1]
        if op.name == "shift_right_logical" and number_of(op.operands[1]) is not None:
            return known[0] >> known[1]
        return None


def _refusal(illegal: dict[Value, Op | None]) -> UnsupportedDtypeError:
    lines: dict[str, None] = {}
    for value, op in illegal.items():
        where = f" (at {op.source.line})" if op is not None and op.source.line else ""
        name = op.name if op is not None else "an argument or result"
        lines[f"  {name} in {value.dtype}{where}"] = None
    known = ", ".join(row.jax_name for row in DTYPES.values() if not row.wide)
    reasons = dict.fromkeys(f"{v.dtype}: {refusal_of(v.dtype)}" for v in illegal)
    return UnsupportedDtypeError(
        f"[normalise] needs dtypes that IPUs support ({known}); got {len(lines)} uses of "
        "others:\n" + "\n".join(lines) + "\n" + "; ".join(reasons) + "."
    )
