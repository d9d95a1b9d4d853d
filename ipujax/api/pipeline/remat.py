"""Recomputation: a backward pass recomputes values instead of keeping them in tile memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast, overload

import jax

from ipujax import jax_compat
from ipujax.errors import PipelineError, check_choice
from ipujax.types import Recomputation

T = TypeVar("T")
P = ParamSpec("P")
R = TypeVar("R")

AUTO: Final = "auto"
THEN: Final = "then"
INTERLEAVED: Final = "interleaved"
MODES = (AUTO, THEN, INTERLEAVED)

#: The name that `recomputation_checkpoint` gives to values.
CHECKPOINT = "ipu.recomputation_checkpoint"
#: Primitives that draw from the state of a device, so that a second draw gives other values.
STATEFUL = frozenset({"rng_uniform"})


@dataclass(frozen=True)
class Kept:
    """The policy for `jax.checkpoint`: what is always kept, and what `policy` keeps."""

    policy: Callable[..., Any] | None = None

    def __call__(self, primitive: Any, *avals: Any, **parameters: Any) -> Any:
        is_checkpoint = primitive.name == "name" and parameters["name"] == CHECKPOINT
        if is_checkpoint or primitive.name in STATEFUL:
            return True
        return self.policy is not None and self.policy(primitive, *avals, **parameters)


@dataclass(frozen=True)
class Remat:
    """What is recomputed, and when; see `ipu.remat`."""

    policy: Callable[..., Any] | None = None
    mode: Recomputation = AUTO

    def __call__(self, fun: Callable[P, R]) -> Rematerialised[P, R]:
        return Rematerialised(fun, self)

    def apply(self, fun: Callable[P, R]) -> Callable[P, R]:
        """`fun`, whose derivative recomputes its inner values."""
        jax_compat.allow_effects_in_checkpoints()
        recomputed: Callable[P, R] = jax.checkpoint(fun, policy=Kept(self.policy))
        return recomputed


class Rematerialised(Generic[P, R]):
    """A function whose derivative recomputes its inner values."""

    def __init__(self, fun: Callable[P, R], remat: Remat):
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.remat = remat
        self._called = remat.apply(fun)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._called(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., R]:
        return self if instance is None else self.remat(MethodType(self.fun, instance))


@overload
def remat(
    fun: Callable[P, R],
    policy: Callable[..., Any] | None = ...,
    mode: Recomputation = ...,
) -> Rematerialised[P, R]: ...
@overload
def remat(
    fun: None = ...,
    policy: Callable[..., Any] | None = ...,
    mode: Recomputation = ...,
) -> Remat: ...


def remat(
    fun: Callable[..., Any] | None = None,
    policy: Callable[..., Any] | None = None,
    mode: Recomputation = AUTO,
) -> Any:
    """Makes the derivative of a function recompute its inner values instead of keeping them.

    Like `jax.checkpoint`, with IPU terms; results and gradients are the same, bit for bit. Values
    that `ipu.recomputation_checkpoint` names are kept, and so are values that would differ if
    recomputed: results of `io_callback`, and numbers drawn from a device's state. Random numbers
    from JAX keys are recomputed; so are debug prints, as JAX intends.

    Args:
        fun: pure function of arrays and pytrees. Without it the result is a decorator, which is
            also what `remat=` of `ipu.stage` and `ipu.pipeline` takes.
        policy: one of `jax.checkpoint_policies`, including offloading ones, that says which other
            values are kept; None: no others.
        mode: for a stage of a pipeline. "then": the stage runs again in the time slot before its
            backward pass; "interleaved": it runs again inside its backward pass, in pieces if the
            function has checkpoints; "auto": "then" in the schedule "interleaved", whose slots it
            balances, else "interleaved", which needs less memory.
    Returns:
        The function; or the decorator.
    Raises:
        PipelineError: `fun` or `policy` is not a function, or `mode` is unknown.

    Example:
        >>> def layers(weights, x):
        ...     x = ipu.recomputation_checkpoint(jnp.tanh(x @ weights[0]))
        ...     return jnp.tanh(x @ weights[1]).sum()
        >>> weights = jnp.stack([jnp.eye(2), jnp.eye(2)])
        >>> gradient = jax.grad(ipu.remat(layers))(weights, jnp.zeros((1, 2)))
        >>> print(gradient.shape)
        (2, 2, 2)
    """
    check_choice("ipu.remat", "mode", mode, MODES, PipelineError)
    if policy is not None and not callable(policy):
        raise PipelineError(
            f"[ipu.remat] needs a policy that is a function; got {policy!r}. "
            "Use one of jax.checkpoint_policies."
        )
    chosen = Remat(policy, mode)
    if fun is None:
        return chosen
    if not callable(fun):
        raise PipelineError(
            f"[ipu.remat] needs a function; got {fun!r}. Pass the function to recompute first."
        )
    return chosen(fun)


def recomputation_checkpoint(x: T) -> T:
    """Keeps values while the rest of a stage with `remat`, or of an `ipu.remat`, is recomputed.

    Elsewhere it does nothing. With "interleaved" recomputation, what is recomputed after a
    checkpoint does not need what comes before it.

    Args:
        x: pytree of arrays of any shapes.
    Returns:
        The same values.

    Example:
        >>> print(ipu.recomputation_checkpoint(jnp.arange(3)))
        [0 1 2]
    """
    # Imported here, because JAX imports this package while it looks for plugins.
    from jax.ad_checkpoint import checkpoint_name

    named: T = checkpoint_name(x, CHECKPOINT)
    return named


def as_remat(where: str, given: Any) -> Remat | None:
    """What `remat=` requests; None if it is None or False.

    Raises:
        PipelineError: it is not a value that `ipu.stage` takes.
    """
    if given is None or given is False:
        return None
    if given is True:
        return Remat()
    if isinstance(given, Remat):
        return given
    if isinstance(given, Rematerialised):
        return given.remat
    if isinstance(given, str) and given in MODES:
        return Remat(mode=cast(Recomputation, given))
    if not callable(given):
        raise PipelineError(
            f"[{where}] needs remat to be True, False, a policy, one of {', '.join(MODES)}, or "
            f"what ipu.remat returns; got {given!r}. Use one of these."
        )
    return Remat(given)
