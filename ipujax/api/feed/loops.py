"""`repeat` and `while_loop`: many steps in one device call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.feed.keys import as_words
from ipujax.api.feed.outfeed import Outfeed
from ipujax.errors import FeedError


class Source(Protocol):
    """Gives a loop its batches: `ipujax.Infeed`, `ipujax.data.Synthetic`."""

    def begin(self) -> Any: ...
    def fetch(self, cursor: Any) -> tuple[Any, Any]: ...
    def fetch_or_stop(self, cursor: Any) -> tuple[Any, Any, Any]: ...


class _State(NamedTuple):
    """What a loop carries."""

    step: Any  #: int32[]: steps done
    goes_on: Any  #: bool[]: whether the data have not ended
    carry: Any  #: the user's
    source: Any  #: cursor, () without an infeed
    sink: Any
    held: Any  #: what the outfeed holds


class _Result(NamedTuple):
    """Result of the user's body."""

    carry: Any
    out: Any


def repeat(
    n: Any,
    body: Callable[..., Any],
    init: Any = (),
    *,
    infeed: Source | None = None,
    outfeed: Outfeed | None = None,
    stop_at_end: bool = False,
) -> Any:
    """Runs a step n times in one device call.

    Args:
        n: the number of steps; an int, or an int32 array.
        body: `body(carry)`, or `body(carry, batch)` with an infeed. Returns the next carry; with an
            outfeed, a pair of the carry and a pytree of arrays for the outfeed. A step is traced
            once.
        init: the first carry: a pytree of arrays whose shapes and dtypes the body keeps.
        infeed: gives each step a batch.
        outfeed: takes each step's result.
        stop_at_end: end the loop when the infeed's data end, instead of failing.
    Returns:
        the last carry; with `stop_at_end`, a pair of it and the number of steps (int32).
    Raises:
        FeedError: the body returns something else, or there is no infeed for `stop_at_end`.
        JaxRuntimeError: when the program runs: the data ended, could not be read or came too late.

    Source: `ipu.loops.repeat` of Graphcore's TensorFlow; `deviceIterations` of PopTorch.

    Example:
        >>> print(jax.jit(lambda x: ipu.repeat(10, lambda x: 2 * x, x))(1))
        1024
    """
    loop = _Loop(body, infeed, outfeed, stop_at_end, "repeat")
    state = loop.first(init)
    if stop_at_end:
        last = lax.while_loop(lambda s: (s.step < n) & s.goes_on, loop.step_or_stop, state)
    else:
        last = lax.fori_loop(0, n, lambda _, s: loop.step(s), state)
    return loop.results(last)


def while_loop(
    cond: Callable[[Any], Any],
    body: Callable[..., Any],
    init: Any = (),
    *,
    infeed: Source | None = None,
    outfeed: Outfeed | None = None,
    stop_at_end: bool = False,
    maximum_steps: int | None = None,
) -> Any:
    """Runs a step while a condition on the carry holds, in one device call.

    Args:
        cond: a function of the carry that returns a bool scalar.
        body, init, infeed, outfeed, stop_at_end: as in `ipujax.repeat`.
        maximum_steps: ends the loop after this many steps; None: no limit.
    Returns:
        as `ipujax.repeat`.
    Raises:
        FeedError, JaxRuntimeError: as `ipujax.repeat`.

    Source: `ipu.loops.while_loop` of Graphcore's TensorFlow.

    Example:
        >>> infeed = ipu.Infeed(np.arange(100, dtype=np.float32))
        >>> program = lambda: ipu.while_loop(lambda x: x < 10, jnp.add, 0.0, infeed=infeed)
        >>> print(jax.jit(program)(), infeed.position)
        10.0 5
    """
    loop = _Loop(body, infeed, outfeed, stop_at_end, "while_loop")

    def goes_on(state: _State) -> Any:
        more = jnp.asarray(cond(state.carry))
        if stop_at_end:
            more &= state.goes_on
        return more if maximum_steps is None else more & (state.step < maximum_steps)

    step = loop.step_or_stop if stop_at_end else loop.step
    return loop.results(lax.while_loop(goes_on, step, loop.first(init)))


class _Loop:
    """One loop: turns a step of the user's into a step of the whole state."""

    def __init__(
        self,
        body: Callable[..., Any],
        infeed: Source | None,
        outfeed: Outfeed | None,
        stop_at_end: bool,
        where: str,
    ):
        if stop_at_end and infeed is None:
            raise FeedError(
                f"[{where}] needs an infeed for stop_at_end=True; got none. Pass one, or False."
            )
        self.body, self.infeed, self.outfeed = body, infeed, outfeed
        self.stop_at_end, self.where = stop_at_end, where

    def first(self, init: Any) -> _State:
        carry = jax.tree.map(jnp.asarray, init)
        source: Any = () if self.infeed is None else self.infeed.begin()
        sink: Any = ()
        held: Any = ()
        if self.outfeed is not None:
            sink = self.outfeed.begin()
            held = self.outfeed.held(jax.eval_shape(self._out_of, carry, source))
        zero = jnp.int32(0)
        if self.stop_at_end and getattr(source, "shape", None) == ():
            zero += 0 * jnp.asarray(source, jnp.int32)  # varies over the same replicas
        return _State(zero, zero == 0, carry, source, sink, held)

    def step(self, state: _State) -> _State:
        if self.infeed is None:
            return self._after(state, self._call(state.carry), state.source)
        source, batch = self.infeed.fetch(state.source)
        return self._after(state, self._call(state.carry, batch), source)

    def step_or_stop(self, state: _State) -> _State:
        assert self.infeed is not None
        source, found, batch = self.infeed.fetch_or_stop(state.source)
        return lax.cond(
            found,
            lambda: self._after(state, self._call(state.carry, batch), source),
            lambda: state._replace(goes_on=jnp.zeros_like(state.goes_on), source=source),
        )

    def results(self, last: _State) -> Any:
        if self.outfeed is not None:
            self.outfeed.end(last.sink, last.held, last.step)
        return (last.carry, last.step) if self.stop_at_end else last.carry

    def _after(self, state: _State, made: _Result, source: Any) -> _State:
        sink, held = state.sink, state.held
        if self.outfeed is not None:
            sink, held = self.outfeed.step(sink, held, state.step, as_words(made.out))
        return _State(state.step + 1, state.goes_on, made.carry, source, sink, held)

    def _out_of(self, carry: Any, source: Any) -> Any:
        batch = () if self.infeed is None else (self.infeed.fetch(source)[1],)
        return jax.tree.map(jnp.asarray, as_words(self._call(carry, *batch).out))

    def _call(self, carry: Any, *batch: Any) -> _Result:
        made = self.body(carry, *batch)
        out = None
        if self.outfeed is not None:
            if not isinstance(made, tuple) or len(made) != 2:
                raise FeedError(
                    f"[{self.where}] needs a body that returns a pair (carry, result for the "
                    f"outfeed); got {type(made).__name__}. Return both, or pass no outfeed."
                )
            made, out = made
        if jax.tree.structure(made) != jax.tree.structure(carry):
            raise FeedError(
                f"[{self.where}] needs a body that returns a carry like the first one, "
                f"{jax.tree.structure(carry)}; got {jax.tree.structure(made)}. "
                "Return the same structure."
            )
        return _Result(jax.tree.map(_as, made, carry), out)


def _as(made: Any, like: Any) -> Any:
    """Python numbers take the carry's dtype."""
    return made if isinstance(made, jax.Array) else jnp.asarray(made, like.dtype)
