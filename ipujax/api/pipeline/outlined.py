"""Outlined functions: compiled once, however often a program calls them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

from ipujax import jax_compat
from ipujax.annotations.placement import OUTLINED
from ipujax.errors import PlacementError


@dataclass(frozen=True)
class OutlinedLabel:
    """Tells the compiler about one call of an outlined function."""

    name: str

    def transposed(self) -> OutlinedLabel:
        return self

    def attributes(self) -> dict[str, str]:
        return {OUTLINED: self.name}


P = ParamSpec("P")
R = TypeVar("R")


def outlined(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Makes a pure function that is compiled once for all its calls in a program.

    Calls with equal shapes and dtypes on one IPU share one piece of code. They copy their arguments
    to its variables and their results from there, so a program needs less memory for code but more
    cycles for the copies. The result composes with all JAX transformations; functions derived from
    it, such as its gradient, are outlined in the same way. On other platforms it is a plain call.

    Args:
        fun: pure function of arrays and pytrees.
        name: used in the names of its operations; by default the function's name.
    Raises:
        PlacementError: `fun` is not a function.

    Example:
        >>> layer = ipu.outlined(lambda w, x: jnp.tanh(x @ w))
        >>> model = jax.jit(lambda w, x: layer(w[1], layer(w[0], x)))
        >>> print(model(jnp.ones((2, 3, 3)), jnp.zeros(3)))
        [0. 0. 0.]
    """
    if not callable(fun):
        raise PlacementError(
            f"[ipu.outlined] needs a function; got {fun!r}. Pass the function to outline."
        )
    label = OutlinedLabel(name if name is not None else getattr(fun, "__name__", "outlined"))

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        jax_compat.hide_frames(__file__)
        return jax_compat.call_with_label("ipu_outlined", label, fun, args, kwargs)

    return call
