"""Begins blocks at layers of a function without changing its code."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from ipujax import jax_compat
from ipujax.annotations.layers import matches
from ipujax.annotations.origins import layer_here
from ipujax.api.pipeline.blocks import TracedCall, block
from ipujax.errors import PlacementError

P = ParamSpec("P")
R = TypeVar("R")

_WHERE = "ipu.begin_blocks"
#: Maximum number of layers that an error lists.
_SHOWN = 20


def begin_blocks(fun: Callable[P, R], layers: Mapping[str, int | None]) -> Callable[P, R]:
    """Wraps a function so that a block begins at each of these layers and ends at the next one.

    A model's own code stays as it is: its layers are found by the names that reports have for them,
    named scopes and paths of modules. A block begins wherever a layer is entered, and holds
    everything until the next one begins; what comes before the first is in no block. If a layer and
    one inside it are entered together, the inner one begins. A loop, a branch or a checkpoint
    belongs to the block that begins in it. Blocks of `ipu.block` in the function keep their
    operations.

    Args:
        fun: pure function of arrays and pytrees.
        layers: for each layer, such as "Model/encoder", the number of the IPU in the JAX device,
            from 0, or None. `*` stands for any text and `?` for any character. The name given here
            is that of the block.
    Returns:
        A function of the same arguments and results, for `jit`, `grad`, `vmap` and strategies.
    Raises:
        PlacementError: the function has no such layer, two blocks begin in one loop, or `layers` is
            not such a mapping.

    Example:
        >>> def model(x):
        ...     with jax.named_scope("encoder"):
        ...         x = jnp.cos(x)
        ...     with jax.named_scope("head"):
        ...         return jnp.sum(x)
        >>> in_blocks = ipu.begin_blocks(model, {"encoder": 0, "head": 0})
        >>> print(ipu.ShardedExecution().apply(in_blocks)(jnp.zeros(3)))
        3.0
    """
    if not isinstance(layers, Mapping) or not layers:
        raise PlacementError(
            f"[{_WHERE}] needs the IPU of each block by layer; got {layers!r}. "
            'Pass a dict such as {"Model/encoder": 0, "Model/decoder": 1}.'
        )
    for name, number in layers.items():
        block(name, number)  # refuses wrong values at the call

    @functools.wraps(fun)
    def in_blocks(*args: Any, **kwargs: Any) -> Any:
        jax_compat.hide_frames(__file__)
        walk = _Walk([*layers])
        traced = TracedCall(fun, args, kwargs, walk.divides)
        begun: str | None = None
        for eqn in traced.jaxpr.eqns:
            begun = walk.begun(eqn) or begun
            if begun is None:
                jax_compat.evaluate([eqn], traced.values)
            else:
                with block(begun, layers[begun]):
                    jax_compat.evaluate([eqn], traced.values)
        walk.check()
        return traced.results()

    return in_blocks


class _Walk:
    """Goes through a function's equations and finds where layers are entered."""

    def __init__(self, names: list[str]):
        self._names = names
        self._inside: dict[str, int] = {}  #: layers entered and not left, with their depths
        self._seen: dict[str, None] = {}
        self._entered: set[str] = set()

    def divides(self, call: Any) -> bool:
        """Whether a call has operations in several of the layers."""
        return len({frozenset(self._around(layer)) for layer, _ in _layers_in(call)}) > 1

    def begun(self, eqn: Any) -> str | None:
        """The layer whose block begins at the equation, if any."""
        begun: dict[str, str] = {}
        for layer, line in _layers_in(eqn):
            self._seen.setdefault(layer)
            around = self._around(layer)
            new = around.keys() - self._inside.keys()
            self._inside = around
            if new:
                begun.setdefault(max(new, key=around.__getitem__), line)
                self._entered |= new
        if len(begun) > 1:
            first, second, *_ = (
                f"{name!r}{f' (at {line})' if line else ''}" for name, line in begun.items()
            )
            raise PlacementError(
                f"[{_WHERE}] needs blocks that begin outside of loops, branches and checkpoints; "
                f"got {first} and {second} in one {eqn.primitive.name!r}. Name one of the layers "
                "only, or write the loop out."
            )
        return next(iter(begun), None)

    def check(self) -> None:
        """Refuses names of layers that the function does not have."""
        missing = [name for name in self._names if name not in self._entered]
        if missing:
            known = [*filter(None, self._seen)]
            more = ", ..." if len(known) > _SHOWN else ""
            raise PlacementError(
                f"[{_WHERE}] needs layers that the function has: "
                f"{', '.join(map(repr, known[:_SHOWN])) or 'none'}{more}; "
                f"got {', '.join(map(repr, missing))}. Correct the name; ipu.report lists layers."
            )

    def _around(self, layer: str) -> dict[str, int]:
        """The named layers that this one is in, with their depths."""
        parts = layer.split("/")
        return {
            name: depth
            for depth in range(1, len(parts) + 1)
            for name in self._names
            if matches("/".join(parts[:depth]), name)
        }


def _layers_in(eqn: Any, around: str = "jit()") -> Iterator[tuple[str, str]]:
    """The layers of the operations in an equation, and their lines, in order."""
    name = f"{around}/{jax_compat.name_of(eqn)}".rstrip("/")
    inner = list(jax_compat.inner_equations(eqn))
    called = eqn.params.get("name")
    if inner and called and eqn.primitive.name == "jit":
        name = f"{name}/jit({called})"
    for found in inner:
        yield from _layers_in(found, name)
    if not inner:
        path = layer_here(f"{name}/{eqn.primitive.name}", jax_compat.frames_of(eqn))
        yield path, jax_compat.line_of(eqn)
