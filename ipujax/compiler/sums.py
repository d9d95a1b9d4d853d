"""Merges sums of a pipeline that are added up after it, on the same IPU, into one sum.

Before:                                        After:
  %a, %b = pipeline(0, 0)                        %g = pipeline(0)
    F: (%a) -> %a + %x    B: (%b) -> %b + %y       F: (%g) -> %g + %x    B: (%g) -> %g + %y
  %g = %a + %b
In a time slot the stages on an IPU run one after the other, so that each adds to the other's
result. The sum has the same terms in another order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ipujax.compiler.ir import Block, Op, Value, inputs_of, number_of, walk_blocks
from ipujax.compiler.pipelines import Run


def share_sums(blocks: Iterable[Block]) -> None:
    """Gives two sums of a pipeline one variable if only their sum is needed."""
    for block in blocks:
        if any(op.name == "pipeline" for op in block.ops):
            _share(block)


def _share(block: Block) -> None:
    uses = _uses(block)
    renamed: dict[Value, Value] = {}
    for op in list(block.ops):
        if op.name != "add":
            continue
        first, second = (renamed.get(value, value) for value in op.operands)
        made = first.op
        if (
            made is not None
            and made is second.op
            and made.name == "pipeline"
            and all(uses[value] == 1 for value in op.operands)
            and _can_be_one(made, first.index, second.index)
        ):
            _join(made, first.index, second.index)
            block.ops.remove(op)
            renamed[op.results[0]] = first
    if renamed:
        for inner in walk_blocks(block):
            for op in inner.ops:
                op.operands = [renamed.get(value, value) for value in op.operands]
            inner.results = [renamed.get(value, value) for value in inner.results]


def _uses(block: Block) -> Counter[Value]:
    found = Counter(value for op in block.ops for value in inputs_of(op))
    found.update(block.results)
    return found


def _can_be_one(made: Op, first: int, second: int) -> bool:
    """Whether both are sums from zero of alike values, by separate runs on one IPU."""
    of_first, of_second = _runs_with(made, first), _runs_with(made, second)
    a, b = made.results[first], made.results[second]
    return (
        (a.shape, a.dtype, a.is_remote, b.is_remote) == (b.shape, b.dtype, False, False)
        and all(number_of(made.operands[index]) == 0 for index in (first, second))
        and {run.ipu for run in of_first} == {run.ipu for run in of_second}
        and not any(run in of_second for run in of_first)
        and _only_grows(made, first)
        and _only_grows(made, second)
    )


def _runs_with(made: Op, slot: int) -> list[Run]:
    return [run for run in made.attrs["runs"] if slot in run.slots]


def _only_grows(made: Op, slot: int) -> bool:
    """Whether runs only add to the slot."""
    for run, region in zip(made.attrs["runs"], made.regions, strict=True):
        if slot not in run.slots:
            continue
        place = run.slots.index(slot)
        before, after = region.args[place], region.results[place]
        uses = _uses(region)
        maker = after.op
        if maker is None or maker.name != "add" or maker not in region.ops:
            return False
        if maker.operands.count(before) != 1 or uses[before] != 1 or uses[after] != 1:
            return False
    return True


def _join(made: Op, first: int, second: int) -> None:
    """Replaces the second slot of runs by the first one."""
    for run in made.attrs["runs"]:
        slots = [first if slot == second else slot for slot in run.slots]
        run.slots = [slot - (slot > second) for slot in slots]
    del made.operands[second]
    del made.results[second]
    for index, value in enumerate(made.results):
        value.index = index
