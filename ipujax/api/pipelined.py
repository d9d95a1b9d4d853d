"""The primitive behind `ipu.pipeline`: a loop over micro-batches that reduces what each gives.

Its derivative with respect to a scalar is a loop of the same kind, whose micro-batches give the
value and the gradient together. So a forward pass is followed at once by its backward pass, and
what the backward pass needs is kept for a few micro-batches instead of all.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from ipujax import jax_compat
from ipujax.api import offload
from ipujax.api.accumulators import divide_by_place
from ipujax.placement import OFFLOAD, PIPELINE

#: The schedule in which one stage runs at a time.
SEQUENTIAL = "sequential"
#: What becomes of a result that each micro-batch gives.
ALL, LAST, SUM, MEAN, RUNNING_MEAN = "all", "last", "sum", "mean", "running_mean"
ACCUMULATED = (SUM, MEAN, RUNNING_MEAN)


@dataclass(frozen=True)
class Output:
    """What becomes of one result."""

    kind: str
    dtype: Any = None  #: of an accumulator; None: the result's own

    def dtype_for(self, aval: Any) -> Any:
        return aval.dtype if self.dtype is None or self.kind not in ACCUMULATED else self.dtype


@dataclass(frozen=True)
class Loop:
    """The loop of a pipeline. Hashable: the primitive's parameter besides the jaxpr.

    The micro-batch's function takes `num_shared` values that all micro-batches share, `num_carried`
    that go from one to the next, and slices of the rest; it returns the carried ones, then one
    value for each of `outputs`.
    """

    micro_batches: int
    num_shared: int
    num_carried: int
    outputs: tuple[Output, ...]
    schedule: str
    accumulate_dtype: Any  #: None, a dtype, or a function of a parameter's ShapeDtypeStruct
    offload: offload.Offload

    @property
    def overlaps(self) -> bool:
        return self.schedule != SEQUENTIAL

    @property
    def num_unbatched(self) -> int:
        return self.num_shared + self.num_carried

    # The label of a call, see jax_compat.call_primitive.

    def attributes(self) -> dict[str, str]:
        least = self.offload.attribute()
        waiting = {} if least is None else {OFFLOAD: str(least)}
        return {PIPELINE: self.schedule, **waiting}

    def transposed(self) -> Loop:
        return self

    def split(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Shared, carried and batched ones."""
        first, second = self.num_shared, self.num_unbatched
        return list(operands[:first]), list(operands[first:second]), list(operands[second:])


def accumulator_dtype(choice: Any, of: Any) -> Any:
    """The dtype that `accumulate_dtype` chooses for one array; None: the array's own."""
    if not callable(choice) or isinstance(choice, type):
        return choice
    return choice(jax.ShapeDtypeStruct(of.shape, of.dtype))


pipeline_p = Primitive("ipu_pipeline")
pipeline_p.multiple_results = True


def run(jaxpr: ClosedJaxpr, loop: Loop, *operands: Any) -> list[Any]:
    """The loop, in JAX's own operations. Returns what is carried, then the outputs."""
    fun = jaxpr_as_fun(jaxpr)
    shared, carried, batched = loop.split(operands)
    weights = loop.offload if loop.offload.weights else None
    sums = loop.offload if loop.offload.accumulators else None
    if weights:
        shared = [weights.store(x) for x in shared]
    avals = jaxpr.out_avals[loop.num_carried :]
    is_stacked = [output.kind == ALL for output in loop.outputs]
    kept = [not stacked for stacked in is_stacked]
    initial = [
        jax_compat.zeros_of(aval, output.dtype_for(aval))
        for output, aval in compress(zip(loop.outputs, avals, strict=True), kept)
    ]

    def body(state: Any, micro_batch: Any) -> Any:
        index, carried, held = state
        near = [weights.load(x) for x in shared] if weights else shared
        made = fun(*near, *carried, *micro_batch)
        results = made[loop.num_carried :]
        updated = [
            _update(output, index, loop.micro_batches, sums.load(old) if sums else old, new)
            for output, old, new in zip(
                compress(loop.outputs, kept), held, compress(results, kept), strict=True
            )
        ]
        if sums:
            updated = [sums.store(x) for x in updated]
        stacked = list(compress(results, is_stacked))
        return (index + 1, made[: loop.num_carried], updated), stacked

    if sums:
        initial = [sums.store(x) for x in initial]
    state = (jnp.int32(0), carried, initial)
    (_, carried, held), stacked = lax.scan(body, state, batched, length=loop.micro_batches)
    if sums:
        held = [sums.load(x) for x in held]
    of_all, of_others = iter(stacked), iter(held)
    return [*carried, *(next(of_all) if there else next(of_others) for there in is_stacked)]


def _update(output: Output, index: Any, count: int, old: Any, new: Any) -> Any:
    if output.kind == LAST:
        return new
    new = new.astype(old.dtype)
    if output.kind == SUM:
        return old + new
    if output.kind == MEAN:
        return old + new / count
    number = index.astype(old.dtype)
    return old * (number / (number + 1)) + new / (number + 1)


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
        results = iter(run(divided, replace(loop, outputs=tuple(outputs)), *given))
        return [functools.reduce(lax.add, islice(results, count)) for count in counts]

    whole, captured = jax_compat.trace_call(joined, operands)
    call_p = jax_compat.call_primitive("ipu_pipeline_loop")
    return list(call_p.bind(*captured, *operands, jaxpr=whole, label=loop))


def _abstract(*avals: Any, jaxpr: ClosedJaxpr, loop: Loop) -> tuple[list[Any], Any]:
    carried, results = jaxpr.out_avals[: loop.num_carried], jaxpr.out_avals[loop.num_carried :]
    found = list(carried)
    for output, aval in zip(loop.outputs, results, strict=True):
        shape = (loop.micro_batches, *aval.shape) if output.kind == ALL else aval.shape
        found.append(aval.update(shape=shape, dtype=output.dtype_for(aval), weak_type=False))
    return found, jaxpr.effects


def _jvp(primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, loop: Loop) -> Any:
    """Scalars: by their gradients, which come out of one loop. Other results: by JAX's own loop."""
    moves = [_is_moving(tangent) for tangent in tangents]
    outputs = [_is_inexact(aval) for aval in jaxpr.out_avals]
    own = range(loop.num_carried, len(outputs))
    scalars = [
        i
        for i in own
        if outputs[i]
        and jaxpr.out_avals[i].shape == ()
        and loop.outputs[i - loop.num_carried].kind in ACCUMULATED
    ]
    results, gradients = _with_gradients(scalars, moves, jaxpr, loop, primals)
    there = list(compress(tangents, moves))
    found: list[Any] = [_zero(result) for result in results]
    for i, gradient in gradients.items():
        found[i] = _inner_product(gradient, there, results[i])
    others = [i for i in own if outputs[i] and i not in gradients]
    if others:
        tangents_of_all = _tangents_by_scan(moves, jaxpr, loop, primals, there)
        for i in others:
            found[i] = tangents_of_all[i]
    return results, found


def _is_moving(tangent: Any) -> bool:
    return type(tangent) is not ad.Zero and tangent.dtype != jax.dtypes.float0


def _is_inexact(aval: Any) -> bool:
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))


def _zero(primal: Any) -> Any:
    return ad.Zero(jax.typeof(primal).to_tangent_aval())


def _inner_product(gradient: Sequence[Any], tangents: Sequence[Any], like: Any) -> Any:
    terms = [jnp.sum(g * t.astype(g.dtype)) for g, t in zip(gradient, tangents, strict=True)]
    return sum(terms[1:], terms[0]).astype(like.dtype) if terms else _zero(like)


def _tangents_by_scan(
    moves: list[bool], jaxpr: ClosedJaxpr, loop: Loop, primals: Any, tangents: Any
) -> Sequence[Any]:
    def of_moving(*moving: Any) -> list[Any]:
        rest = iter(moving)
        whole = [next(rest) if moved else x for x, moved in zip(primals, moves, strict=True)]
        return run(jaxpr, loop, *whole)

    _, found = jax.jvp(of_moving, tuple(compress(primals, moves)), tuple(tangents))
    return list(found)


def _with_gradients(
    scalars: list[int], moves: list[bool], jaxpr: ClosedJaxpr, loop: Loop, primals: Any
) -> tuple[list[Any], dict[int, list[Any]]]:
    """All results, and for each of `scalars` its gradient by the operands that move."""
    if not scalars or not any(moves):
        return pipeline_p.bind(*primals, jaxpr=jaxpr, loop=loop), {}
    fun, num_results = jaxpr_as_fun(jaxpr), len(jaxpr.out_avals)
    kinds = [loop.outputs[i - loop.num_carried].kind for i in scalars]
    # A mean's gradient is a sum of gradients that begin with its share, as in a plain function.
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
    assert not captured, "a jaxpr captures nothing"
    wider = replace(loop, outputs=tuple(outputs))
    given = pipeline_p.bind(*primals, jaxpr=derived, loop=wider)
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
    """A shared operand's gradient is reduced as its scalar is; a slice has its own gradient."""
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
    """Each micro-batch is mapped; the mapped axis comes after that of micro-batches."""
    operands, inner_dims = [], []
    for i, (value, dim) in enumerate(zip(values, dims, strict=True)):
        mapped = dim is not None
        if (
            loop.num_shared <= i < loop.num_unbatched
        ):  # results of a micro-batch are mapped, so what it is given, too
            value = jnp.moveaxis(value, dim, 0) if mapped else _repeated(value, axis.size)
            mapped = True
        elif mapped:
            value = jnp.moveaxis(value, dim, int(i >= loop.num_unbatched))
        operands.append(value)
        inner_dims.append(0 if mapped else None)
    fun = jax.vmap(
        jaxpr_as_fun(jaxpr),
        in_axes=tuple(inner_dims),
        axis_name=axis.name,
        axis_size=axis.size,
    )
    avals = [
        aval if dim is None else aval.update(shape=(axis.size, *aval.shape))
        for aval, dim in zip(jaxpr.in_avals, inner_dims, strict=True)
    ]
    batched, captured = jax_compat.trace_avals(lambda *given: list(fun(*given)), avals)
    assert not captured, "a jaxpr captures nothing"
    results = pipeline_p.bind(*operands, jaxpr=batched, loop=loop)
    out_dims = [0] * loop.num_carried + [int(o.kind == ALL) for o in loop.outputs]
    return results, out_dims


def _repeated(value: Any, size: int) -> Any:
    return jnp.broadcast_to(value, (size, *value.shape))


def _eliminate_dead(used: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    jaxpr, loop = eqn.params["jaxpr"], eqn.params["loop"]
    if not any(used) and not jaxpr.effects:
        return [False] * len(eqn.invars), None
    kept = [True] * loop.num_carried + used[loop.num_carried :]
    carried = [loop.num_shared <= i < loop.num_unbatched for i in range(len(eqn.invars))]
    smaller, inputs = jax_compat.without_dead(jaxpr, kept, carried)
    outputs = tuple(compress(loop.outputs, kept[loop.num_carried :]))
    return inputs, eqn.replace(
        invars=list(compress(eqn.invars, inputs)),
        outvars=list(compress(eqn.outvars, kept)),
        params={
            "jaxpr": smaller,
            "loop": replace(loop, outputs=outputs, num_shared=sum(inputs[: loop.num_shared])),
        },
    )


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
    """What needs JAX's private parts, once before the first pipeline."""
    jax_compat.set_dead_code_rule(pipeline_p, _eliminate_dead)
    offload.prepare()
    jax_compat.hide_frames(__file__)
