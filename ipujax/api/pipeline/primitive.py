"""The primitive behind `ipu.pipeline`: a loop over micro-batches that reduces their results.

Its derivative with respect to a scalar is a loop of the same kind, whose micro-batches give the
value and the gradient together. So each forward pass is followed at once by its backward pass, and
values for the backward pass are kept for a few micro-batches instead of all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import compress, islice
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from ipujax import jax_compat
from ipujax.api.pipeline.accumulators import divide_by_place
from ipujax.api.pipeline.loops import (
    ACCUMULATED,
    ALL,
    MEAN,
    RUNNING_MEAN,
    SUM,
    Loop,
    Output,
    accumulator_dtype,
    run,
)
from ipujax.api.pipeline.serialized import run_by_stage
from ipujax.api.precision import calls as autocast_calls
from ipujax.api.precision.casts import cast_like

pipeline_p = Primitive("ipu_pipeline")
pipeline_p.multiple_results = True


def _call(*operands: Any, jaxpr: ClosedJaxpr, loop: Loop) -> list[Any]:
    """The loop as a call, with one accumulator for each place that adds to a result."""
    is_accumulated = [output.kind in ACCUMULATED for output in loop.outputs]
    may_be_divided = [False] * loop.num_carried + is_accumulated
    divided, counts = divide_by_place(jaxpr, may_be_divided, overlaps=loop.overlaps)
    outputs = [
        output
        for output, count in zip(loop.outputs, counts[loop.num_carried :], strict=True)
        for _ in range(count)
    ]

    def joined(*given: Any) -> list[Any]:
        wider = replace(loop, outputs=tuple(outputs))
        results = iter(run_by_stage(divided, wider, *given))
        return [functools.reduce(lax.add, islice(results, count)) for count in counts]

    return _called(joined, operands, loop)


def _called(fun: Callable[..., list[Any]], operands: Sequence[Any], loop: Loop) -> list[Any]:
    """Calls the function so that the compiler takes it, and its derivatives, for this loop."""
    jaxpr, captured = jax_compat.trace_call(fun, operands)
    call_p = jax_compat.call_primitive("ipu_pipeline_loop")
    return list(call_p.bind(*captured, *operands, jaxpr=jaxpr, label=loop))


def _abstract(*avals: Any, jaxpr: ClosedJaxpr, loop: Loop) -> tuple[list[Any], Any]:
    carried, results = jaxpr.out_avals[: loop.num_carried], jaxpr.out_avals[loop.num_carried :]
    found = list(carried)
    for output, aval in zip(loop.outputs, results, strict=True):
        shape = (loop.micro_batches, *aval.shape) if output.kind == ALL else aval.shape
        found.append(aval.update(shape=shape, dtype=output.dtype_for(aval), weak_type=False))
    return found, jaxpr.effects


def _jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, loop: Loop) -> Any:
    """Scalars: by their gradients, from one loop. Other results: by JAX's own loop.

    The results come from the same loop, as a custom rule may compute them in its own way.
    """
    moves = [_is_moving(tangent) for tangent in tangents]
    outputs = [_is_inexact(aval) for aval in jaxpr.out_avals]
    own = range(loop.num_carried, len(outputs))
    scalars = [
        i
        for i in own
        if outputs[i]
        and jaxpr.out_avals[i].shape == ()
        and loop.outputs[i - loop.num_carried].kind in ACCUMULATED
        and _is_apart(jaxpr, i, moves)
    ]
    others = [i for i in own if outputs[i] and i not in scalars] if any(moves) else []
    there = [loop.whole(i, t) for i, t in enumerate(tangents) if moves[i]]
    results: Sequence[Any] = []
    by_scan: Sequence[Any] = []
    gradients: dict[int, list[Any]] = {}
    if others:
        whole = [loop.whole(i, x) for i, x in enumerate(primals)]
        plain = replace(loop, partitions=())
        results, by_scan = _values_and_tangents_by_scan(moves, jaxpr, plain, whole, there)
    if scalars or not others:
        results, gradients = _with_gradients(scalars, moves, jaxpr, loop, primals)
    found: list[Any] = [_zero(result) for result in results]
    for i, gradient in gradients.items():
        found[i] = _inner_product(gradient, there, results[i])
    for i in others:
        found[i] = by_scan[i]
    return results, found


def _is_apart(jaxpr: ClosedJaxpr, index: int, moves: Sequence[bool]) -> bool:
    """Whether a replica's gradient is that of its own result alone, without a sum over replicas."""
    axes = jax_compat.varying_axes(jaxpr.out_avals[index])
    alike = [jax_compat.varying_axes(aval) == axes for aval in compress(jaxpr.in_avals, moves)]
    return all(alike) and not (axes and jax_compat.num_sums(jaxpr))


def _is_moving(tangent: Any) -> bool:
    return type(tangent) is not ad.Zero and tangent.dtype != jax.dtypes.float0


def _is_inexact(aval: Any) -> bool:
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))


def _zero(primal: Any) -> Any:
    return ad.Zero(jax.typeof(primal).to_tangent_aval())


def _inner_product(gradient: Sequence[Any], tangents: Sequence[Any], like: Any) -> Any:
    terms = [jnp.sum(g * t.astype(g.dtype)) for g, t in zip(gradient, tangents, strict=True)]
    return sum(terms[1:], terms[0]).astype(like.dtype) if terms else _zero(like)


def _values_and_tangents_by_scan(
    moves: list[bool], jaxpr: ClosedJaxpr, loop: Loop, primals: Any, tangents: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    def of_moving(*moving: Any) -> list[Any]:
        rest = iter(moving)
        whole = [next(rest) if moved else x for x, moved in zip(primals, moves, strict=True)]
        return _called(functools.partial(run, jaxpr, loop), whole, loop)

    return jax.jvp(of_moving, tuple(compress(primals, moves)), tuple(tangents))


def _with_gradients(
    scalars: list[int], moves: list[bool], jaxpr: ClosedJaxpr, loop: Loop, primals: Any
) -> tuple[list[Any], dict[int, list[Any]]]:
    """All results, and the gradient of each of `scalars` with respect to the operands that move."""
    if not scalars or not any(moves):
        return pipeline_p.bind(*primals, jaxpr=jaxpr, loop=loop), {}
    fun, num_results = jaxpr_as_fun(jaxpr), len(jaxpr.out_avals)
    kinds = [loop.outputs[i - loop.num_carried].kind for i in scalars]
    # A mean's gradient is a sum of gradients that start from its share, as in a plain function.
    seeds = [1 / loop.micro_batches if kind == MEAN else 1 for kind in kinds]

    def with_gradients(*operands: Any) -> list[Any]:
        def of_moving(*moving: Any) -> Any:
            rest = iter(moving)
            whole = [next(rest) if moved else x for x, moved in zip(operands, moves, strict=True)]
            results = fun(*whole)
            return [results[i] for i in scalars], results

        values, pull_back, results = jax.vjp(of_moving, *compress(operands, moves), has_aux=True)
        gradients = []
        for i, seed in enumerate(seeds):
            own = [jnp.full_like(v, seed if i == j else 0) for j, v in enumerate(values)]
            gradients += pull_back(own)
        return [*results, *gradients]

    outputs = list(loop.outputs)
    for kind in kinds:
        outputs += _gradient_outputs(SUM if kind == MEAN else kind, moves, jaxpr, loop)
    derived, captured = jax_compat.trace_avals(with_gradients, jaxpr.in_avals)
    # Rules of custom derivatives may capture arrays.
    wider = loop.sharing(len(captured), outputs=tuple(outputs))
    given = pipeline_p.bind(*captured, *primals, jaxpr=derived, loop=wider)
    results, rest = list(given[:num_results]), iter(given[num_results:])
    is_batched = [i >= loop.num_unbatched for i, moved in enumerate(moves) if moved]
    gradients = {}
    for i, kind in zip(scalars, kinds, strict=True):
        share = loop.micro_batches if kind == RUNNING_MEAN else 1
        own = [next(rest) for _ in is_batched]
        gradients[i] = [
            g / share if of_batch else g for g, of_batch in zip(own, is_batched, strict=True)
        ]
    return results, gradients


def _gradient_outputs(kind: str, moves: list[bool], jaxpr: ClosedJaxpr, loop: Loop) -> list[Output]:
    """A shared operand's gradient is reduced like its scalar; a slice has its own gradient."""
    found = []
    for i, (aval, moved) in enumerate(zip(jaxpr.in_avals, moves, strict=True)):
        if not moved:
            continue
        shared = i < loop.num_unbatched
        found.append(
            Output(kind, accumulator_dtype(loop.accumulate_dtype, aval)) if shared else Output(ALL)
        )
    return found


def _batch(axis: Any, values: Any, dims: Any, *, jaxpr: ClosedJaxpr, loop: Loop) -> Any:
    """Each micro-batch is mapped; the mapped axis comes after that of micro-batches.

    A result is mapped if it depends on mapped values: `jax.jacfwd` needs unmapped ones.
    """
    first, second = loop.num_shared, loop.num_unbatched
    mapped = [dim is not None for dim in dims]
    # State is mapped if a micro-batch gets or returns it mapped.
    for _ in range(loop.num_carried + 1):
        state = mapped[first:second]
        instantiated = [*state, *[False] * len(loop.outputs)]
        derived, mapped_results = jax_compat.batched(jaxpr, axis, mapped, instantiated)
        mapped[first:second] = mapped_results[: loop.num_carried]
        if mapped[first:second] == state:
            break
    operands = [
        _with_axis(value, dim, int(i >= second), axis.size) if needed else value
        for i, (value, dim, needed) in enumerate(zip(values, dims, mapped, strict=True))
    ]
    results = pipeline_p.bind(*operands, jaxpr=derived, loop=loop)
    places = [0] * loop.num_carried + [int(o.kind == ALL) for o in loop.outputs]
    return results, [
        place if there else None for place, there in zip(places, mapped_results, strict=True)
    ]


def _with_axis(value: Any, dim: int | None, place: int, size: int) -> Any:
    """The value with its mapped axis at a place; without one, repeated along a first axis."""
    if dim is None:
        return jnp.broadcast_to(value, (size, *value.shape))
    return jnp.moveaxis(value, dim, place)


def _eliminate_dead(used: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    jaxpr, loop = eqn.params["jaxpr"], eqn.params["loop"]
    if not any(used) and not jaxpr.effects:
        return [False] * len(eqn.invars), None
    kept = [True] * loop.num_carried + used[loop.num_carried :]
    carried = [loop.num_shared <= i < loop.num_unbatched for i in range(len(eqn.invars))]
    smaller, inputs = jax_compat.without_dead(jaxpr, kept, carried)
    outputs = tuple(compress(loop.outputs, kept[loop.num_carried :]))
    partitions = tuple(compress(loop.partitions, inputs))
    num_shared = sum(inputs[: loop.num_shared])
    return inputs, eqn.replace(
        invars=list(compress(eqn.invars, inputs)),
        outvars=list(compress(eqn.outvars, kept)),
        params={
            "jaxpr": smaller,
            "loop": replace(loop, outputs=outputs, num_shared=num_shared, partitions=partitions),
        },
    )


def _autocast(caster: autocast_calls.Caster, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """Values that micro-batches share or carry, and reduced results, keep their dtypes."""
    jaxpr, loop = eqn.params["jaxpr"], eqn.params["loop"]
    first = loop.num_unbatched
    given = [*cast_like(operands[:first], jaxpr.in_avals[:first]), *operands[first:]]
    avals = [aval.update(dtype=x.dtype) for aval, x in zip(jaxpr.in_avals, given, strict=True)]
    is_stacked = [False] * loop.num_carried + [output.kind == ALL for output in loop.outputs]

    def fun(*values: Any) -> list[Any]:
        made = caster.closed(jaxpr, values)
        kept = cast_like(made, jaxpr.out_avals)
        return [x if stacked else y for x, y, stacked in zip(made, kept, is_stacked, strict=True)]

    cast, captured = jax_compat.trace_avals(fun, avals)
    wider = loop.sharing(len(captured))
    return list(jax_compat.bind(eqn, [*captured, *given], jaxpr=cast, loop=wider))


autocast_calls.RULES[pipeline_p.name] = _autocast
pipeline_p.def_impl(
    lambda *operands, **parameters: jax.jit(lambda *given: pipeline_p.bind(*given, **parameters))(
        *operands
    )
)
pipeline_p.def_effectful_abstract_eval(_abstract)
ad.primitive_jvps[pipeline_p] = _jvp
batching.fancy_primitive_batchers[pipeline_p] = _batch
mlir.register_lowering(pipeline_p, mlir.lower_fun(_call, multiple_results=True))


@functools.cache
def prepare() -> None:
    """Registers what needs JAX's private parts, once before the first pipeline."""
    jax_compat.set_dead_code_rule(pipeline_p, _eliminate_dead)
    jax_compat.hide_frames(__file__)
