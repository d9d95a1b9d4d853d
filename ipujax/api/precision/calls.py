"""How `ipu.autocast` enters loops, branches, calls, and functions with custom derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr

from ipujax import jax_compat
from ipujax.api.precision.casts import Held, cast_like

jax_compat.hide_frames(__file__)


class Caster(Protocol):
    """Casts the equations of a jaxpr: `ipujax.api.precision.equations.Caster`."""

    def run(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Any]) -> list[Any]: ...
    def closed(self, jaxpr: Any, given: Sequence[Any]) -> list[Any]: ...
    def function(self, fun: Callable[..., Any], like: Sequence[Any]) -> Callable[..., Any]: ...
    def trace(self, fun: Callable[..., Any], like: Sequence[Any]) -> tuple[Any, list[Any]]: ...


def _traced(eqn: Any, operands: Sequence[Any]) -> list[Any]:
    return cast_like(operands, [atom.aval for atom in eqn.invars])


# Calls -------------------------------------------------------------------------------------------


def is_call(eqn: Any) -> bool:
    """Whether it calls one jaxpr with its operands, and returns its results."""
    jaxprs = list(jax_compat.inner_jaxprs(eqn))
    called = eqn.params.get("jaxpr")
    if len(jaxprs) != 1 or not isinstance(called, (ClosedJaxpr, Jaxpr)):
        return False
    inner = called.jaxpr if isinstance(called, ClosedJaxpr) else called
    return _types(inner.invars) == _types(eqn.invars) and _types(inner.outvars) == _types(
        eqn.outvars
    )


def _types(atoms: Sequence[Any]) -> list[tuple[Any, Any]]:
    return [(atom.aval.shape, atom.aval.dtype) for atom in atoms]


def call(caster: Caster, eqn: Any, operands: Sequence[Held]) -> list[Any]:
    """The same call, of a function that casts. Literals stay literals inside."""
    called = eqn.params["jaxpr"]
    closed = called if isinstance(called, ClosedJaxpr) else ClosedJaxpr(called, ())
    values = [operand.value for operand in operands]

    def fun(*given: Any) -> list[Any]:
        held = [Held(x, old.weak) for x, old in zip(given, operands, strict=True)]
        return caster.closed(closed, held)

    made, captured = jax_compat.trace_call(fun, values)
    if captured and eqn.primitive.name == "jit":  # which has shardings for each operand
        return fun(*values)
    new = made if isinstance(called, ClosedJaxpr) else made.jaxpr
    return jax_compat.bind(eqn, [*captured, *values], jaxpr=new)


def _shard_map(caster: Caster, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    params = eqn.params
    inner = params["jaxpr"]
    mapped = jax.shard_map(
        lambda *x: tuple(caster.run(inner, (), x)),
        mesh=params["mesh"],
        in_specs=params["in_specs"],
        out_specs=params["out_specs"],
        axis_names=set(params["newly_manual_axes"]),
        check_vma=params["check_vma"],
    )
    return list(mapped(*operands))


# Loops and branches ------------------------------------------------------------------------------


def _scan(caster: Caster, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    params, jaxpr = eqn.params, eqn.params["jaxpr"]
    first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
    consts, carried = operands[:first], jaxpr.in_avals[first:second]

    def body(carry: Any, x: Any) -> tuple[Any, Any]:
        made = caster.closed(jaxpr, [*consts, *carry, *x])
        return tuple(cast_like(made[: len(carry)], carried)), tuple(made[len(carry) :])

    carry, ys = lax.scan(
        body,
        tuple(cast_like(operands[first:second], carried)),
        tuple(operands[second:]),
        length=params["length"],
        reverse=params["reverse"],
        unroll=params["unroll"],
    )
    return [*carry, *ys]


def _while(caster: Caster, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    params = eqn.params
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    first = params["cond_nconsts"]
    second = first + params["body_nconsts"]
    of_cond, of_body = operands[:first], operands[first:second]
    carried = [atom.aval for atom in eqn.outvars]
    made = lax.while_loop(
        lambda carry: caster.closed(cond, [*of_cond, *carry])[0],
        lambda carry: tuple(cast_like(caster.closed(body, [*of_body, *carry]), carried)),
        tuple(cast_like(operands[second:], carried)),
    )
    return list(made)


def _cond(caster: Caster, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """Results return to the traced dtype unless all branches make them in the same one."""
    branches, (index, *rest) = eqn.params["branches"], operands
    shapes = [jax.eval_shape(lambda *x, b=b: caster.closed(b, x), *rest) for b in branches]
    out_avals = [
        first if all(other.dtype == first.dtype for other in others) else atom.aval
        for atom, first, *others in zip(eqn.outvars, *shapes, strict=True)
    ]
    functions = [
        lambda *x, b=branch: tuple(cast_like(caster.closed(b, x), out_avals)) for branch in branches
    ]
    return list(lax.switch(index, functions, *rest))


# Functions with derivatives of their own ---------------------------------------------------------


def _floats(values: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(values) if jnp.issubdtype(x.dtype, jnp.inexact)]


def _put(values: Sequence[Any], numbers: Sequence[int], new: Sequence[Any]) -> list[Any]:
    chosen = dict(zip(numbers, new, strict=True))
    return [chosen.get(i, value) for i, value in enumerate(values)]


def _no_tangent(value: Any) -> Any:
    return np.zeros(value.shape, jax.dtypes.float0)


def _custom_jvp(caster: Caster, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """The rule is traced at the dtypes that it was written for, and cast like the function."""
    plain = partial(caster.closed, eqn.params["call_jaxpr"])
    results = jax.eval_shape(lambda *x: plain(x), *operands)
    outputs = [i for i, result in enumerate(eqn.outvars) if _is_differentiable(result.aval)]

    def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
        traced = _traced(eqn, primals)
        inputs = _floats(traced)

        def derived(*values: Any) -> list[Any]:
            primals, moved = values[: len(traced)], values[len(traced) :]

            def of_floats(*floats: Any) -> list[Any]:
                return jax_compat.bind(eqn, _put(primals, inputs, floats))

            made, change = jax.jvp(of_floats, [primals[i] for i in inputs], list(moved))
            return [*made, *(change[i] for i in outputs)]

        given = [tangents[i] for i in inputs]
        like = [*traced, *cast_like(given, [traced[i] for i in inputs])]
        made = caster.function(derived, like)(*primals, *given)
        count = len(results)
        change = dict(zip(outputs, made[count:], strict=True))
        out = cast_like(made[:count], results)
        return tuple(out), tuple(
            cast_like([change[i]], [x])[0] if i in change else _no_tangent(x)
            for i, x in enumerate(out)
        )

    function = jax.custom_jvp(lambda *x: tuple(plain(x)))
    function.defjvp(rule)
    return list(function(*operands))


def _is_differentiable(aval: Any) -> bool:
    return bool(jnp.issubdtype(aval.dtype, jnp.inexact))


def _custom_vjp(caster: Caster, eqn: Any, operands: Sequence[Any]) -> list[Any]:
    """Forward and backward functions are traced at their own dtypes, and cast like the function.

    Values that the forward function saves keep the dtypes that they were computed in.
    """
    plain = partial(caster.closed, eqn.params["call_jaxpr"])
    results = jax.eval_shape(lambda *x: plain(x), *operands)
    outputs = [i for i, result in enumerate(eqn.outvars) if _is_differentiable(result.aval)]

    def forward(*x: Any) -> tuple[Any, Any]:
        traced = _traced(eqn, x)
        inputs = _floats(traced)
        trees: list[Any] = []

        def saved(*values: Any) -> list[Any]:
            def of_floats(*floats: Any) -> list[Any]:
                return jax_compat.bind(eqn, _put(values, inputs, floats))

            made, pull = jax.vjp(of_floats, *(values[i] for i in inputs))
            leaves, tree = jax.tree.flatten(pull)
            trees.append(tree)
            return [*made, *leaves]

        jaxpr, captured = caster.trace(saved, traced)
        made = caster.closed(jaxpr, [*captured, *x])
        count = len(results)
        back = partial(
            _pulled, caster, eqn, outputs, inputs, trees[-1], tuple(jaxpr.out_avals[count:])
        )
        kept = jax.tree_util.Partial(back, made[count:], list(x))
        return tuple(cast_like(made[:count], results)), kept

    function = jax.custom_vjp(lambda *x: tuple(plain(x)))
    function.defvjp(forward, lambda kept, cotangents: kept(cotangents))
    return list(function(*operands))


def _pulled(
    caster: Caster,
    eqn: Any,
    outputs: Sequence[int],
    inputs: Sequence[int],
    tree: Any,
    avals: Sequence[Any],
    residuals: Sequence[Any],
    operands: Sequence[Any],
    cotangents: Sequence[Any],
) -> tuple[Any, ...]:
    """The cotangents of all operands."""
    made = [atom.aval for atom in eqn.outvars]

    def backward(*values: Any) -> list[Any]:
        pull = jax.tree.unflatten(tree, values[: len(avals)])
        chosen = dict(zip(outputs, values[len(avals) :], strict=True))
        return list(pull([chosen.get(i, _no_tangent(x)) for i, x in enumerate(made)]))

    given = [cotangents[i] for i in outputs]
    like = [jax_compat.zeros_of(aval, aval.dtype) for aval in avals]
    like += cast_like(given, [made[i] for i in outputs])
    found = caster.function(backward, like)(*residuals, *given)
    found = cast_like(found, [operands[i] for i in inputs])
    by_number = dict(zip(inputs, found, strict=True))
    return tuple(by_number.get(i) for i in range(len(operands)))


#: Rules for equations that need their own way to enter, by the primitive's name.
RULES: dict[str, Callable[[Any, Any, Sequence[Any]], list[Any]]] = {
    "cond": _cond,
    "custom_jvp_call": _custom_jvp,
    "custom_vjp_call": _custom_vjp,
    "scan": _scan,
    "shard_map": _shard_map,
    "while": _while,
}
