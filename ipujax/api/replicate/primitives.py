"""JAX primitives for GCL's collectives that `jax.lax` does not have.

Each is defined by a function of one replica's array, written with JAX's own collectives. From it
come the abstract evaluation, the derivatives, `vmap` over the replicas' axis and the lowering on
other platforms; on IPUs the primitive is lowered to a single collective.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ipujax import jax_compat

AxisNames = tuple[Any, ...]
Groups = tuple[tuple[int, ...], ...] | None


def _collective(
    name: str,
    composed: Callable[..., jax.Array],
    lowering: Callable[..., Any],
    batched: Callable[[dict[str, Any]], dict[str, Any]],
) -> Primitive:
    """A primitive of one array; one of its parameters is `axis_name`, a tuple.

    Args:
        composed: its definition in JAX's own collectives; takes the parameters by name.
        lowering: the lowering for IPUs.
        batched: returns the parameters for an array with a new first dimension.
    """
    primitive = Primitive(name)

    def abstract(aval: Any, **parameters: Any) -> tuple[Any, Any]:
        return jax_compat.abstract_result(lambda x: composed(x, **parameters), aval)

    def jvp(primals: Any, tangents: Any, **parameters: Any) -> tuple[Any, Any]:
        _, tangent = jax.jvp(lambda x: composed(x, **parameters), primals, tangents)
        return primitive.bind(*primals, **parameters), tangent

    def batch(axis: Any, values: Any, dims: Any, **parameters: Any) -> tuple[Any, Any]:
        (x,), (dim,) = values, dims
        if axis.name in parameters["axis_name"]:
            over = jax.vmap(
                lambda x: composed(x, **parameters),
                in_axes=dim,
                axis_name=axis.name,
                axis_size=axis.size,
            )
            return over(x), 0
        if dim is None:
            return primitive.bind(x, **parameters), None
        return primitive.bind(jnp.moveaxis(x, dim, 0), **batched(parameters)), 0

    others = mlir.lower_fun(composed, multiple_results=False)

    def lower(ctx: Any, x: Any, **parameters: Any) -> Any:
        is_ipu = tuple(ctx.module_context.platforms) == (jax_compat.PLATFORM,)
        return (lowering if is_ipu else others)(ctx, x, **parameters)

    primitive.def_effectful_abstract_eval(abstract)
    ad.primitive_jvps[primitive] = jvp
    batching.fancy_primitive_batchers[primitive] = batch
    mlir.register_lowering(primitive, lower)
    return primitive


# reduce_scatter ----------------------------------------------------------------------------------

#: GCL's operators other than sums: on stacked parts [replicas, ...], and on two numbers.
REDUCTIONS: dict[str, tuple[Callable[..., jax.Array], Callable[..., jax.Array]]] = {
    "mul": (jnp.prod, lax.mul),
    "min": (jnp.min, lax.min),
    "max": (jnp.max, lax.max),
    "logical_and": (jnp.all, lax.bitwise_and),
    "logical_or": (jnp.any, lax.bitwise_or),
}


def _exchange_and_reduce(
    x: jax.Array, *, op: str, axis_name: AxisNames, axis_index_groups: Groups, size: int, dim: int
) -> jax.Array:
    """[..., size * k, ...] -> [..., k, ...]: sends each part to the replica that reduces it."""
    parts = x.reshape(*x.shape[:dim], size, -1, *x.shape[dim + 1 :])
    parts = lax.all_to_all(
        parts, axis_name, dim, dim, axis_index_groups=axis_index_groups, tiled=True
    )
    reduce, _ = REDUCTIONS[op]
    return reduce(parts, axis=dim).astype(x.dtype)


def _lower_reduce_scatter(ctx: Any, x: Any, *, op: str, **parameters: Any) -> Any:
    (aval,) = ctx.avals_in
    if jnp.issubdtype(aval.dtype, jnp.complexfloating):  # GCL has no operator for these
        composed = mlir.lower_fun(_exchange_and_reduce, multiple_results=False)
        return composed(ctx, x, op=op, **parameters)
    _, combine = REDUCTIONS[op]
    return jax_compat.lower_reduce_scatter(combine, ctx, x, **parameters)


reduce_scatter_p = _collective(
    "ipu_reduce_scatter",
    _exchange_and_reduce,
    _lower_reduce_scatter,
    lambda parameters: {**parameters, "dim": parameters["dim"] + 1},
)


# broadcast ---------------------------------------------------------------------------------------


def _select_first(x: jax.Array, *, axis_name: AxisNames) -> jax.Array:
    """The x of replica 0: a sum over replicas of its bits, where the others are zero."""
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        parts = (_select_first(part, axis_name=axis_name) for part in (x.real, x.imag))
        return lax.complex(*parts)

    def masked_sum(value: jax.Array) -> jax.Array:
        first = lax.axis_index(axis_name) == 0
        return lax.psum(jnp.where(first, value, jnp.zeros_like(value)), axis_name)

    if not jnp.issubdtype(x.dtype, jnp.floating):
        narrow = x.dtype == bool or jnp.iinfo(x.dtype).bits < 8
        return masked_sum(x.astype(jnp.int32) if narrow else x).astype(x.dtype)
    if jnp.finfo(x.dtype).bits < 8:
        return _select_first(x.astype(jnp.float32), axis_name=axis_name).astype(x.dtype)

    # Summed as integers, which keeps -0.0 and the bits of a NaN.
    def select(value: jax.Array) -> jax.Array:
        bits = value.dtype.itemsize * 8
        word = lax.bitcast_convert_type(value, jnp.dtype(f"uint{bits}"))
        return lax.bitcast_convert_type(masked_sum(word), value.dtype)

    differentiable = jax.custom_jvp(select)
    differentiable.defjvps(lambda tangent, _, __: masked_sum(tangent))
    return differentiable(x)


broadcast_p = _collective(
    "ipu_broadcast", _select_first, jax_compat.lower_broadcast, lambda parameters: parameters
)
