"""Loops and branches. Their carries and results are variables, changed by plain copies only.

The engine makes copies between whole variables cost nothing where their lifetimes allow it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.dtypes import TOKEN
from ipujax.compiler.ir import Block, Op, Value, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule

declare("while", "if", control_flow=True, moves=True, complex="pairs")
declare("case", control_flow=True, moves=True, complex="pairs", indices=lambda op: range(1))
declare("raise_if", effect=True, replicated="the compiler makes it after partitioning")
declare("create_token", "after_all", unique=True, replicated="a token has no elements")


@rule("while")
def while_loop(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    """Repeat where the number of iterations is known, else RepeatWhileTrue."""
    cond, body = op.regions
    debug = builder.debug(op)
    is_pipeline = op.source.placed.pipeline is not None and op.source.placed.stage is None
    name = accumulator_name(debug) if is_pipeline else debug
    carries = [variable_of(builder, value, name) for value in op.results]
    for value, carry in zip(op.operands, carries, strict=True):
        if carry is not None:
            builder.copy(builder.tensor(value), carry, debug)
    program = ipu.poplar.program
    for arguments in (cond.args, body.args):
        pairs = zip(arguments, carries, strict=False)
        builder.tensors.update((value, carry) for value, carry in pairs if carry is not None)
    body_program = program.Sequence(debug)
    with builder.inside(body_program):
        copy_together(builder, builder.lower(body), carries, debug)
    if "trip_count" in op.attrs:
        builder.program.add(program.Repeat(op.attrs["trip_count"], body_program, debug))
        return carries
    cond_program = program.Sequence(debug)
    with builder.inside(cond_program):
        (predicate,) = builder.lower(cond)
        assert predicate is not None
        # A predicate of its own: the condition's result may be a view or a constant.
        flag = builder.variable(ipu.poplar.BOOL, [], debug)
        builder.copy(predicate.reshape([]), flag, debug)
    builder.program.add(program.RepeatWhileTrue(cond_program, flag, body_program, debug))
    return carries


@rule("raise_if")
def raise_if(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    """Ends the program with the op's message where the operand is true."""
    debug, program = builder.debug(op), ipu.poplar.program
    flag = builder.tensor(op.operands[0]).reshape([])
    error = program.Sequence(debug)
    error.add(program.ErrorProgram(op.attrs["message"], flag, debug))
    builder.program.add(program.If(flag, error, program.Sequence(debug), debug))
    return []


@rule("case")
def case(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    """Switch; an index out of range takes the last branch, as in StableHLO."""
    debug, program = builder.debug(op), ipu.poplar.program
    results = _variables(builder, op)
    branches = [_branch(builder, region, results, debug) for region in op.regions]
    index = builder.tensor(op.operands[0]).reshape([])
    numbered = list(enumerate(branches[:-1]))
    builder.program.add(program.Switch(index, numbered, branches[-1], debug))
    return results


@rule("if")
def if_else(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    debug, program = builder.debug(op), ipu.poplar.program
    results = _variables(builder, op)
    on_true, on_false = (_branch(builder, region, results, debug) for region in op.regions)
    predicate = builder.tensor(op.operands[0]).reshape([])
    builder.program.add(program.If(predicate, on_true, on_false, debug))
    return results


@rule("create_token", "after_all")
def token(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    """Tokens only order effects, which the schedule keeps in order; they have no bytes."""
    return [None]


def _variables(builder: Builder, op: Op) -> list[ipu.Tensor | None]:
    """A variable for each result; None for tokens."""
    return [variable_of(builder, value, builder.debug(op)) for value in op.results]


def accumulator_name(debug: ipu.DebugContext) -> ipu.DebugContext:
    """By which the account of memory knows what a pipeline carries (engine/build/Account.cpp)."""
    return ipu.poplar.DebugContext(f"{debug.name}/pipeline.accumulator", debug.source)


def variable_of(builder: Builder, value: Value, debug: ipu.DebugContext) -> ipu.Tensor | None:
    """A variable on the value's IPU; None for a token."""
    if value.dtype == TOKEN:
        return None
    with builder.on(value.ipu):
        return builder.variable(builder.type_of(value), value.shape, debug)


def _branch(
    builder: Builder, region: Block, results: list[ipu.Tensor | None], debug: ipu.DebugContext
) -> ipu.Sequence:
    branch = ipu.poplar.program.Sequence(debug)
    with builder.inside(branch):
        for source, target in zip(builder.lower(region), results, strict=True):
            if source is not None and target is not None:
                builder.copy(source, target, debug)
    return branch


def copy_together(
    builder: Builder,
    sources: Sequence[ipu.Tensor | None],
    targets: Sequence[ipu.Tensor | None],
    debug: ipu.DebugContext,
) -> None:
    """All targets take their sources' values as they were before any of the copies.

    A copy waits until no other source still reads its target; where copies wait for each other
    (a swap), one of the sources is put aside first.
    """
    pending = [
        (source, target)
        for source, target in zip(sources, targets, strict=True)
        if source is not None and target is not None and source != target
    ]
    while pending:
        free = None
        for index, (_, target) in enumerate(pending):
            others = (pair[0] for j, pair in enumerate(pending) if j != index)
            if not any(other.intersectsWith(target) for other in others):
                free = index
                break
        if free is None:
            source, target = pending[0]
            pending[0] = (builder.materialise(source, debug), target)
            continue
        source, target = pending.pop(free)
        if source.intersectsWith(target):
            source = builder.materialise(source, debug)
        builder.copy(source, target, debug)
