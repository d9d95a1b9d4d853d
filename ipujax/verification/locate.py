"""Finds the first op of a program whose results differ, and the smallest piece that shows it.

Comparing intermediate values is not enough: errors add up, and requesting a value changes fusion.
So every suspect is run alone, with equal inputs on both sides; if no op is wrong alone, larger and
larger pieces are run. Loops and branches are searched with the values that they had in the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ipujax import jax_compat
from ipujax.compiler.sources import Sources
from ipujax.errors import IpuError
from ipujax.verification import slices
from ipujax.verification.compare import difference

Run = Callable[[bytes, Sequence[np.ndarray]], list[Any]]
Environment = dict[Any, np.ndarray]

#: Largest numbers of loop iterations searched, ops run alone, ops tried as the end of a larger
#: piece, and attempts to make that piece smaller.
MAX_ITERATIONS, MAX_SUSPECTS, MAX_ENDS, MAX_TRIES = 32, 64, 32, 40


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference.

    Attributes:
        op: the op's name, such as "stablehlo.add".
        source: its line in the user's code, such as "train.py:31", or empty.
        piece: the smallest program that shows the difference.
        inputs: the arguments of the piece.
        num_ops: number of ops in the piece; 1 if the op alone is wrong.
        inside: the loops and branches around it, outermost first.
    """

    op: str
    source: str
    piece: slices.Piece
    inputs: list[np.ndarray]
    num_ops: int
    inside: tuple[str, ...]


def locate(code: bytes, arguments: Sequence[np.ndarray], ours: Run, theirs: Run) -> Finding | None:
    """The first op whose results differ between `ours` and `theirs`; None if none is found.

    Args:
        code: StableHLO bytecode.
        ours, theirs: run a program; an error of `ours` is a difference.
    """
    module = jax_compat.parse_module(code)
    block = slices.main_block(module)
    known = dict(zip(block.arguments, arguments, strict=True))
    return Search(ours, theirs).block(block, known, ())


class Search:
    """Compares two ways to run pieces of one module."""

    def __init__(self, ours: Run, theirs: Run):
        self._ours = ours
        self._theirs = theirs

    def block(self, block: Any, known: Environment, inside: tuple[str, ...]) -> Finding | None:
        """Searches a block; its arguments and captured values are in `known`."""
        ops = slices.body_ops(block)
        wanted = [v for op in ops for v in op.results if slices.is_array(v)]
        whole = slices.piece(block, wanted, lambda value: False)
        arguments = [known[v] for v in whole.inputs]
        truth = dict(zip(wanted, self._theirs(whole.code, arguments), strict=True))
        known = {**known, **truth}
        try:
            seen = dict(zip(wanted, self._ours(whole.code, arguments), strict=True))
            suspects = [op for op in ops if any(_differ(seen, truth, v) for v in op.results)]
        except Exception:
            suspects = ops
        for op in suspects[:MAX_SUSPECTS]:
            finding = self._alone(block, op, known, inside)
            if finding:
                return finding
        ends = [list(op.results) for op in (*suspects[:8], *ops[:MAX_ENDS])]
        ends += [[v] for v in slices.returned(block)] + [slices.returned(block)]
        for results in ends:
            wanted = [v for v in results if slices.is_array(v) and v in truth]
            finding = self._grown(block, wanted, known, inside) if wanted else None
            if finding:
                return finding
        return None

    def _alone(
        self, block: Any, op: Any, known: Environment, inside: tuple[str, ...]
    ) -> Finding | None:
        results = [v for v in op.results if slices.is_array(v)]
        if not results or not op.operands:
            return None
        cut = slices.piece(block, results, lambda value: True)
        if not self._differs(cut, known):
            return None
        deeper = next(filter(None, self._enter(op, known, inside)), None)
        return deeper or self._finding(op, cut, known, inside)

    def _grown(
        self, block: Any, results: Sequence[Any], known: Environment, inside: tuple[str, ...]
    ) -> Finding | None:
        """Searches pieces of several ops, for errors that occur only where ops are fused."""
        distance = _distances(block, results)
        depth, deepest = 2, max(distance.values()) + 1
        while depth < 2 * deepest:
            near = {v for v, far in distance.items() if far < depth}
            cut = slices.piece(block, results, _outside(near))
            if self._differs(cut, known):
                smallest = self._shrunk(block, results, near, known)
                return self._finding(smallest.ops[-1], smallest, known, inside)
            depth *= 2
        return None

    def _shrunk(
        self, block: Any, results: Sequence[Any], near: set[Any], known: Environment
    ) -> slices.Piece:
        """Turns as many values as possible into parameters while the difference remains."""
        best = slices.piece(block, results, _outside(near))
        for value in [v for op in best.ops for v in op.results][:MAX_TRIES]:
            fewer = near - {value}
            cut = slices.piece(block, results, _outside(fewer))
            if len(cut.ops) < len(best.ops) and self._differs(cut, known):
                near, best = fewer, cut
        return best

    def _enter(
        self, op: Any, known: Environment, inside: tuple[str, ...]
    ) -> Iterator[Finding | None]:
        """Searches the regions of control flow that ran, with the values from the run."""
        where = (*inside, f"{op.name} at {source_of(op) or 'unknown line'}")
        blocks = [region.blocks[0] for region in op.regions]
        if op.name == "stablehlo.while":
            yield from self._iterations(op, blocks, known, where)
        elif op.name == "func.call":
            yield self._called(op, known, where)
        elif op.name in ("stablehlo.case", "stablehlo.if"):
            index = int(_value(op.operands[0], known, self._theirs))
            if op.name == "stablehlo.if":
                index = 0 if index else 1
            taken = index if 0 <= index < len(blocks) else len(blocks) - 1
            yield self.block(blocks[taken], self._around(op, known), where)

    def _called(self, op: Any, known: Environment, where: tuple[str, ...]) -> Finding | None:
        block = slices.function_block(op)
        state = [_value(v, known, self._theirs) for v in op.operands]
        return self.block(block, dict(zip(block.arguments, state, strict=True)), where)

    def _iterations(
        self, op: Any, blocks: Sequence[Any], known: Environment, where: tuple[str, ...]
    ) -> Iterator[Finding | None]:
        condition, body = blocks
        state = [_value(v, known, self._theirs) for v in op.operands]
        around = self._around(op, known)
        for iteration in range(MAX_ITERATIONS):
            here = (*where[:-1], f"{where[-1]}, iteration {iteration}")
            for block in (condition, body):
                inner = {**around, **dict(zip(block.arguments, state, strict=True))}
                cut = slices.piece(block, slices.returned(block), lambda v: False)
                arguments = [inner[v] for v in cut.inputs]
                if self._differs(cut, inner):
                    yield self.block(block, inner, here)
                results = self._theirs(cut.code, arguments)
                if block is condition and not results[0]:
                    return
            state = results

    def _around(self, op: Any, known: Environment) -> Environment:
        """`known`, with the constants that the regions use."""
        found = dict(known)
        for value in slices.used(op):
            if value not in found and slices.is_array(value):
                found[value] = _value(value, known, self._theirs)
        return found

    def _differs(self, cut: slices.Piece, known: Environment) -> bool:
        arguments = [known[v] for v in cut.inputs]
        truth = self._theirs(cut.code, arguments)
        try:
            seen = self._ours(cut.code, arguments)
        except Exception:
            return True
        return any(difference(a, b) is not None for a, b in zip(seen, truth, strict=True))

    def _finding(
        self, op: Any, cut: slices.Piece, known: Environment, inside: tuple[str, ...]
    ) -> Finding:
        inputs = [known[v] for v in cut.inputs]
        num_ops = sum(inner.name not in ("stablehlo.constant",) for inner in cut.ops)
        return Finding(op.name, source_of(op), cut, inputs, num_ops, inside)


def source_of(op: Any) -> str:
    """The line in the user's code from which an op comes, such as "train.py:31", or empty."""
    return Sources().of(op).line


def _value(value: Any, known: Environment, run: Run) -> np.ndarray:
    """The elements of a value that is known or constant."""
    if value in known:
        return known[value]
    if slices.is_argument(value):
        raise IpuError(f"[verify] needs the elements of {value}; got none. Report this as a bug.")
    cut = slices.piece(value.owner.operation.block, [value], lambda v: v in known)
    return np.asarray(run(cut.code, [known[v] for v in cut.inputs])[0])


def _differ(seen: Environment, truth: Environment, value: Any) -> bool:
    return value in truth and difference(seen[value], truth[value]) is not None


def _outside(near: set[Any]) -> Callable[[Any], bool]:
    return lambda value: value not in near


def _distances(block: Any, results: Sequence[Any]) -> dict[Any, int]:
    """The number of ops between each value of the block and the nearest of `results`."""
    position = {op.operation for op in block.operations}
    distance: dict[Any, int] = dict.fromkeys(results, 0)
    front = list(results)
    while front:
        value = front.pop(0)
        if slices.is_argument(value) or value.owner.operation not in position:
            continue
        for operand in slices.used(value.owner.operation):
            if operand not in distance:
                distance[operand] = distance[value] + 1
                front.append(operand)
    return distance
