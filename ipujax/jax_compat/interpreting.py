"""Runs each primitive that is bound in a `with` statement in another way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

#: Results of a function of arrays that binds one primitive, for these operands.
Run = Callable[[Callable[..., list[Any]], Sequence[Any]], list[Any]]


@contextmanager
def interpreting(run: Run) -> Iterator[None]:
    """Passes primitives that are bound inside to `run`; those that `run` binds run as outside.

    JAX's public transformations are only for functions, not for a block of code; its own are
    traces, which get each primitive.
    """
    from jax._src import core

    with core.set_current_trace(_trace(core.trace_ctx.trace, run)):
        yield


def _trace(parent: Any, run: Run) -> Any:
    from jax._src import core

    class Interpreting(core.Trace):  # type: ignore[misc]  # JAX has no types for it
        __slots__ = ("parent_trace",)

        def __init__(self) -> None:
            super().__init__()
            self.parent_trace = parent

        def stage_value(self, val: Any) -> Any:
            return val

        def process_primitive(self, primitive: Any, tracers: Any, params: Any, /) -> Any:
            def call(*operands: Any) -> list[Any]:
                made = primitive.bind(*operands, **params)
                return list(made) if primitive.multiple_results else [made]

            with core.set_current_trace(parent):
                made = run(call, tracers)
            return made if primitive.multiple_results else made[0]

        def process_custom_jvp_call(
            self, primitive: Any, fun: Any, jvp: Any, tracers: Any, /, **params: Any
        ) -> Any:
            made = self.process_primitive(primitive, tracers, params | {"subfuns": (fun, jvp)})
            _settle(fun, jvp)
            return made

        def process_custom_vjp_call(
            self, primitive: Any, fun: Any, fwd: Any, bwd: Any, tracers: Any, /, **params: Any
        ) -> Any:
            subfuns = {"subfuns": (fun, fwd, bwd)}
            made = self.process_primitive(primitive, tracers, params | subfuns)
            _settle(fun, fwd)
            return made

    return Interpreting()


def _settle(fun: Any, rule: Any) -> None:
    """JAX takes the structure of results from the function or from its rule, whichever ran."""
    if any(map(_is_occupied, rule.stores)):
        for store in filter(_is_occupied, fun.stores):
            store.reset()


def _is_occupied(store: Any) -> bool:
    from jax._src.linear_util import StoreException

    try:
        return store is not None and store.val is not None
    except StoreException:
        return False
