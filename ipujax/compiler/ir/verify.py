"""Checks programs between stages. A failure is a bug in ipujax, never the user's.

If IPUJAX_VERIFY is set, as in the tests, everything is checked after every stage. Otherwise only
the structure is checked, which lowering needs, once, after the last stage that changes the program.
"""

from __future__ import annotations

import os

from ipujax.compiler.dtypes import DTYPES, TOKEN
from ipujax.compiler.ir.program import Block, Op, Program, Value, walk_blocks
from ipujax.compiler.stages import SCHEDULE
from ipujax.errors import VerifyError


def verify(program: Program, stage: str) -> None:
    """Raises a VerifyError that names `stage` if the program is not well formed."""
    closely = os.environ.get("IPUJAX_VERIFY", "0") != "0"
    if closely or stage == SCHEDULE:
        check_structure(program, stage)
    if closely:
        check_shapes(program, stage)


def check_structure(program: Program, stage: str) -> None:
    """Checks that values are defined before use, and that results know their op."""
    for root in (program.main, *program.functions):
        _check_block(root, set(), stage)
    if len(program.parameters) != len(program.main.args):
        raise _broken(stage, "one parameter per argument", f"{len(program.parameters)}")


def _check_block(block: Block, outside: set[Value], stage: str) -> None:
    defined = outside | set(block.args)
    for op in block.ops:
        for value in op.operands:
            if value.const is None and value not in defined:
                raise _broken(stage, "operands defined before use", f"{value!r} in {op.name}", op)
        for region in op.regions:
            _check_block(region, defined, stage)
        for index, result in enumerate(op.results):
            if result.op is not op or result.index != index:
                raise _broken(stage, "results that know their op", op.name, op)
            if result in defined:
                raise _broken(stage, "values defined once", f"{result!r} by {op.name}", op)
        defined.update(op.results)
    for value in block.results:
        if value.const is None and value not in defined:
            raise _broken(stage, "block results that are defined", f"{value!r}")


def check_shapes(program: Program, stage: str) -> None:
    """Checks that dtypes are legal, constants have their dtype, and elementwise shapes agree."""

    roots = (program.main, *program.functions)
    for block in (block for root in roots for block in walk_blocks(root)):
        for op in block.ops:
            values = (*op.operands, *op.results)
            for value in values:
                _check_value(value, op, stage)
            traits = op.traits
            if traits.elementwise and not traits.scalars and len({v.shape for v in values}) > 1:
                raise _broken(stage, "equal shapes", f"{op.name} of {op.operands}", op)


def _check_value(value: Value, op: Op, stage: str) -> None:
    if value.dtype != TOKEN and value.dtype not in DTYPES:
        raise _broken(stage, "legal dtypes", f"{value!r} in {op.name}", op)
    const = value.const
    if const is None:
        return
    if const.shape != value.shape or const.dtype != DTYPES[value.dtype].numpy:
        raise _broken(stage, f"a constant {value!r}", f"{const.shape} {const.dtype}", op)


def _broken(stage: str, needs: str, got: str, op: Op | None = None) -> VerifyError:
    where = f" at {op.source.name} {op.source.line}" if op is not None else ""
    return VerifyError(
        f"[verify after {stage}] needs {needs}; got {got}{where}. "
        "Report this program: it is a bug in ipujax."
    )
