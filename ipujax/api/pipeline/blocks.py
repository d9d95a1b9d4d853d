"""Blocks: named parts of a function, which a strategy assigns to stages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import jax

from ipujax import jax_compat
from ipujax.annotations.placement import BLOCK, LeavingPhase, block_attribute, read_block
from ipujax.api.pipeline.stages import STAGE_CALL, StagedFunction, check_ipu
from ipujax.errors import PipelineError, PlacementError

Wrapped = TypeVar("Wrapped", bound=Callable[..., Any])


class Scope(AbstractContextManager[None], Protocol):
    """A context manager that is also a decorator."""

    def __call__(self, fun: Wrapped, /) -> Wrapped: ...


def block(name: str, ipu: int | None = None) -> Scope:
    """Names a part of a function, so that strategies can assign it to a stage.

    A `with` block names the operations traced inside; as a decorator it names those of a function.
    An inner block overrides an outer one. Without a strategy, a block with an IPU places its
    operations and their derivatives there, as `ipu.shard` does, and a block without one changes
    nothing.

    Args:
        name: several parts may have one name.
        ipu: number of the IPU in the JAX device, from 0; a strategy can override it.
    Returns:
        A context manager that is also a decorator.
    Raises:
        PlacementError: the name is empty or not a string, or `ipu` is not the number of an IPU.

    Example:
        >>> @ipu.block("head")
        ... def head(x):
        ...     return x.sum()
        >>> def model(x):
        ...     with ipu.block("layer"):
        ...         x = jnp.tanh(x)
        ...     return head(x)
        >>> stages = ipu.ShardedExecution(ipu.Stage("layer", ipu=0), ipu.Stage("head", ipu=0))
        >>> print(stages.apply(model)(jnp.zeros(3)))
        0.0
    """
    if not isinstance(name, str) or not name:
        raise PlacementError(
            f"[ipu.block] needs a name; got {name!r}. Pass a string, which strategies refer to."
        )
    check_ipu("ipu.block", ipu)
    return _scope(block_attribute(name, ipu))


@contextmanager
def _scope(attribute: str) -> Iterator[None]:
    # Imported here, because JAX imports this package while it looks for plugins.
    from jax.experimental.xla_metadata import set_xla_metadata

    with set_xla_metadata(**{BLOCK: attribute}):
        yield


@dataclass(frozen=True)
class Block:
    """A named part of a traced function."""

    name: str
    ipu: int | None
    line: str  #: of its first operation, as "train.py:31"; empty if unknown

    def __str__(self) -> str:
        return f"{self.name!r} (at {self.line})" if self.line else repr(self.name)


@dataclass(frozen=True, eq=False)
class Assigned:
    """The stage that a strategy assigns blocks to."""

    make: Callable[[Callable[..., Any]], StagedFunction[..., Any]]
    place: int | None  #: position of the stage or phase in time; None: whenever it is called
    phase: LeavingPhase | None = None  #: if values leave the tiles between phases

    def stage_of(self, fun: Callable[..., Any]) -> StagedFunction[..., Any]:
        return self.make(fun).assigned(self.place, self.phase)


#: Maps the blocks of a function, in order, to the stage of each, by name.
Assign = Callable[[Sequence[Block]], Mapping[str, Assigned]]


def call_in_stages(
    where: str, fun: Callable[..., Any], assign: Assign, args: Any, kwargs: Any
) -> Any:
    """Calls `fun` with the operations of its blocks inside calls of stages.

    Consecutive operations of one stage are one call. Operations outside all blocks stay where they
    are, unless they are between operations of one stage.

    Raises:
        PlacementError: blocks of several stages are inside one loop, branch or checkpoint.
        PipelineError: a stage needs a result of a later one.
    """
    traced = TracedCall(fun, args, kwargs, lambda eqn: len(set(_attributes(eqn))) > 1)
    values = traced.values
    for part in _Cut(where, traced.jaxpr, assign).parts:
        if part.assigned is None:
            jax_compat.evaluate(part.eqns, values)
        else:
            stage = part.assigned.stage_of(part.call)
            made = stage(*(values[variable] for variable in part.inputs))
            values.update(zip(part.outputs, made, strict=True))
    return traced.results()


class TracedCall:
    """A function's equations, for running them one by one on its arguments.

    Args:
        fun, args, kwargs: the function and its arguments.
        is_open: which called functions are inlined into the caller.
    """

    def __init__(
        self, fun: Callable[..., Any], args: Any, kwargs: Any, is_open: Callable[[Any], bool]
    ):
        jax_compat.hide_frames(__file__)
        leaves, tree = jax.tree.flatten((args, kwargs))

        def flat(*leaves: Any) -> list[Any]:
            args, kwargs = jax.tree.unflatten(tree, leaves)
            results, self._out_tree = jax.tree.flatten(fun(*args, **kwargs))
            return results

        traced, captured = jax_compat.trace_call(flat, leaves)
        self.jaxpr = jax_compat.inlined(traced, is_open)
        jaxpr = self.jaxpr.jaxpr
        #: Values by variable; whoever runs equations adds those of their results.
        self.values = dict(zip(jaxpr.invars, [*captured, *leaves], strict=True))
        self.values.update(zip(jaxpr.constvars, self.jaxpr.consts, strict=True))

    def results(self) -> Any:
        """What the function returns, after all equations ran."""
        made = [jax_compat.value_of(atom, self.values) for atom in self.jaxpr.jaxpr.outvars]
        return jax.tree.unflatten(self._out_tree, made)


@dataclass
class _Part:
    """Consecutive equations that one stage calls, or that belong to no stage."""

    assigned: Assigned | None
    eqns: list[Any]
    inputs: list[Any] = field(default_factory=list)  #: variables of other parts
    outputs: list[Any] = field(default_factory=list)  #: variables that other parts read

    def call(self, *given: Any) -> list[Any]:
        values = dict(zip(self.inputs, given, strict=True))
        jax_compat.evaluate(self.eqns, values)
        return [values[variable] for variable in self.outputs]


class _Cut:
    """A jaxpr cut into parts."""

    def __init__(self, where: str, jaxpr: Any, assign: Assign):
        self.where = where
        self.blocks = _blocks_of(where, jaxpr)
        self.assigned = assign(list(self.blocks.values()))
        self.parts: list[_Part] = []
        self._divide(jaxpr.eqns)
        self._connect(jaxpr.jaxpr.outvars)

    def _divide(self, eqns: Sequence[Any]) -> None:
        between: list[Any] = []
        for eqn in eqns:
            assigned = self._stage_of(eqn)
            if assigned is None:
                between.append(eqn)
            elif self.parts and self.parts[-1].assigned is assigned:
                self.parts[-1].eqns += [*between, eqn]
                between = []
            else:
                self.parts += [_Part(None, between), _Part(assigned, [eqn])]
                between = []
        self.parts.append(_Part(None, between))

    def _stage_of(self, eqn: Any) -> Assigned | None:
        names = {read_block(text)[0]: None for text in _attributes(eqn) if text is not None}
        found = {self.assigned[name] for name in names}
        if len(found) > 1:
            line = jax_compat.line_of(eqn)
            raise PlacementError(
                f"[{self.where}] needs blocks of different stages outside of loops, branches and "
                f"checkpoints; got {', '.join(names)} in one {eqn.primitive.name!r}"
                f"{f' (at {line})' if line else ''}. Assign them to one stage, or write the loop "
                "or checkpoint inside of each block."
            )
        return next(iter(found), None)

    def _connect(self, results: Sequence[Any]) -> None:
        """Finds the parts' inputs and outputs, and that no stage needs a result of a later one."""
        makers = {v: part for part in self.parts for eqn in part.eqns for v in eqn.outvars}
        latest: dict[int, _Part] = {}  #: by id of a part: the last of the parts that it needs
        for part in self.parts:
            reads = dict.fromkeys(
                atom
                for eqn in part.eqns
                for atom in eqn.invars
                if not jax_compat.is_literal(atom) and makers.get(atom) is not part
            )
            part.inputs = list(reads)
            needed = [makers[variable] for variable in part.inputs if variable in makers]
            last = part
            for maker in needed:
                last = max(last, latest[id(maker)], key=_place)
            if last is not part and part.assigned is not None:
                self._refuse_order(last, part)
            latest[id(part)] = last
        read = {v for part in self.parts for v in part.inputs}
        read.update(atom for atom in results if not jax_compat.is_literal(atom))
        for part in self.parts:
            part.outputs = [v for eqn in part.eqns for v in eqn.outvars if v in read]

    def _refuse_order(self, later: _Part, part: _Part) -> None:
        raise PipelineError(
            f"[{self.where}] needs stages in the order in which blocks need each other; got "
            f"{self._first_block(part)} in stage or phase {_place(part)}, which needs a result of "
            f"{self._first_block(later)} in {_place(later)}. Change the order of the strategy's "
            "stages; take gradients of the function that apply returns, not inside of it."
        )

    def _first_block(self, part: _Part) -> Block:
        texts = (text for eqn in part.eqns for text in _attributes(eqn) if text is not None)
        return self.blocks[read_block(next(texts))[0]]


def _place(part: _Part) -> int:
    place = None if part.assigned is None else part.assigned.place
    return -1 if place is None else place


def _attributes(eqn: Any, around: str | None = None) -> Iterator[str | None]:
    """The block attributes of the equations inside this one, with repetitions; None for no block.

    Blocks inside a strategy's stage belong to no other strategy.
    """
    own = jax_compat.metadata_of(eqn).get(BLOCK, around)
    if eqn.primitive.name == STAGE_CALL and eqn.params["label"].is_assigned:
        yield own
        return
    inner = list(jax_compat.inner_equations(eqn))
    for found in inner:
        yield from _attributes(found, own)
    if not inner:
        yield own


def _blocks_of(where: str, jaxpr: Any) -> dict[str, Block]:
    """The blocks by name, in the order of the program."""
    blocks: dict[str, Block] = {}
    for eqn in jaxpr.eqns:
        for text in dict.fromkeys(_attributes(eqn)):
            if text is None:
                continue
            found = Block(*read_block(text), jax_compat.line_of(eqn))
            first = blocks.setdefault(found.name, found)
            if found.ipu != first.ipu:
                raise PlacementError(
                    f"[{where}] needs one IPU for each block; got {first.ipu} for {first} and "
                    f"{found.ipu} for {found}. Give one of them another name."
                )
    return blocks
