"""The primitives by which a compiled step looks up and updates a table in the host's memory.

Each is one call of a function of NumPy arrays on the host, `function`, which is hashable. Operands
are a token, ids, arrays that belong to them, and the number of the replica. Under `jax.vmap` all
examples are one call; if `vmap` is over the replicas' axis, there is one for each replica.

A `function` refers weakly to its table. Programs for calls outside `jit` are kept as long as that
table lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ipujax import jax_compat
from ipujax.api.embed.table.table import HostTable
from ipujax.errors import ConfigError

#: Abstract values of the operands -> that of the result.
_Abstract = Callable[..., Any]


def _host_primitive(
    name: str, result: _Abstract, num_shared: int, has_effect: bool, where: str
) -> Primitive:
    """A primitive whose result is what `function` returns.

    Operands are `num_shared` scalars, which all examples share; arrays that have the examples'
    dimensions; the replica.

    Args:
        result: of the operands and parameters; only its shape, dtype and mapped axes matter.
    """
    primitive = Primitive(name)

    def abstract(*avals: Any, **parameters: Any) -> tuple[Any, Any]:
        # Traced for one array, so that the result varies over the same mapped axes.
        widest = avals[-2]
        made, _ = jax_compat.abstract_result(lambda x: result(avals, x, **parameters), widest)
        return made, jax_compat.io_effects() if has_effect else frozenset()

    def jvp(*_: Any, **__: Any) -> Any:
        raise ConfigError(
            f"[HostEmbedding.{where}] needs arguments that are not differentiated; got a "
            "derivative of a derivative. Use jax.lax.stop_gradient."
        )

    def lower(ctx: Any, *operands: Any, function: Any, **_: Any) -> Sequence[Any]:
        def on_host(*arrays: Any) -> tuple[np.ndarray]:
            return (function(*map(np.asarray, arrays)),)

        return jax_compat.lower_to_callback(ctx, on_host, operands, has_side_effect=has_effect)

    primitive.def_impl(_evaluation(primitive))
    primitive.def_effectful_abstract_eval(abstract)
    ad.primitive_jvps[primitive] = jvp
    batching.primitive_batchers[primitive] = _batching(primitive, num_shared, where)
    mlir.register_lowering(primitive, lower, cacheable=False)
    return primitive


def _evaluation(primitive: Primitive) -> Callable[..., Any]:
    """Evaluates the primitive outside `jit`, compiled once for each table."""
    programs: WeakKeyDictionary[HostTable, Callable[..., Any]] = WeakKeyDictionary()

    def jitted(**parameters: Any) -> Any:
        return jax.jit(lambda *operands: primitive.bind(*operands, **parameters))

    def evaluate(*operands: Any, function: Any, **parameters: Any) -> Any:
        table = function.table()
        find = jitted if table is None else programs.setdefault(table, cache(jitted))
        return find(function=function, **parameters)(*operands)

    return evaluate


def _batching(primitive: Primitive, num_shared: int, where: str) -> Callable[..., Any]:
    """The batching rule: all examples in one call, or one call for each replica."""

    def batch(operands: Any, dims: Any, **parameters: Any) -> tuple[jax.Array, int | None]:
        if any(dim is not None for dim in dims[:num_shared]):
            raise ConfigError(
                f"[HostEmbedding.{where}] needs one token for all examples of jax.vmap; got some. "
                "Use in_axes=None for it."
            )
        sizes = {x.shape[dim] for x, dim in zip(operands, dims, strict=True) if dim is not None}
        (size,) = sizes
        if dims[-1] is not None:
            each = [
                [
                    x if dim is None else jnp.take(x, i, axis=dim)
                    for x, dim in zip(operands, dims, strict=True)
                ]
                for i in range(size)
            ]
            return jnp.stack([primitive.bind(*one, **parameters) for one in each]), 0
        arrays = [
            jnp.broadcast_to(x, (size, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)
            for x, dim in zip(operands[num_shared:-1], dims[num_shared:-1], strict=True)
        ]
        made = primitive.bind(*operands[:num_shared], *arrays, operands[-1], **parameters)
        return made, 0 if made.ndim else None

    return batch


def _rows(avals: Any, ids: Any, *, columns: int, dtype: Any, **_: Any) -> Any:
    return jnp.broadcast_to(ids[..., None], (*ids.shape, columns)).astype(dtype)


def _count(avals: Any, gradients: Any, **_: Any) -> Any:
    return jnp.sum(gradients.astype(jnp.float32))


#: (token, ids [...], replica) -> rows [..., columns] of the dtype.
lookup_p = _host_primitive("ipu_host_lookup", _rows, 1, False, "lookup")
#: (token, learning rate, ids [...], gradients [..., columns], replica) -> 1.0.
update_p = _host_primitive("ipu_host_update", _count, 2, True, "update")
#: (ids [...], replica) -> 0.0.
lookup_ahead_p = _host_primitive("ipu_host_lookup_ahead", _count, 0, True, "lookup_ahead")
