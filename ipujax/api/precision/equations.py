"""How `ipu.autocast` changes a jaxpr: it casts operands equation by equation.

Values keep the dtype that they were computed in; they return to the jaxpr's own dtype ("traced")
only where they must: in values that loops carry, and where branches meet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr

from ipujax import jax_compat
from ipujax.api.precision import calls as autocast_calls
from ipujax.api.precision.casts import FLOAT, HALF, Held, cast, cast_like, is_cast
from ipujax.api.precision.policy import ALIKE, EACH, CastPolicy

jax_compat.hide_frames(__file__)

#: Key of the metadata of equations: "off", or the number of a policy.
_SCOPE, _OFF = "autocast", "off"
_POLICIES: list[CastPolicy] = []


def scope(policy: CastPolicy | None) -> AbstractContextManager[Any]:
    """Operations traced inside are cast by this policy, or not at all.

    Metadata are part of JAX's cache keys, so a function used inside and outside a scope is traced
    twice.
    """
    if policy is None:
        return _marked(_OFF)
    if policy not in _POLICIES:
        _POLICIES.append(policy)
    return _marked(str(_POLICIES.index(policy)))


def is_inside() -> bool:
    """Whether tracing is inside an autocast function."""
    return _SCOPE in jax_compat.metadata_here()


def _marked(value: str | None) -> AbstractContextManager[Any]:
    # Imported here, because JAX imports this package while it looks for plugins.
    from jax.experimental.xla_metadata import set_xla_metadata

    return set_xla_metadata(**{_SCOPE: value})


def _held(value: Any) -> Held:
    return value if isinstance(value, Held) else Held(value)


class Caster:
    """Runs jaxprs under a policy."""

    def __init__(self, policy: CastPolicy) -> None:
        self.policy = policy

    def run(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        """The results of a jaxpr in the dtypes that they were computed in; `given` may be held."""
        values: dict[Any, Held] = {}
        values.update(zip(jaxpr.constvars, map(Held, consts), strict=True))
        values.update(zip(jaxpr.invars, map(_held, given), strict=True))
        for eqn in jaxpr.eqns:
            operands = [_read(atom, values) for atom in eqn.invars]
            with jax_compat.as_traced(eqn), _marked(None):
                made = self._under(eqn).equation(eqn, operands)
            weak = bool(operands) and all(operand.weak for operand in operands)
            values.update(zip(eqn.outvars, (Held(x, weak) for x in made), strict=True))
        return [_read(atom, values).value for atom in jaxpr.outvars]

    def closed(self, jaxpr: ClosedJaxpr, given: Sequence[Any]) -> list[Any]:
        """`run` for a jaxpr with its constants."""
        return self.run(jaxpr.jaxpr, jaxpr.consts, given)

    def function(
        self, fun: Callable[..., Sequence[Any]], like: Sequence[Any]
    ) -> Callable[..., Any]:
        """A function of arrays, traced for operands like these, then cast."""
        jaxpr, captured = self.trace(fun, like)
        return lambda *given: self.closed(jaxpr, [*captured, *given])

    def trace(self, fun: Callable[..., Any], like: Sequence[Any]) -> tuple[ClosedJaxpr, list[Any]]:
        """The traced function, in which autocast functions are scopes, and what it captures."""
        with scope(self.policy):
            return jax_compat.trace_call(fun, like)

    def _under(self, eqn: Any) -> Caster:
        named = jax_compat.metadata_of(eqn).get(_SCOPE)
        if named is None:
            return self
        return _Off(self.policy) if named == _OFF else Caster(_POLICIES[int(named)])

    def equation(self, eqn: Any, operands: Sequence[Held]) -> list[Any]:
        """The equation's results, from operands that may have other dtypes than were traced."""
        name = eqn.primitive.name
        called = autocast_calls.RULES.get(name)
        if called is not None:
            return called(self, eqn, [operand.value for operand in operands])
        if name == "convert_element_type":
            return [_converted(eqn, operands[0].value)]
        if name in ALIKE or name in EACH:
            return self._cast(eqn, operands)
        if autocast_calls.is_call(eqn):
            return autocast_calls.call(self, eqn, operands)
        return _as_traced(eqn, operands)

    def _cast(self, eqn: Any, operands: Sequence[Held]) -> list[Any]:
        dtypes = {atom.aval.dtype for atom in eqn.invars if _is_float(atom.aval.dtype)}
        if not dtypes or not all(map(is_cast, dtypes)):
            return _as_traced(eqn, operands)
        target = self._target(eqn.primitive.name, operands)
        if len(dtypes) > 1 and self.policy.list_of(eqn.primitive.name) == "":
            return _as_traced(eqn, operands)  # mixed on purpose
        if target is None:
            values = [operand.value for operand in operands]
        else:
            values = [cast(x.value, target, x.weak) for x in operands]
        return jax_compat.bind(eqn, values, **self._parameters(eqn, values, target))

    def _target(self, name: str, operands: Sequence[Held]) -> Any:
        """The dtype of all operands; None if each keeps its own."""
        wanted = self.policy.list_of(name)
        if wanted in ("fp16", "fp32"):
            return HALF if wanted == "fp16" else FLOAT
        held = {x.value.dtype for x in operands if not x.weak and is_cast(x.value.dtype)}
        if name not in ALIKE or not held:
            return None
        if len(held) == 1:
            return next(iter(held))
        rule = wanted or self.policy.mixed
        return FLOAT if rule in ("promote", "float") else HALF

    def _parameters(self, eqn: Any, values: Sequence[Any], target: Any) -> dict[str, Any]:
        """Parameters that name dtypes, for operands of other dtypes."""
        changed: dict[str, Any] = {}
        preferred = eqn.params.get("preferred_element_type")
        traced = {atom.aval.dtype for atom in eqn.invars}
        if target is not None and preferred is not None and traced == {jnp.dtype(preferred)}:
            changed["preferred_element_type"] = target
        update = eqn.params.get("update_jaxpr")
        if update is not None and values[0].dtype != eqn.invars[0].aval.dtype:
            scalars = [jnp.zeros((), values[0].dtype)] * len(update.invars)
            combine = Caster(CastPolicy(fp16=(), fp32=(), promote=(), demote=()))
            made, _ = jax_compat.trace_call(lambda *x: combine.run(update, (), x), scalars)
            changed["update_jaxpr"] = made.jaxpr
        return changed


class Block:
    """Casts what is traced or run in a `with` statement, an operation at a time.

    Python sees values of the dtypes that they have without casts. Other operations inside take
    them in the dtypes that they were computed in.
    """

    def __init__(self, policy: CastPolicy) -> None:
        self._caster = Caster(policy)
        #: Computed values by id, with the shown value itself, so that no other gets the same id.
        self._computed: dict[int, tuple[Any, Any]] = {}

    def run(self, call: Callable[..., list[Any]], operands: Sequence[Any]) -> list[Any]:
        arrays = [i for i, x in enumerate(operands) if not _is_weak_scalar(x)]

        def of_arrays(*given: Any) -> list[Any]:
            new = dict(zip(arrays, given, strict=True))
            return call(*(new.get(i, x) for i, x in enumerate(operands)))

        jaxpr, captured = jax_compat.trace_call(of_arrays, [operands[i] for i in arrays])
        held = [self._as_computed(operands[i]) for i in arrays]
        made = self._caster.closed(jaxpr, [*captured, *held])
        return [self._shown(x, aval) for x, aval in zip(made, jaxpr.out_avals, strict=True)]

    def _as_computed(self, value: Any) -> Any:
        return self._computed.get(id(value), (value, value))[1]

    def _shown(self, value: Any, aval: Any) -> Any:
        shown = cast_like([value], [aval])[0]
        if shown is not value:
            self._computed[id(shown)] = (shown, value)
        return shown


def _is_weak_scalar(value: Any) -> bool:
    """Whether JAX treats it as a literal of any dtype."""
    is_traced = isinstance(value, jax.core.Tracer)
    return not is_traced and np.ndim(value) == 0 and getattr(value, "weak_type", True) is True


@contextmanager
def block(policy: CastPolicy) -> Iterator[None]:
    """Operations that are traced or run inside are cast."""
    with scope(policy), jax_compat.interpreting(Block(policy).run):
        yield


class _Off(Caster):
    """Runs everything at the traced dtypes."""

    def equation(self, eqn: Any, operands: Sequence[Held]) -> list[Any]:
        return _as_traced(eqn, operands)


def _is_float(dtype: Any) -> bool:
    return bool(jnp.issubdtype(dtype, jnp.inexact))


def _read(atom: Any, values: Mapping[Any, Held]) -> Held:
    if jax_compat.is_literal(atom):
        return Held(np.asarray(atom.val, atom.aval.dtype), True)
    return values[atom]


def _converted(eqn: Any, value: Any) -> Any:
    """Keeps the program's conversions; those from a dtype to itself do nothing."""
    wanted = jnp.dtype(eqn.params["new_dtype"])
    if wanted == eqn.invars[0].aval.dtype and is_cast(wanted):
        return value
    return jax_compat.bind(eqn, [value])[0]


def _as_traced(eqn: Any, operands: Sequence[Held]) -> list[Any]:
    values = [operand.value for operand in operands]
    return jax_compat.bind(eqn, cast_like(values, [atom.aval for atom in eqn.invars]))
