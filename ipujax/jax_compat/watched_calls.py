"""A hook into the calls of jitted functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class WatchedCall:
    """One call of a jitted function, after it ran.

    Attributes:
        name: the function's name.
        platforms: the platform of each device it ran on.
        effects: whether it has callbacks or ordered effects.
        arguments, results: as the compiled program takes and returns them.
        lower: returns its StableHLO for a platform, as bytecode.
        options: what `jax.jit(..., compiler_options=)` was given.
    """

    name: str
    platforms: list[str]
    effects: bool
    arguments: list[Any]
    results: list[Any]
    lower: Callable[[str], bytes]
    options: dict[str, Any]


@functools.cache
def watch_calls(watcher: Callable[[], Callable[[WatchedCall], None] | None]) -> None:
    """Passes each call of a jitted function to the function that `watcher()` returns, if any.

    There is no public hook. This one is where JAX dispatches calls in Python; while there is a
    watcher, JAX's fast path in C++ is off. A function that was called before must be traced again:
    enter a user context for that (`jax.make_user_context`).
    """
    from jax._src import pjit, traceback_util

    traceback_util.register_exclusion(__file__)  # as in compilation.py
    others, fast = pjit._pjit_call_impl_python, pjit._get_fastpath_data

    def call(*args: Any, **params: Any) -> Any:
        watch = watcher()
        if watch is None:
            return others(*args, **params)
        # Donated arguments are deleted by the call.
        copies = [_host_copy(a) for a in args]
        made = others(*args, **params)
        results, compiled, _, constants = made
        execute = compiled.unsafe_call
        inputs = [*map(_host_copy, constants), *copies]
        kept = [a for k, a in enumerate(inputs) if k in execute.kept_var_idx]
        watch(
            WatchedCall(
                params["name"],
                [device.platform for device in execute.xla_executable.local_devices()],
                bool(
                    execute.ordered_effects
                    or execute.has_unordered_effects
                    or execute.has_host_callbacks
                    or execute.mut
                ),
                [_in_dtype(a, aval) for a, aval in zip(kept, compiled.in_avals, strict=True)],
                [_host_copy(r) for r in results],
                functools.partial(_lowered_call, args, params),
                dict(params["compiler_options_kvs"]),
            )
        )
        return made

    def fastpath_data(*args: Any, **kwargs: Any) -> Any:
        return None if watcher() is not None else fast(*args, **kwargs)

    pjit._pjit_call_impl_python = call
    pjit._get_fastpath_data = fastpath_data


def _host_copy(value: Any) -> Any:
    """A NumPy copy of a value as programs see it; the value itself if this is impossible."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None and jnp.issubdtype(dtype, jax.dtypes.extended):
        value = jax.random.key_data(value)
    if isinstance(value, jax.Array) and not value.is_fully_addressable:
        return value
    return np.array(value)


def _in_dtype(array: Any, aval: Any) -> Any:
    """The array in the dtype that JAX gives it; Python numbers and 64-bit arrays may differ."""
    is_key = jnp.issubdtype(aval.dtype, jax.dtypes.extended)
    return array if is_key else array.astype(aval.dtype)


def _lowered_call(args: Sequence[Any], params: dict[str, Any], platform: str) -> bytes:
    """The call's program, lowered again for `platform`: JAX caches it for the first one only."""
    from jax._src import pjit
    from jax._src.interpreters import mlir as private_mlir

    # The arguments of `_pjit_call_impl_python`, with another platform.
    lowered = pjit._resolve_and_lower(
        [pjit.convert_to_metaty(a) for a in args],
        **params,
        lowering_platforms=(platform,),
        lowering_parameters=private_mlir.LoweringParameters(),
        pgle_profiler=None,
    )
    return bytes(private_mlir.module_to_bytecode(lowered.stablehlo()))
