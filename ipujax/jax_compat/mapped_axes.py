"""Mapped axes: their names, the values that vary over them, and `vmap` of their collectives."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax


def mapped_axes() -> dict[Any, int]:
    """Names and sizes of the axes that are mapped at the call, outermost first.

    JAX's public functions need the name of an axis.
    """
    from jax._src import core

    return dict(core.get_axis_env().axis_sizes)


def varying_axes(value: Any) -> frozenset[Any]:
    """The mapped axes over which a value may differ, as `shard_map(check_vma=True)` tracks them.

    Empty if they are not tracked. The attribute was renamed in each of JAX's last series.

    Args:
        value: an array, an abstract value, or a result of `jax.eval_shape`.
    """
    is_abstract = isinstance(value, (jax.ShapeDtypeStruct, jax.core.ShapedArray))
    shaped: Any = value if is_abstract else jax.typeof(value)
    known = shaped.manual_axis_type
    return frozenset() if known is None else frozenset(known.varying)


def num_sums(jaxpr: Any) -> int:
    """The number of equations that sum over mapped axes, with equal results on all of them.

    Examples are `jax.lax.psum` in `shard_map(check_vma=True)`, and derivatives by values that do
    not vary. Their primitive is private.
    """
    from jax._src import core
    from jax._src.lax import parallel

    jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
    inner = sum(num_sums(called) for called in core.subjaxprs(jaxpr))
    return inner + sum(eqn.primitive is parallel.psum_invariant_p for eqn in jaxpr.eqns)


def abstract_result(f: Callable[[Any], Any], aval: Any) -> tuple[Any, Any]:
    """The abstract result of f on one abstract array, and its effects, as primitives return them.

    JAX's public tracing functions drop the mapped axes over which the argument varies.
    """
    from jax._src import api_util, linear_util
    from jax._src.interpreters import partial_eval

    info = api_util.debug_info("abstract_result", f, (aval,), {})
    flat = linear_util.wrap_init(lambda x: [f(x)], debug_info=info)
    jaxpr, (result,), _ = partial_eval.trace_to_jaxpr_dynamic(flat, [aval])
    return result, jaxpr.effects


@functools.cache
def allow_vmap_of_grouped_all_to_all() -> None:
    """Lets `vmap` over another axis batch a grouped all_to_all; JAX refuses every `vmap` of one."""
    from jax._src.interpreters import batching
    from jax._src.lax import parallel

    others = batching.fancy_primitive_batchers[parallel.all_to_all_p]

    def batch(axis: Any, values: Any, dimensions: Any, **parameters: Any) -> Any:
        names = parameters["axis_name"]
        names = names if isinstance(names, (list, tuple)) else [names]
        if parameters["axis_index_groups"] is None or axis.name in names:
            return others(axis, values, dimensions, **parameters)
        return parallel._all_to_all_batcher(values, dimensions, **parameters)

    batching.fancy_primitive_batchers[parallel.all_to_all_p] = batch
