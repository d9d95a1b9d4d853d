"""Loops and branches. Their carries and results are variables, changed by plain copies only.

The engine elides copies between whole variables if their lifetimes allow it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.dtypes import TOKEN
from ipujax.compiler.ir import Block, Op, Value, declare, inputs_of
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, Variable
from ipujax.compiler.rules.registry import rule

declare("while", "if", control_flow=True, moves=True, complex="pairs", integers64=True)
declare(
    "case",
    control_flow=True,
    moves=True,
    complex="pairs",
    integers64=True,
    indices=lambda op: range(1),
)
declare("raise_if", effect=True, replicated="the compiler makes it after partitioning")
declare("create_token", "after_all", unique=True, replicated="a token has no elements")


@rule("while")
def while_loop(builder: Builder, op: Op) -> Sequence[Variable | None]:
    """Repeat if the number of iterations is known, else RepeatWhileTrue."""
    cond, body = op.regions
    debug = builder.debug(op)
    is_pipeline = op.source.placed.pipeline != "" and op.source.placed.stage is None
    carries = carried_variables(builder, op, are_accumulators=is_pipeline)
    program = ipu.poplar.program
    for arguments in (cond.args, body.args):
        pairs = list(zip(arguments, carries, strict=False))
        builder.tensors.update((value, carry) for value, carry in pairs if carry is not None)
        sources = zip(arguments, op.operands, strict=False)
        builder.on_tiles.update(value for value, source in sources if source in builder.on_tiles)
    cond_program, body_program = program.Sequence(debug), program.Sequence(debug)
    is_counted = "trip_count" in op.attrs
    first = body_program if is_counted else cond_program
    write_in_place(builder, body, carries)
    was_inside, builder.in_pipeline = builder.in_pipeline, builder.in_pipeline or is_pipeline
    with builder.rounding.iterations(op, op.regions, first, builder.program):
        with builder.inside(body_program):
            copy_together(builder, builder.lower(body), carries, debug)
        builder.in_pipeline = was_inside
        if is_counted:
            builder.program.add(program.Repeat(op.attrs["trip_count"], body_program, debug))
            return carries
        with builder.inside(cond_program):
            (predicate,) = builder.lower(cond)
            assert isinstance(predicate, ipu.poplar.Tensor)
            # A separate predicate, since the condition's result may be a view or a constant.
            with builder.at(cond.results[0]):
                flag = builder.variable(ipu.poplar.BOOL, [], debug)
            builder.copy(predicate.reshape([]), flag, debug)
    builder.program.add(program.RepeatWhileTrue(cond_program, flag, body_program, debug))
    return carries


@rule("raise_if")
def raise_if(builder: Builder, op: Op) -> Sequence[Variable | None]:
    """Ends the program with the op's message if the operand is true."""
    debug, program = builder.debug(op), ipu.poplar.program
    flag = builder.tensor(op.operands[0]).reshape([])
    error = program.Sequence(debug)
    error.add(program.ErrorProgram(op.attrs["message"], flag, debug))
    builder.program.add(program.If(flag, error, program.Sequence(debug), debug))
    return []


@rule("case")
def case(builder: Builder, op: Op) -> Sequence[Variable | None]:
    """Switch; an index out of range takes the last branch, as in StableHLO."""
    debug, program = builder.debug(op), ipu.poplar.program
    results = _variables(builder, op)
    branches = [_branch(builder, region, results, debug) for region in op.regions]
    index = builder.tensor(op.operands[0]).reshape([])
    numbered = list(enumerate(branches[:-1]))
    builder.program.add(program.Switch(index, numbered, branches[-1], debug))
    return results


@rule("if")
def if_else(builder: Builder, op: Op) -> Sequence[Variable | None]:
    debug, program = builder.debug(op), ipu.poplar.program
    results = _variables(builder, op)
    on_true, on_false = (_branch(builder, region, results, debug) for region in op.regions)
    predicate = builder.tensor(op.operands[0]).reshape([])
    builder.program.add(program.If(predicate, on_true, on_false, debug))
    return results


@rule("create_token", "after_all")
def token(builder: Builder, op: Op) -> Sequence[Variable | None]:
    """Tokens only order effects, which the schedule keeps in order; they have no bytes."""
    return [None]


def _variables(builder: Builder, op: Op) -> list[Variable | None]:
    """A variable for each result; None for tokens."""
    return [variable_of(builder, value, builder.debug(op)) for value in op.results]


def carried_variables(
    builder: Builder, op: Op, *, are_accumulators: bool = False
) -> list[Variable | None]:
    """A variable for each carried value, with the operand in it; None for tokens.

    A remote buffer that nothing else needs is the variable itself.
    """
    debug, taken = builder.debug(op), op.attrs.get("taken", ())
    variables: list[Variable | None] = []
    for index, (value, result) in enumerate(zip(op.operands, op.results, strict=True)):
        if index in taken:
            variables.append(builder.buffer(value))
            continue
        if value in builder.on_tiles:
            variable: Variable | None = builder.graph.clone(builder.tensor(value), debug)
            builder.on_tiles.add(result)
        else:
            variable = variable_of(builder, result, debug)
        if are_accumulators and isinstance(variable, ipu.poplar.Tensor):
            uses = ipu.popx.VariableUse
            waits = builder.in_pipeline and op.name == "while" and _is_stack(op, index)
            use = uses.STASH if waits else uses.ACCUMULATOR
            ipu.popx.setVariableUse(builder.graph, variable, use)
        if variable is not None:
            with builder.at(result):  # which makes its own constants
                builder.copy(builder.held(value), variable, debug)
        variables.append(variable)
    return variables


def _is_stack(loop: Op, index: int) -> bool:
    """Whether each iteration writes a part of the value carried at this index."""
    body = loop.regions[-1]
    maker = body.results[index].op
    writes = maker is not None and maker.name == "dynamic_update_slice"
    return writes and maker is not None and maker.operands[0] is body.args[index]


def write_in_place(builder: Builder, body: Block, carries: Sequence[Variable | None]) -> None:
    """Lets `to_host` write values for the next iteration directly into the carried buffer.

    That is correct if nothing reads the carried value any more by then.
    """
    made = {op: index for index, op in enumerate(body.ops)}
    for value, result, carry in zip(body.args, body.results, carries, strict=False):
        if carry is None or isinstance(carry, ipu.poplar.Tensor):
            continue
        if body.results.count(result) > 1:
            continue
        maker = result.op
        if maker is None or maker.name != "to_host" or maker not in made:
            continue
        later = body.ops[made[maker] :]
        if value not in body.results and all(value not in inputs_of(op) for op in later):
            builder.destinations[result] = carry


def variable_of(builder: Builder, value: Value, debug: ipu.DebugContext) -> Variable | None:
    """A variable in the value's memory; None for a token."""
    if value.dtype == TOKEN:
        return None
    if value.is_remote:
        return builder.remote_buffer(value)
    with builder.at(value):
        return builder.variable(builder.type_of(value), value.shape, debug)


def _branch(
    builder: Builder, region: Block, results: list[Variable | None], debug: ipu.DebugContext
) -> ipu.Sequence:
    branch = ipu.poplar.program.Sequence(debug)
    with builder.inside(branch):
        for source, target in zip(builder.lower(region), results, strict=True):
            if source is not None and target is not None:
                builder.copy(source, target, debug)
    return branch


def copy_together(
    builder: Builder,
    sources: Sequence[Variable | None],
    targets: Sequence[Variable | None],
    debug: ipu.DebugContext,
) -> None:
    """Copies all sources to their targets as if at the same time.

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
            if not any(_share_memory(other, target) for other in others):
                free = index
                break
        if free is None:
            source, target = pending[0]
            pending[0] = (builder.put_aside(source, debug), target)
            continue
        source, target = pending.pop(free)
        if _share_memory(source, target):
            source = builder.put_aside(source, debug)
        builder.copy(source, target, debug)


def _share_memory(a: Variable, b: Variable) -> bool:
    if not isinstance(a, ipu.poplar.Tensor) or not isinstance(b, ipu.poplar.Tensor):
        return a == b
    return a.intersectsWith(b)
