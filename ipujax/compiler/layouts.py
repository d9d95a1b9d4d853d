"""Groups values that meet element by element, so that they begin at the same tile.

A value that is spread over fewer tiles than an IPU has must begin somewhere. If all of them began
at tile 0, the first tiles would hold far more than the mean; if each began elsewhere, elements that
meet would first have to move. So values are put into groups. Values in a group are mapped alike,
and the graph spreads the groups' first tiles around the IPU (`popx.setLayoutGroup`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ipujax.compiler.ir import Block, Op, Program, Value

#: Smaller values lie on one tile: each of two would get less than a linear mapping puts there.
_TWO_TILES_BYTES = 256


class _Groups:
    """Sets of values that are joined one by one."""

    def __init__(self) -> None:
        self._parents: dict[Value, Value] = {}

    def find(self, value: Value) -> Value:
        parents = self._parents
        root = value
        while (parent := parents.get(root)) is not None:
            root = parent
        while value is not root:
            parents[value], value = root, parents[value]
        return root

    def join(self, values: Sequence[Value]) -> None:
        """Puts values into the first one's group; splat constants have no group."""
        first: Value | None = None
        for value in values:
            if value.const is not None and value.is_splat:
                continue
            root = self.find(value)
            if first is None:
                first = root
            elif root is not first:
                self._parents[root] = first


def layout_groups(program: Program) -> dict[Value, int]:
    """The group of each value, from 1 on; conditions of loops and branches get 0, at tile 0.

    Equal programs get equal groups.
    """
    groups = _Groups()
    blocks = program.blocks_run()
    for block in blocks:
        for op in block.ops:
            for values in _alike(op):
                groups.join(values)
    for result, index in zip(program.main.results, program.output_alias, strict=True):
        if index >= 0:
            groups.join([program.main.args[index], result])
    numbers = {groups.find(value): 0 for block in blocks for value in _deciding(block)}
    count = 0
    found: dict[Value, int] = {}
    for block in blocks:
        for value in _made(block):
            root = groups.find(value)
            if root not in numbers:
                numbers[root] = count = count + 1
            found[value] = numbers[root]
    return found


def _made(block: Block) -> Iterator[Value]:
    yield from block.args
    for op in block.ops:
        yield from op.results


def _deciding(block: Block) -> Iterator[Value]:
    for op in block.ops:
        if op.name == "while":
            yield from op.regions[0].results  # none where the number of iterations is known
        elif op.name in ("if", "case", "raise_if"):
            yield op.operands[0]


def _alike(op: Op) -> Iterator[Sequence[Value]]:
    """Values around the op that should be mapped alike."""
    if op.name == "while":
        cond, body = op.regions
        yield from zip(op.operands, op.results, body.args, body.results, strict=True)
        yield from zip(op.results, cond.args, strict=False)  # cond may have no arguments
    elif op.name in ("if", "case"):
        yield from zip(op.results, *(region.results for region in op.regions), strict=True)
    elif op.name == "pipeline":
        yield from _alike_in_pipeline(op)
    elif op.name == "call":
        function: Block = op.attrs["function"]
        yield from zip(op.operands, function.args, strict=True)
        returned = [function.results[index] for index in op.attrs["returns"]]
        yield from zip(op.results, returned, strict=True)
    elif not op.traits.product:
        values = [*op.operands, *op.results]
        by_size: dict[int, list[Value]] = {}
        for value in values:
            by_size.setdefault(value.num_elements, []).append(value)
        yield from by_size.values()
        if len(by_size) == 1:
            return
        is_part = op.traits.view and op.results[0].num_elements < op.operands[0].num_elements
        if is_part or all(value.size_bytes < _TWO_TILES_BYTES for value in values):
            yield values


def _alike_in_pipeline(op: Op) -> Iterator[Sequence[Value]]:
    runs = op.attrs["runs"]
    yield from zip(op.operands, op.results, strict=True)
    for run, region in zip(runs, op.regions, strict=True):
        for k, slot in enumerate(run.slots):
            yield op.results[slot], region.args[k], region.results[k]
        for edge, value in zip(run.edges, region.args[len(run.slots) :], strict=True):
            maker = len(runs[edge.producer].slots) + edge.result
            yield value, op.regions[edge.producer].results[maker]
