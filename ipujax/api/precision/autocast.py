"""`ipu.autocast`: functions whose operations are cast between float32 and float16 by a policy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, TypeVar, overload
from typing import cast as cast_type

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.api.arguments import flag
from ipujax.api.precision.casts import cast
from ipujax.api.precision.equations import Caster, block, is_inside, scope
from ipujax.api.precision.policy import CastPolicy
from ipujax.errors import ConfigError

jax_compat.hide_frames(__file__)

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def autocast(
    fun: Function,
    policy: CastPolicy | None = ...,
    *,
    enabled: bool = ...,
    results: Literal["original", "computed"] = ...,
) -> Function: ...
@overload
def autocast(
    fun: None = ...,
    policy: CastPolicy | None = ...,
    *,
    enabled: bool = ...,
    results: Literal["original", "computed"] = ...,
) -> Scope: ...


def autocast(
    fun: Callable[..., Any] | None = None,
    policy: CastPolicy | None = None,
    *,
    enabled: bool = True,
    results: Literal["original", "computed"] = "original",
) -> Callable[..., Any] | Scope:
    """The function with operations cast to float16 or float32, as a policy says.

    A transform like `jax.checkpoint`: it composes with jit, grad, vmap and the others, and changes
    loops, branches, checkpoints, calls and custom derivatives inside the function, too. Conversions
    in the function (`astype`) stay. Values carried by loops keep their dtypes, and so do operations
    without a float16 form. Gradients have the dtypes of the arguments.

    Without `fun` it is a decorator, and a scope for a `with` statement, which casts what is traced
    or run inside. There, values keep the dtypes that they have without casts. Inside an autocast
    function or scope, another one casts by its policy, or not at all with `enabled=False`.

    Args:
        fun: a function of pytrees; the arrays among their leaves are cast. Other leaves, such as
            Python numbers, stay as they are.
        policy: default: `ipu.CastPolicy()`.
        enabled: whether to cast.
        results: "original": float16 and float32 results have the dtypes that `fun` gives without
            casts; "computed": the dtypes that they are computed in, as in PopTorch.
    Raises:
        ConfigError: an invalid policy or `results`; a `with` statement outside any autocast
            function with `results="computed"`.

    Source: PopTorch User Guide, "Automatic mixed-precision casting".

    Example:
        >>> def layer(w, x):
        ...     y = jnp.dot(x, w)  # in float16
        ...     with ipu.autocast(enabled=False):
        ...         return jax.nn.softmax(y)  # in float32
        >>> w, x = jnp.eye(3), jnp.ones((2, 3))
        >>> jax.jit(ipu.autocast(layer))(w, x).dtype
        dtype('float32')
        >>> gradient = jax.grad(lambda w: ipu.autocast(layer)(w, x)[0, 0])(w)
        >>> gradient.dtype, gradient.shape
        (dtype('float32'), (3, 3))
    """
    policy = CastPolicy() if policy is None else policy
    if not isinstance(policy, CastPolicy):
        raise ConfigError(
            f"[ipu.autocast] needs an ipu.CastPolicy; got {policy!r}. Pass policy=ipu.CastPolicy("
            "fp16=[...], fp32=[...])."
        )
    if not isinstance(results, str) or results not in ("original", "computed"):
        raise ConfigError(
            f'[ipu.autocast] needs results="original" or "computed"; got {results!r}. Use one of '
            "them."
        )
    made = Scope(policy if flag("ipu.autocast", "enabled", enabled) else None, results)
    if fun is None:
        return made
    if not callable(fun):
        raise ConfigError(f"[ipu.autocast] needs a function; got {fun!r}. Pass policy= by name.")
    return made(fun)


class Scope:
    """What `ipu.autocast()` without a function returns: a decorator and a context manager."""

    def __init__(self, policy: CastPolicy | None, results: str) -> None:
        self._policy, self._results = policy, results
        self._entered: list[AbstractContextManager[Any]] = []

    def __call__(self, fun: Function) -> Function:
        """The function, cast."""

        @functools.wraps(fun, updated=())
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if is_inside():
                with scope(self._policy):
                    return fun(*args, **kwargs)
            if self._policy is None:
                return fun(*args, **kwargs)
            return _call(fun, self._policy, self._results, args, kwargs)

        return cast_type(Function, wrapped)

    def __enter__(self) -> None:
        if is_inside():
            entered = scope(self._policy)
        elif self._policy is None:
            entered = nullcontext()
        else:
            self._check_results()
            entered = block(self._policy)
        entered.__enter__()
        self._entered.append(entered)

    def _check_results(self) -> None:
        if self._results != "original":
            raise ConfigError(
                f'[ipu.autocast] needs results="original" in a `with` statement; got '
                f"{self._results!r}. Wrap a function with ipu.autocast(fun, results=...)."
            )

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


def _call(fun: Callable[..., Any], policy: CastPolicy, results: str, args: Any, kwargs: Any) -> Any:
    leaves, tree = jax.tree.flatten((args, kwargs))
    arrays = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
    made: list[Any] = []

    def flat(*given: Any) -> list[Any]:
        new = dict(zip(arrays, given, strict=True))
        here = [new.get(i, leaf) for i, leaf in enumerate(leaves)]
        args, kwargs = jax.tree.unflatten(tree, here)
        outputs, out_tree = jax.tree.flatten(fun(*args, **kwargs))
        made.append((outputs, out_tree))
        return [output for output in outputs if _is_array(output)]

    given = [leaves[i] for i in arrays]
    caster = Caster(policy)
    jaxpr, captured = caster.trace(flat, given)
    values = caster.closed(jaxpr, [*captured, *given])
    if results == "original":
        values = [cast(x, aval.dtype) for x, aval in zip(values, jaxpr.out_avals, strict=True)]
    outputs, out_tree = made[-1]
    rest = iter(values)
    return jax.tree.unflatten(out_tree, [next(rest) if _is_array(x) else x for x in outputs])


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray, np.generic))
