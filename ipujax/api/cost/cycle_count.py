"""`cycle_count`: the cycle counter of the tiles, inside programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ipujax import jax_compat
from ipujax.api.arguments import array
from ipujax.api.custom.custom_calls import custom_call
from ipujax.errors import PlacementError

_TARGET = "ipu_cycle_count"  # compiler/rules/cycle_count.py


def cycle_count(*values: Any) -> tuple[Any, ...]:
    """Counts the cycles from the start of the program's run until these values are computed.

    The difference of two counts is the time of the operations between them:

    - an operation is before the count if the values depend on it;
    - it is after the count if it depends on the values that are returned.

    On the IPU Model these are the modelled cycles, including every iteration of loops.

    Args:
        values: pytrees of arrays.
    Returns:
        the values, and a uint32 scalar: the count modulo 2**32. Subtract counts as they are:
        differences below 2**32 cycles, 3 s, are correct.
    Raises:
        PlacementError: the program is lowered for another platform.

    Source: `ipu_cycle_count` of tessellate-ipu, `poplar::cycleStamp`.

    Example:
        >>> @jax.jit
        ... def timed(x):
        ...     x, begin = ipu.cycle_count(x)
        ...     y, end = ipu.cycle_count(jnp.tanh(x))
        ...     return y, end - begin
        >>> y, cycles = timed(jnp.ones(10_000))
        >>> bool(100 < cycles < 10_000)
        True
    """
    jax_compat.hide_frames(__file__)
    leaves, tree = jax.tree.flatten(values)
    *passed, words = _cycle_count_p.bind(
        *(array("ipu.cycle_count", "its values", x) for x in leaves)
    )
    return (*jax.tree.unflatten(tree, passed), words[0])


_cycle_count_p = Primitive(_TARGET)
_cycle_count_p.multiple_results = True


def _words() -> jax.core.ShapedArray:
    return jax.core.ShapedArray((2,), jnp.uint32)


def _jvp(primals: Any, tangents: Any) -> tuple[list[Any], list[Any]]:
    results = _cycle_count_p.bind(*primals)
    return results, [*tangents, ad.Zero(_words().to_tangent_aval())]


def _batch(values: Any, dims: Any) -> tuple[list[Any], list[Any]]:
    return _cycle_count_p.bind(*values), [*dims, None]


def _lower(ctx: Any, *operands: Any) -> Any:
    if tuple(ctx.module_context.platforms) != (jax_compat.PLATFORM,):
        raise PlacementError(
            f"[ipu.cycle_count] needs an IPU, whose tiles count cycles; got a program for "
            f"{', '.join(ctx.module_context.platforms)}. Place its arguments on an IPU."
        )
    return custom_call(_TARGET, {})(ctx, *operands)


_cycle_count_p.def_abstract_eval(lambda *avals: [*avals, _words()])
_cycle_count_p.def_impl(lambda *x: jax.jit(_cycle_count_p.bind)(*x))
ad.primitive_jvps[_cycle_count_p] = _jvp
batching.primitive_batchers[_cycle_count_p] = _batch
mlir.register_lowering(_cycle_count_p, _lower)
