"""The one pattern rewriter: a walk over a program that rewrites each block, op by op."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ipujax.compiler.ir.program import NO_SOURCE, Block, Op, Program, Seen, Value
from ipujax.compiler.ir.writer import Writer
from ipujax.errors import UnsupportedOpError
from ipujax.types import BY_STABLEHLO

#: (rewriter, op) -> the values that replace the op's results; None: the op stays.
Rule = Callable[[Any, Op], Sequence[Value] | None]


class Rewriter(Writer):
    """Visits every op once, after its operands were replaced, and applies the rule of its name.

    A rule may change the op in place, and write ops with the rewriter itself: they come before the
    op. An op that it appends to `ops` and whose results it returns stays, and ops that the rule
    writes afterwards come after it. Ops that a rule writes are not visited: one walk, no fixed
    point. Regions are visited before their op's rule or, with `outer_first`, after it if the op
    stayed. A pass is a table of rules; one that needs state is a subclass.
    """

    rules: ClassVar[Mapping[str, Rule]] = {}
    outer_first: ClassVar[bool] = False

    def __init__(self, rules: Mapping[str, Rule] | None = None) -> None:
        super().__init__([])
        self.replaced: dict[Value, Value] = {}
        made = type(self)
        self._is_plain = made.now is Rewriter.now  #: if so, no call for each value
        #: If so, ops without a row in the table are not visited.
        self._is_table = (
            self._is_plain and made.rule is Rewriter.rule and made.visit is Rewriter.visit
        )
        if rules is not None:
            self.rules = rules  # type: ignore[misc]

    def program(self, program: Program) -> Program:
        self.options = program.options
        self.block(program.main)
        return program

    def block(self, block: Block) -> None:
        outer, self.ops = self.ops, []
        if self._is_table:
            self._apply_table(block)
        else:
            for op in block.ops:
                self.visit(op)
        self.source = NO_SOURCE
        block.results = self.results(block)
        block.ops, self.ops = self.ops, outer

    def _apply_table(self, block: Block) -> None:
        rules, replaced, written = self.rules, self.replaced, self.ops
        for op in block.ops:
            if op.regions or op.name in rules:
                self.visit(op)
                continue
            if replaced:
                for value in op.operands:
                    if value in replaced:
                        op.operands = [replaced.get(value, value) for value in op.operands]
                        break
            written.append(op)

    def now(self, value: Value) -> Value:
        """The value that replaces a value of the old program."""
        return self.replaced.get(value, value)

    def results(self, block: Block) -> list[Value]:
        """The results of the rewritten block."""
        return [self.now(value) for value in block.results]

    def visit(self, op: Op) -> None:
        replaced = self.replaced
        if not self._is_plain:
            op.operands = [self.now(value) for value in op.operands]
        elif replaced:
            op.operands = [replaced.get(value, value) for value in op.operands]
        if op.regions and not self.outer_first:
            self.regions(op)
        self.source, results = op.source, op.results
        values = self.rule(op)
        if values is None:
            if op.regions and self.outer_first:
                self.regions(op)
            self.ops.append(op)
            return
        for old, new in zip(results, values, strict=True):
            if new is not old:
                self.replaced[old] = new

    def rule(self, op: Op) -> Sequence[Value] | None:
        rule = self.rules.get(op.name)
        return rule(self, op) if rule is not None else None

    def regions(self, op: Op) -> None:
        for region in op.regions:
            self.block(region)


def _before_host(value: Value) -> Value:
    """The value on the device, if it is put on the host at the end of the program.

    The callers' form is computed from it, and then put on the host (`result_memories`).
    """
    while value.op is not None and value.op.name == "to_host":
        value = value.op.operands[0]
    return value


class Legaliser(Rewriter, ABC):
    """Changes how values of some types are held; callers and Python see them as before."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[tuple[str, str, str]] = []

    @abstractmethod
    def enters(self, value: Value) -> Value:
        """Converts the value from the callers' form."""

    @abstractmethod
    def leaves(self, value: Value) -> Value:
        """Converts the value to the callers' form."""

    @abstractmethod
    def illegal_dtype(self, value: Value) -> str:
        """The dtype that the value had, if it was one of these types; else ""."""

    @abstractmethod
    def seen(self, value: Value) -> Seen | None:
        """How callers see a value that the program holds in another form even at its boundary."""

    def program(self, program: Program) -> Program:
        main = program.main
        for values, known in (
            (main.args, program.seen_arguments),
            (main.results, program.seen_results),
        ):
            for index, value in enumerate(values):
                seen = self.seen(value)
                if seen is not None:
                    known.setdefault(index, seen)
        main.args = [self.enters(value) for value in main.args]
        entry, results, main.results = self.ops, main.results, []
        self.block(main)
        self.ops = main.ops = entry + main.ops
        main.results = [self.leaves(_before_host(value)) for value in results]
        if self.refused:
            raise UnsupportedOpError(self.refused)
        return program

    def refuse(self, op: Op, reason: str) -> None:
        """Notes the op; the program is refused when all such ops are known."""
        dtypes = (self.illegal_dtype(value) for value in (*op.operands, *op.results))
        dtype = next(filter(None, dtypes))
        self.refused.append(
            (f"{op.shown_name} in {BY_STABLEHLO[dtype].name}", reason, op.source.line)
        )

    def callback(self, op: Op) -> None:
        """Converts for Python functions, which take and return arrays in the callers' form."""
        op.operands = [self.leaves(value) for value in op.operands]
        self.ops.append(op)
        op.results = [self.enters(value) for value in op.results]
