"""Pieces: some parts as one function of arrays, and the whole function as a series of pieces."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from jax import lax

from ipujax.planner.operations import Operation, Value
from ipujax.planner.parts import Divided, Part

#: Free operations that only select elements: run before a piece, which then only gets these.
VIEWS = frozenset({"slice", "squeeze", "reshape", "dynamic_slice"})


class Rows(NamedTuple):
    """Rows of a scanned operand."""

    value: Value
    start: int
    stop: int

    @property
    def aval(self) -> Any:
        shape = (self.stop - self.start, *self.value.aval.shape[1:])
        return self.value.aval.update(shape=shape)


Name = Value | Rows


def source_of(name: Name) -> Value:
    """The whole value."""
    return name.value if isinstance(name, Rows) else name


Environment = dict[Name, Any]


class Piece:
    """Parts as a function of `inputs` that returns a list of `outputs`."""

    def __init__(self, divided: Divided, parts: Iterable[Part], wanted: set[Value]):
        self.parts = list(parts)
        own = _joined([operation for part in self.parts for operation in part.operations])
        repeated = divided.free_before(v for operation in own for v in operation.operands)
        self.views: list[Operation] = []
        outside = set(divided.shared)
        for operation in repeated:
            is_outside = all(v in outside or v.constant is not None for v in operation.operands)
            if operation.eqn.primitive.name in VIEWS and is_outside:
                self.views.append(operation)
                outside.update(operation.results)
        inside = [operation for operation in repeated if operation not in self.views]
        self.operations = [*inside, *own]
        made = {value for operation in self.operations for value in operation.results}
        names = [name for operation in self.operations for name in _operands(operation)]
        self.inputs = [n for n in dict.fromkeys(names) if not _is_known(n, made)]
        own_results = [value for operation in own for value in operation.results]
        self.outputs = [value for value in own_results if value in wanted]

    def __call__(self, *arrays: Any) -> list[Any]:
        environment: Environment = dict(zip(self.inputs, arrays, strict=True))
        run(self.operations, environment)
        return [environment[value] for value in self.outputs]


def pieces_of(divided: Divided, places: Sequence[int], count: int) -> list[Piece]:
    """One piece for each stage.

    Args:
        places: the stage of each part.
    """
    stages = [
        [part for part, place in zip(divided.parts, places, strict=True) if place == stage]
        for stage in range(count)
    ]
    reads = [set().union(*(part.reads() for part in stage)) for stage in stages]
    pieces = []
    for index, stage in enumerate(stages):
        wanted = set(divided.listing.outputs).union(*reads[:index], *reads[index + 1 :])
        pieces.append(Piece(divided, stage, wanted))
    return pieces


def run_pieces(
    divided: Divided,
    pieces: Sequence[Piece],
    call: Callable[[int, Piece, list[Any]], Sequence[Any]],
    arrays: Sequence[Any],
) -> list[Any]:
    """The function's outputs from its inputs; `call` runs a piece on its inputs."""
    environment: Environment = dict(zip(divided.listing.inputs, arrays, strict=True))
    for index, piece in enumerate(pieces):
        run([op for op in piece.views if op.results[0] not in environment], environment)
        given = [_get(environment, name) for name in piece.inputs]
        environment.update(zip(piece.outputs, call(index, piece, given), strict=True))
    rest = divided.free_before(divided.listing.outputs)
    run([op for op in rest if op.results[0] not in environment], environment)
    return [_get(environment, value) for value in divided.listing.outputs]


def run(operations: Iterable[Operation], environment: Environment) -> None:
    """Adds the results of operations."""
    for operation in operations:
        given = [_get(environment, name) for name in _operands(operation)]
        environment.update(zip(operation.results, operation.run(given), strict=True))


def _get(environment: Environment, name: Name) -> Any:
    if isinstance(name, Rows):
        if name not in environment:
            environment[name] = lax.slice_in_dim(environment[name.value], name.start, name.stop)
        return environment[name]
    return environment[name] if name.constant is None else name.constant


def _operands(operation: Operation) -> list[Name]:
    whole, scanned = operation.operands, operation.operands[operation.num_whole :]
    return [
        *whole[: operation.num_whole],
        *(Rows(value, *operation.rows) for value in scanned),
    ]


def _is_known(name: Name, made: set[Value]) -> bool:
    """Whether a piece that makes these values needs no input for it."""
    value = source_of(name)
    return value in made or value.constant is not None


def _joined(operations: Sequence[Operation]) -> list[Operation]:
    """Joins iterations that follow each other into one operation."""
    found: list[Operation] = []
    for operation in operations:
        if found and _follows(found[-1], operation):
            found[-1] = found[-1].joined(operation)
        else:
            found.append(operation)
    return found


def _follows(before: Operation, after: Operation) -> bool:
    if not (before.groups and after.groups and before.eqn is after.eqn):
        return False
    first, count = before.eqn.params["num_consts"], before.eqn.params["num_carry"]
    is_next = before.groups[-1].stop == after.groups[0].start
    return is_next and after.operands[first : first + count] == before.results[:count]
