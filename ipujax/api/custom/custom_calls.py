"""Primitives that are custom calls with parameters in JSON on IPUs, and functions elsewhere."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.ffi
from jax.extend.core import Primitive
from jax.interpreters import mlir

from ipujax import jax_compat

jax_compat.hide_frames(__file__)
for _package in ("nn", "ops", "tile"):  # their operations get the user's lines
    jax_compat.hide_frames(str(Path(__file__).parents[1] / _package))


def custom_call(target: str, config: dict[str, Any]) -> Any:
    """A lowering to a custom call whose parameters are JSON."""

    def lower(ctx: Any, *operands: Any, **_: Any) -> Any:
        return jax.ffi.ffi_lowering(target)(ctx, *operands, config=json.dumps(config))

    return lower


def register(
    primitive: Primitive,
    defined: Callable[..., Any],
    on_ipu: Callable[..., Any] | None,
) -> None:
    """Lowers a primitive to a custom call on IPUs, and to a JAX function elsewhere.

    Args:
        on_ipu: makes the lowering, given the parameters; None: as elsewhere.
    """
    elsewhere = mlir.lower_fun(defined, multiple_results=primitive.multiple_results)

    def lower(ctx: Any, *operands: Any, **parameters: Any) -> Any:
        is_ipu = tuple(ctx.module_context.platforms) == (jax_compat.PLATFORM,)
        lowering = on_ipu(**parameters) if is_ipu and on_ipu is not None else elsewhere
        return lowering(ctx, *operands, **parameters)

    mlir.register_lowering(primitive, lower)
    primitive.def_impl(
        lambda *operands, **parameters: _jitted(primitive, *sorted(parameters.items()))(*operands)
    )


@functools.lru_cache(maxsize=4096)
def _jitted(primitive: Primitive, *parameters: tuple[str, Any]) -> Any:
    """One function for each set of parameters, so that JAX finds its program again."""
    return jax.jit(partial(primitive.bind, **dict(parameters)))
