"""Calls of ports: host functions that are not Python, such as a feed's next batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ipujax.errors import FeedError
from ipujax.jax_compat.callbacks import CALLBACK_TARGET, io_effects
from ipujax.jax_compat.mapped_axes import abstract_result
from ipujax.jax_compat.platform import PLATFORM


@dataclass(frozen=True, eq=False)
class Port:
    """A host function that a program calls by an id; programs keep it alive."""

    id: str
    results: tuple[tuple[tuple[int, ...], np.dtype], ...]  #: shapes and dtypes
    elsewhere: Callable[..., Sequence[np.ndarray]]  #: the same call on other platforms
    owner: Any = None  #: an object that lives as long as programs that have the port


def call_port(port: Port, *operands: jax.Array) -> list[jax.Array]:
    """Calls the port once, at this point of the program; results vary as the operands do."""
    return _primitive().bind(*operands, port=port)


@functools.cache
def _primitive() -> Primitive:
    from jax._src import dispatch
    from jax._src.util import weakref_cache_key_types

    # JAX caches what `abstract` returns: the cache must not keep ports, which keep feeds and data.
    weakref_cache_key_types.add(Port)
    primitive = Primitive("ipu_port")
    primitive.multiple_results = True

    def abstract(*avals: Any, port: Port) -> tuple[Any, Any]:
        # An effect keeps calls whose results are unused; operands determine their order.
        results = [
            abstract_result(partial(_like, shape=shape, dtype=dtype), avals[0])[0]
            for shape, dtype in port.results
        ]
        return results, io_effects()

    primitive.def_impl(partial(dispatch.apply_primitive, primitive))
    primitive.def_effectful_abstract_eval(abstract)
    ad.primitive_jvps[primitive] = partial(_jvp, primitive)
    batching.primitive_batchers[primitive] = _batch
    mlir.register_lowering(primitive, _lower, cacheable=False)
    return primitive


def _jvp(primitive: Primitive, primals: Any, _: Any, *, port: Port) -> Any:
    """Values from the host are constants."""
    results = primitive.bind(*primals, port=port)
    return results, [ad.Zero(jax.typeof(y).to_tangent_aval()) for y in results]


def _batch(*_: Any, **__: Any) -> Any:
    raise FeedError(
        "[feeds] needs one loop with an infeed or outfeed for all examples of jax.vmap; got a "
        "jax.vmap of such a loop. Use jax.vmap in the body of the loop."
    )


def _like(x: jax.Array, shape: tuple[int, ...], dtype: Any) -> jax.Array:
    return jnp.broadcast_to(x.ravel()[0].astype(dtype), shape)


def _lower(ctx: Any, *operands: Any, port: Port) -> Any:
    from jax._src.interpreters import mlir as private_mlir

    if tuple(ctx.module_context.platforms) != (PLATFORM,):
        return mlir.lower_fun(partial(_call_elsewhere, port), multiple_results=True)(ctx, *operands)
    # The first keeps the port alive, the second keeps its program out of the disk cache.
    ctx.module_context.add_keepalive(port)
    ctx.module_context.add_host_callback(port.elsewhere)
    call = private_mlir.custom_call(
        CALLBACK_TARGET,
        result_types=[mlir.aval_to_ir_type(ctx.module_context, aval) for aval in ctx.avals_out],
        operands=operands,
        backend_config=port.id,
        has_side_effect=True,
    )
    return list(call.results)


def _call_elsewhere(port: Port, *operands: Any) -> Any:
    from jax.experimental import io_callback

    shapes = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in port.results]
    return io_callback(lambda *arrays: list(port.elsewhere(*arrays)), shapes, *operands)
