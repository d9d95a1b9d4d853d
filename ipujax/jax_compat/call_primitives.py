"""Primitives that call a function, like `jax.jit` inside `jax.jit`, with a label."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Primitive
from jax.interpreters import ad, batching, mlir

from ipujax.jax_compat.mapped_axes import varying_axes

T = TypeVar("T")


class Label(Protocol):
    """The label that a call carries through all transformations; hashable."""

    def attributes(self) -> dict[str, str]:
        """What the compiler needs to know about the call: its `mhlo.frontend_attributes`."""

    def transposed(self) -> Label:
        """The label of the call's transpose."""


@functools.cache
def call_primitive(name: str) -> Primitive:
    """The primitive of that name that calls a function, with all of JAX's rules.

    Its parameters are the function as a closed `jaxpr`, and a `label`. Its derivative, transpose
    and batched form are calls too, with the same label. It is lowered to a call of a private
    function that has the label's attributes.
    """
    from jax._src import core, dispatch
    from jax._src.interpreters import partial_eval as pe

    primitive = Primitive(name)
    primitive.multiple_results = True
    primitive.def_impl(partial(dispatch.apply_primitive, primitive))
    primitive.def_effectful_abstract_eval(
        lambda *_, jaxpr, label: (jaxpr.out_avals, core.positional_effects(jaxpr))
    )
    primitive.is_effectful = lambda parameters: bool(parameters["jaxpr"].effects)
    core.custom_typechecks[primitive] = lambda context, *atoms, jaxpr, label: (
        core._check_closed_call(context, *atoms, call_jaxpr=jaxpr)
    )
    batching.fancy_primitive_batchers[primitive] = partial(_batch, primitive)
    ad.primitive_jvps[primitive] = partial(_jvp, primitive)
    _private_ad().primitive_linearizations[primitive] = partial(_linearize, primitive)
    _private_ad().fancy_transposes[primitive] = partial(_transpose, primitive)
    pe.custom_partial_eval_rules[primitive] = partial(_partial_eval, primitive)
    pe.partial_eval_jaxpr_custom_rules[primitive] = partial(
        pe.closed_call_partial_eval_custom_rule, "jaxpr", lambda *given: given[-2:]
    )
    pe.dce_rules[primitive] = _eliminate_dead
    _private_remat().rules[primitive] = partial(_rematerialise, primitive)
    mlir.register_lowering(primitive, partial(_lower, name))
    return primitive


def call_with_label(
    name: str, label: Label, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """`fun(*args, **kwargs)` as a call of the primitive of that name; pytrees as usual."""
    leaves, tree = jax.tree.flatten((args, kwargs))
    made: list[Any] = []

    def flat(*leaves: Any) -> list[Any]:
        args, kwargs = jax.tree.unflatten(tree, leaves)
        results, out_tree = jax.tree.flatten(fun(*args, **kwargs))
        made.append(out_tree)
        return results

    jaxpr, captured = trace_call(flat, leaves)
    results = call_primitive(name).bind(*captured, *leaves, jaxpr=jaxpr, label=label)
    return jax.tree.unflatten(made[-1], results)


def trace_call(fun: Callable[..., Any], operands: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """A function of arrays as a jaxpr, and the arrays it captures: the jaxpr's first inputs.

    JAX's public `make_jaxpr` drops the mapped axes over which operands vary, and keeps captured
    arrays as constants, which transformations of the call would not see.

    Args:
        fun: takes the operands, returns a list of arrays.
    """
    from jax._src import core

    return trace_avals(fun, [core.shaped_abstractify(operand) for operand in operands])


def trace_avals(fun: Callable[..., Any], avals: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
    """`trace_call` for operands given by their abstract values."""
    from jax._src.interpreters import partial_eval as pe

    traced = traced_again(fun, avals)
    return pe.close_jaxpr(pe.convert_constvars_jaxpr(traced.jaxpr)), list(traced.consts)


def traced_again(fun: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr:
    """A function that evaluates equations, as a jaxpr with the inputs `avals` and no others.

    Arrays that the equations hold, such as the constants of an inlined call, are its constants.
    """
    from jax._src import api_util, linear_util
    from jax._src.interpreters import partial_eval as pe

    info = api_util.debug_info("traced_again", fun, tuple(avals), {})
    jaxpr, _, constants = pe.trace_to_jaxpr_dynamic(
        linear_util.wrap_init(fun, debug_info=info), list(avals)
    )
    return ClosedJaxpr(jaxpr, constants)


def without_dead(
    jaxpr: ClosedJaxpr, used_outputs: Sequence[bool], used_inputs: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr with the given outputs only, and which inputs it still has.

    Args:
        used_inputs: inputs that stay in any case.
    """
    from jax._src.interpreters import partial_eval as pe

    kept, used = pe.dce_jaxpr(jaxpr.jaxpr, list(used_outputs), instantiate=list(used_inputs))
    return ClosedJaxpr(kept, jaxpr.consts), used


@functools.cache  # JAX keeps a list
def hide_frames(path: str) -> None:
    """Leaves a file out of the lines that JAX records for operations, as it does its own."""
    from jax._src import source_info_util

    source_info_util.register_exclusion(path)


def set_dead_code_rule(primitive: Primitive, rule: Callable[[list[bool], Any], Any]) -> None:
    """`rule(used outputs, equation)` returns which inputs are used, and the smaller equation."""
    from jax._src.interpreters import partial_eval as pe

    pe.dce_rules[primitive] = rule


def batched(
    jaxpr: ClosedJaxpr, axis: Any, is_mapped: Sequence[bool], instantiated: Sequence[bool]
) -> tuple[ClosedJaxpr, list[bool]]:
    """The jaxpr over a mapped axis, the first of each mapped value, and which outputs have it.

    Args:
        axis: what JAX gives a fancy batching rule.
        instantiated: outputs that have the axis in any case.
    """
    from jax._src.interpreters import batching as private

    return private.batch_jaxpr(jaxpr, axis, list(is_mapped), list(instantiated))


def with_outputs(jaxpr: ClosedJaxpr, kept: Sequence[bool]) -> ClosedJaxpr:
    """The jaxpr with some of its outputs, and all of its inputs."""
    return without_dead(jaxpr, kept, [True] * len(jaxpr.in_avals))[0]


def abstract(value: Any, of_slice: bool = False) -> Any:
    """The abstract value of an array, or of its slices along the first axis."""
    from jax._src import core

    aval = core.shaped_abstractify(value)
    return core.mapped_aval(aval.shape[0], 0, aval) if of_slice else aval


def zeros_of(like: Any, dtype: Any = None) -> Any:
    """Zeros of its shape, varying over the mapped axes over which it may vary.

    Args:
        like: an array, an abstract value, or a result of `jax.eval_shape`.
        dtype: by default that of `like`.
    """
    zeros = jnp.zeros(like.shape, like.dtype if dtype is None else dtype)
    return varying_over(zeros, varying_axes(like))


def varying_over(value: Any, axes: Iterable[Any]) -> Any:
    """The value, as one that may differ over these mapped axes."""
    missing = tuple(axis for axis in axes if axis not in varying_axes(value))
    return jax.lax.pcast(value, missing, to="varying") if missing else value


def varying_like(tree: Any, *others: Any) -> Any:
    """The arrays of a pytree, as ones that may differ wherever those of other pytrees may.

    A loop's initial state must vary over the same mapped axes as its later states.
    """
    axes = frozenset[Any]().union(*map(varying_axes, jax.tree.leaves(others)))
    return jax.tree.map(lambda x: varying_over(x, axes), tree) if axes else tree


def _private_ad() -> Any:
    from jax._src.interpreters import ad as private

    return private


def _private_remat() -> Any:
    from jax._src.interpreters import remat

    return remat


def _lower(name: str, ctx: Any, *operands: Any, jaxpr: ClosedJaxpr, label: Label) -> Any:
    from jax._src import effects
    from jax._src.interpreters import mlir as private
    from jaxlib.mlir import ir

    ordered = list(effects.ordered_effects.filter_in(jaxpr.effects))
    attributes = {key: ir.StringAttr.get(text) for key, text in label.attributes().items()}
    results, tokens = private.call_lowering(
        name,
        jaxpr,
        None,
        ctx.module_context,
        ctx.avals_in,
        ctx.avals_out,
        ctx.tokens_in.subset(ordered),
        *operands,
        dim_var_values=ctx.dim_var_values,
        const_lowering=ctx.const_lowering,
        attributes=attributes,
    )
    ctx.set_tokens_out(tokens)
    return results


def _batch(
    primitive: Primitive, axis: Any, values: Any, dims: Any, *, jaxpr: ClosedJaxpr, label: Label
) -> Any:
    from jax._src.interpreters import batching as private

    batched, dims_out = private.batch_jaxpr2(jaxpr, axis, tuple(dims))
    return primitive.bind(*values, jaxpr=batched, label=label), dims_out


def _jvp(
    primitive: Primitive, primals: Any, tangents: Any, *, jaxpr: ClosedJaxpr, label: Label
) -> Any:
    nonzero = [type(tangent) is not ad.Zero for tangent in tangents]
    derived, nonzero_out = _private_ad().jvp_jaxpr(jaxpr, nonzero, False)
    results = primitive.bind(*primals, *compress(tangents, nonzero), jaxpr=derived, label=label)
    count = len(nonzero_out)
    return results[:count], _with_zeros(results[count:], nonzero_out, jaxpr)


def _with_zeros(given: Sequence[Any], nonzero: Sequence[bool], jaxpr: ClosedJaxpr) -> list[Any]:
    rest = iter(given)
    return [
        next(rest) if there else ad.Zero(aval.to_tangent_aval())
        for there, aval in zip(nonzero, jaxpr.out_avals, strict=True)
    ]


def _linearize(
    primitive: Primitive,
    is_vjp: bool,
    nonzero: Sequence[bool],
    *primals: Any,
    jaxpr: ClosedJaxpr,
    label: Label,
) -> Any:
    linearized = _private_ad().linearize_jaxpr(jaxpr, nonzero, is_vjp=is_vjp)
    primal_jaxpr, num_residuals, nonzero_out, forwarded, tangent_jaxpr = linearized

    def tangent_fun(residuals: Any, *tangents: Any) -> list[Any]:
        there = compress(tangents, nonzero)
        results = primitive.bind(*residuals, *there, jaxpr=tangent_jaxpr, label=label)
        return _with_zeros(results, nonzero_out, jaxpr)

    results = primitive.bind(*primals, jaxpr=primal_jaxpr, label=label)
    count = len(results) - num_residuals
    residuals = _with_forwarded(results[count:], forwarded, [*jaxpr.consts, *primals])
    return results[:count], nonzero_out, residuals, tangent_fun


def _with_forwarded(
    results: Sequence[Any], forwarded: Sequence[int | None], inputs: Sequence[Any]
) -> list[Any]:
    """All residuals, including those that are inputs of the call."""
    rest = iter(results)
    return [next(rest) if index is None else inputs[index] for index in forwarded]


def _partial_eval(
    primitive: Primitive, trace: Any, *tracers: Any, jaxpr: ClosedJaxpr, label: Label
) -> list[Any]:
    from jax._src import core, source_info_util
    from jax._src.interpreters import partial_eval as pe

    known = [tracer.pval.is_known() for tracer in tracers]
    unknown = [not is_known for is_known in known]
    split = pe.partial_eval_jaxpr_nounits_fwd(jaxpr, unknown, instantiate=False)
    known_jaxpr, unknown_jaxpr, unknown_out, residual_avals, forwarded = split
    known_in = [tracer.pval.get_known() for tracer in compress(tracers, known)]
    results = primitive.bind(*known_in, jaxpr=known_jaxpr, label=label)
    count = len(results) - len(residual_avals)
    residuals = _with_forwarded(results[count:], forwarded, [*jaxpr.consts, *known_in])
    operands = [*map(trace.new_instantiated_const, residuals), *compress(tracers, unknown)]
    staged = [
        pe.JaxprTracer(trace, pe.PartialVal.unknown(aval), None) for aval in unknown_jaxpr.out_avals
    ]
    recipe = pe.new_eqn_recipe(
        trace,
        operands,
        staged,
        primitive,
        {"jaxpr": unknown_jaxpr, "label": label},
        core.positional_effects(unknown_jaxpr),
        source_info_util.current(),
    )
    for tracer in staged:
        tracer.recipe = recipe
    if pe.effects.partial_eval_kept_effects.filter_in(unknown_jaxpr.effects):
        trace.effect_handles.append(pe.EffectHandle(operands, recipe))
    first, second = iter(results[:count]), iter(staged)
    return [next(second) if later else next(first) for later in unknown_out]


def _transpose(
    primitive: Primitive, cotangents: Any, *operands: Any, jaxpr: ClosedJaxpr, label: Label
) -> None:
    from jax._src import core, pjit

    references, accumulators = _private_ad().project_accums(operands)
    flat, tree = jax.tree.flatten((references, cotangents))
    avals = tuple(core.typeof(value) for value in flat)
    transposed, out_tree = pjit._transpose_jaxpr_fancy(jaxpr, tree, avals, accumulators)
    results = primitive.bind(*flat, jaxpr=transposed, label=label.transposed())
    for operand, cotangent in zip(operands, jax.tree.unflatten(out_tree, results), strict=True):
        if isinstance(operand, _private_ad().ValAccum):
            operand.accum(cotangent)


def _eliminate_dead(used_outputs: list[bool], eqn: Any) -> tuple[list[bool], Any]:
    from jax._src import core
    from jax._src.interpreters import partial_eval as pe

    if not any(used_outputs) and not pe.has_effects(eqn):
        return [False] * len(eqn.invars), None
    jaxpr, used_inputs = pe._cached_closed_call_dce(eqn.params["jaxpr"], tuple(used_outputs))
    inputs = list(compress(eqn.invars, used_inputs))
    return used_inputs, pe.new_jaxpr_eqn(
        inputs,
        list(compress(eqn.outvars, used_outputs)),
        eqn.primitive,
        {**eqn.params, "jaxpr": jaxpr},
        core.eqn_effects(jaxpr, inputs),
        eqn.source_info,
        eqn.ctx,
    )


def _rematerialise(
    primitive: Primitive, policy: Any, *operands: Any, jaxpr: ClosedJaxpr, label: Label
) -> Any:
    forward, again, _ = _private_remat().remat_jaxpr(jaxpr, policy)
    results = primitive.bind(*operands, jaxpr=forward, label=label)
    count = len(jaxpr.out_avals)
    return results[:count], partial(primitive.bind, *results[count:], jaxpr=again, label=label)
