"""Reads and evaluates jaxprs equation by equation."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from jax.extend.core import ClosedJaxpr, Literal

from ipujax.annotations.frames import Frame
from ipujax.jax_compat.call_primitives import traced_again

#: Calls whose equations may be inlined in the caller.
_CALLS = frozenset({"jit", "closed_call", "core_call"})

Environment = MutableMapping[Any, Any]


def metadata_of(eqn: Any) -> Mapping[str, str]:
    """The metadata that `jax.experimental.xla_metadata.set_xla_metadata` gave the equation."""
    return eqn.ctx.xla_metadata or {}


def metadata_here() -> Mapping[str, str]:
    """The metadata that equations traced now get."""
    from jax._src import xla_metadata_lib

    return xla_metadata_lib.current_xla_metadata() or {}


def name_of(eqn: Any) -> str:
    """Its transformations and named scopes, as "transpose(jvp(layer1))"."""
    return str(eqn.source_info.name_stack)


def line_of(eqn: Any) -> str:
    """The user's line, as "train.py:31"; empty if unknown."""
    from jax._src import source_info_util

    frame = source_info_util.user_frame(eqn.source_info.traceback)
    return f"{frame.file_name.rpartition('/')[2]}:{frame.start_line}" if frame else ""


def short_locations() -> AbstractContextManager[None]:
    """Programs lowered inside name only the user's innermost line, not its callers."""
    from jax._src import config

    limit: AbstractContextManager[None] = config.traceback_in_locations_limit(1)
    return limit


def long_locations() -> AbstractContextManager[None]:
    """Programs lowered inside name all lines of the call stack, not just the innermost ten."""
    from jax._src import config

    limit: AbstractContextManager[None] = config.traceback_in_locations_limit(100)
    return limit


def frames_of(eqn: Any) -> list[Frame]:
    """The call frames around the equation where it was traced, innermost first."""
    from jax._src import source_info_util

    return [
        Frame(
            each.function_name,
            each.file_name,
            each.start_line,
            each.start_column,
            each.end_line,
            each.end_column,
        )
        for each in source_info_util.user_frames(eqn.source_info.traceback)
    ]


def line_of_error(error: BaseException) -> str:
    """The user's innermost line in an error's traceback; empty if there is none."""
    from jax._src import source_info_util

    lines = [
        f"{frame.f_code.co_filename.rpartition('/')[2]}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if source_info_util.is_user_filename(frame.f_code.co_filename)
    ]
    return lines[-1] if lines else ""


def is_ordered(eqn: Any) -> bool:
    """Whether it has effects whose order with those of other equations must stay."""
    from jax._src import effects

    return bool(effects.ordered_effects.filter_in(eqn.effects))


def inner_jaxprs(eqn: Any) -> Iterator[Any]:
    """The jaxprs that the equation calls, loops over or chooses from."""
    from jax._src import core

    yield from core.jaxprs_in_params(eqn.params)


def inner_equations(eqn: Any) -> Iterator[Any]:
    """The equations of `inner_jaxprs`."""
    for jaxpr in inner_jaxprs(eqn):
        yield from jaxpr.eqns


def holds(eqn: Any, predicate: Callable[[Any], bool]) -> bool:
    """Whether it is true of the equation, or of one that it calls, however deep."""
    return predicate(eqn) or any(holds(inner, predicate) for inner in inner_equations(eqn))


def inlined(jaxpr: ClosedJaxpr, is_open: Callable[[Any], bool]) -> ClosedJaxpr:
    """The jaxpr with called functions inlined if `is_open(equation)`."""

    def is_inlined(eqn: Any) -> bool:
        return eqn.primitive.name in _CALLS and is_open(eqn)

    if not any(map(is_inlined, jaxpr.eqns)):
        return jaxpr

    def flat(*given: Any) -> list[Any]:
        return _run(jaxpr, given, is_inlined)

    return traced_again(flat, jaxpr.in_avals)


def evaluate(
    eqns: Iterable[Any],
    values: Environment,
    is_inlined: Callable[[Any], bool] = lambda eqn: False,
) -> None:
    """Runs equations on the values of their variables, and adds those of their results."""
    for eqn in eqns:
        operands = [value_of(atom, values) for atom in eqn.invars]
        with as_traced(eqn):
            if is_inlined(eqn):
                called = eqn.params.get("jaxpr", eqn.params.get("call_jaxpr"))
                made = _run(called, operands, is_inlined)
            else:
                made = bind(eqn, operands)
        values.update(zip(eqn.outvars, made, strict=True))


@contextmanager
def as_traced(eqn: Any) -> Iterator[None]:
    """Equations made inside have the line, the names and the metadata of this one."""
    from jax._src import source_info_util

    name_stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
    with (
        source_info_util.user_context(eqn.source_info.traceback, name_stack=name_stack),
        eqn.ctx.manager,
    ):
        yield


def bind(eqn: Any, operands: Iterable[Any], **changed: Any) -> list[Any]:
    """The results of the equation's primitive for other operands, maybe with other parameters."""
    parameters = eqn.primitive.get_bind_params({**eqn.params, **changed})
    made = eqn.primitive.bind(*operands, **parameters)
    return list(made) if eqn.primitive.multiple_results else [made]


def is_literal(atom: Any) -> bool:
    """Whether an equation's operand is a constant, not a variable."""
    return isinstance(atom, Literal)


def value_of(atom: Any, values: Mapping[Any, Any]) -> Any:
    """A variable's value, or a literal's own."""
    return atom.val if is_literal(atom) else values[atom]


def _run(jaxpr: ClosedJaxpr, given: Iterable[Any], is_inlined: Callable[[Any], bool]) -> list[Any]:
    values = dict(zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True))
    values.update(zip(jaxpr.jaxpr.invars, given, strict=True))
    evaluate(jaxpr.eqns, values, is_inlined)
    return [value_of(atom, values) for atom in jaxpr.jaxpr.outvars]
