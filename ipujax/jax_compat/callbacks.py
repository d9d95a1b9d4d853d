"""Python callbacks, lowered to custom calls of the plugin."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

import jax
import numpy as np
from jax.interpreters import mlir

from ipujax.errors import CallbackError
from ipujax.host import callbacks as host_callbacks
from ipujax.host.buffers import ExecutionContext, HostBuffer
from ipujax.host.logs import logger_of
from ipujax.jax_compat.platform import PLATFORM

logger = logger_of("plugin")

CALLBACK_TARGET = "ipu_python_callback"
#: On a callback that each device calls with its own block of the operands.
PARTITIONED = "ipu.partitioned"
#: Collects handles of callbacks, for lowerings whose result JAX does not keep.
collected: ContextVar[deque[Any]] = ContextVar("collected", default=deque(maxlen=0))  # noqa: B039


def allow_callbacks() -> None:
    """Lowers every kind of Python callback to a custom call that carries the callback's id.

    `pure_callback`, `io_callback` and checkify use `emit_python_callback`, which refuses unknown
    platforms. Other packages' lowering rules use it by its public name in `jax.interpreters.mlir`.
    `debug.print` and `debug.callback` only have lowering rules for named platforms, and that of
    `buffer_callback` refuses others by name.
    """
    from jax._src import buffer_callback, callback, debugging

    others = callback.emit_python_callback

    def emit(ctx: Any, function: Any, token: Any, *args: Any, **kwargs: Any) -> Any:
        if tuple(ctx.module_context.platforms) == (PLATFORM,):
            return _emit_callback(ctx, function, token, *args, **kwargs)
        return others(ctx, function, token, *args, **kwargs)

    callback.emit_python_callback = mlir.emit_python_callback = emit
    # Not cacheable: two uses of one callback must not share an id's lifetime.
    for primitive, rule in (
        (debugging.debug_callback_p, debugging.debug_callback_lowering),
        (debugging.debug_print_p, debugging.debug_print_lowering_rule),
    ):
        mlir.register_lowering(primitive, rule, platform=PLATFORM, cacheable=False)
    mlir.register_lowering(
        buffer_callback.buffer_callback_p,
        _lower_buffer_callback,
        platform=PLATFORM,
        cacheable=False,
    )


def forget_failed_effects() -> None:
    """Lets programs with ordered effects run after one of them failed, as they do on CPUs.

    JAX passes a token from each such program to the next, and a token of an asynchronous program
    that failed would fail all others of the process, and `jax.effects_barrier()` each time.
    """
    from jax._src.dispatch import RuntimeTokenSet

    get_token_input, block_until_ready = (
        RuntimeTokenSet.get_token_input,
        RuntimeTokenSet.block_until_ready,
    )

    def get_usable_token(self: Any, effect: Any, devices: Any) -> Any:
        try:
            return get_token_input(self, effect, devices)
        except jax.errors.JaxRuntimeError as error:
            logger.warning("an earlier program with ordered effects failed: %s", error)
            del self.current_tokens[effect]
            return get_token_input(self, effect, devices)

    def raise_once(self: Any) -> None:
        try:
            block_until_ready(self)
        except jax.errors.JaxRuntimeError:
            self.clear()
            raise

    RuntimeTokenSet.get_token_input = get_usable_token
    RuntimeTokenSet.block_until_ready = raise_once


@functools.cache
def allow_effects_in_checkpoints() -> None:
    """Lets `jax.checkpoint` contain `io_callback`, which JAX refuses there.

    Its rule keeps the results of all equations with effects, so a callback runs once.
    """
    from jax._src import callback, effects

    for effect in (callback.IOEffect, callback.OrderedIOEffect):
        effects.remat_allowed_effects.add_type(effect)


def lower_to_callback(
    ctx: Any,
    function: Callable[..., Sequence[object]],
    operands: Sequence[Any],
    *,
    has_side_effect: bool,
) -> Sequence[Any]:
    """Lowers a primitive to a call of a function of NumPy arrays, on any platform.

    `pure_callback` and `io_callback` would bring the operands to JAX's CPU backend first.
    """
    from jax._src import callback

    sharding = callback._callback_op_sharding(ctx.module_context.axis_context, None, ctx.avals_out)
    results, _, _ = callback.emit_python_callback(
        ctx,
        function,
        None,
        list(operands),
        ctx.avals_in,
        ctx.avals_out,
        has_side_effect=has_side_effect,
        returns_token=False,
        sharding=sharding,
    )
    return results


def _lower_buffer_callback(
    ctx: Any,
    *operands: Any,
    callback: Callable[..., object],
    in_tree: Any,
    out_tree: Any,
    has_side_effect: bool,
    input_output_aliases: Sequence[tuple[int, int]],
    **_: Any,
) -> Sequence[Any]:
    """A callback that fills its results; those with the memory of an argument begin as a copy."""
    results = [(aval.shape, aval.dtype) for aval in ctx.avals_out]
    sources = {result: argument for argument, result in input_output_aliases}

    def fill(*arguments: np.ndarray) -> list[np.ndarray]:
        filled = [
            arguments[sources[index]].copy() if index in sources else np.zeros(shape, dtype)
            for index, (shape, dtype) in enumerate(results)
        ]
        args, kwargs = jax.tree.unflatten(in_tree, map(HostBuffer, arguments))
        outputs = jax.tree.unflatten(out_tree, map(HostBuffer, filled))
        if callback(ExecutionContext(), outputs, *args, **kwargs) is not None:
            raise CallbackError(
                "[host callback] needs a function without results for buffer_callback; got one "
                "that returns a value. Write to its second argument instead."
            )
        return filled

    return lower_to_callback(ctx, fill, operands, has_side_effect=has_side_effect)


def io_effects() -> frozenset[Any]:
    """The effect of an unordered `io_callback`: equations that have it are not dropped.

    `jax.checkpoint` may contain such equations.
    """
    from jax._src import callback

    allow_effects_in_checkpoints()
    return frozenset({callback._IOEffect})


def _canonical(function: Callable[..., Sequence[object]]) -> Callable[..., tuple[Any, ...]]:
    """`function` with its results, Python numbers and lists too, in JAX's default dtypes."""
    from jax._src import dtypes

    x64 = bool(jax.config.jax_enable_x64)  # callbacks run on other threads

    def canonical(*arguments: np.ndarray) -> tuple[np.ndarray, ...]:
        with jax.enable_x64(x64):
            return tuple(dtypes.canonicalize_value(np.asarray(a)) for a in function(*arguments))

    return canonical


def _emit_callback(
    ctx: Any,
    function: Callable[..., Sequence[object]],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Sequence[Any], Any, Any]:
    """`custom_call @ipu_python_callback(token?, operands)`; signature and results are JAX's."""
    from jax._src import core
    from jax._src.interpreters import mlir as private_mlir

    del returns_token
    if partitioned and result_avals:
        raise ValueError(
            "[callback] needs a partitioned callback that returns nothing; got results. "
            "Leave out partitioned=True."
        )
    # Random keys reach callbacks as the integers that they are made of.
    operand_avals = [core.physical_aval(aval) for aval in operand_avals]

    canonical = _canonical(function)
    handle = host_callbacks.register(
        canonical,
        [aval.shape for aval in result_avals],
        [aval.dtype for aval in result_avals],
        [aval.dtype for aval in operand_avals],
    )
    # The first keeps the callback alive, the second keeps its program out of the disk cache.
    ctx.module_context.add_keepalive(handle)
    ctx.module_context.add_host_callback(canonical)
    collected.get().append(handle)

    result_types = [mlir.aval_to_ir_type(ctx.module_context, aval) for aval in result_avals]
    if token is not None:
        operands = [token, *operands]
        result_types = [mlir.token_type(), *result_types]
    call = private_mlir.custom_call(
        CALLBACK_TARGET,
        result_types=result_types,
        operands=operands,
        backend_config=handle.callback_id,
        has_side_effect=has_side_effect,
        extra_attributes={PARTITIONED: mlir.ir.UnitAttr.get()} if partitioned else None,
    )
    # JAX's sharding has no entry for the token; MLIR's verifier refuses a wrong count.
    if sharding is not None and token is None:
        private_mlir.set_sharding(ctx.module_context, call, sharding)
    results = list(call.results)
    if token is not None:
        token, *results = results
    return results, token, handle
