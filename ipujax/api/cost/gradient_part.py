"""The part of a training step that computes gradients, found by the names of JAX's equations.

JAX names the equations of a derivative "jvp(...)" and "transpose(...)". Those equations, and what
they need, are the gradient part; the rest updates parameters with its results:

  def step(w, state, x):                  def accumulated(w, state, x):
      g = gradient part of (w, x)             g = ipu.accumulate(gradient part)(w, micro-batches)
      return update of (w, state, g)          return update of (w, state, g)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from ipujax import jax_compat
from ipujax.api.pipeline.micro_batches import divide_batch
from ipujax.api.pipeline.pipeline import accumulate


@dataclass(frozen=True)
class Traced:
    """A function's equations; calls that contain whole derivatives are inlined."""

    jaxpr: Any
    result: Any  #: the tree of its results

    @classmethod
    def of(cls, fun: Callable[..., Any], args: tuple[Any, ...]) -> Traced:
        jitted: Any = fun if hasattr(fun, "trace") else jax.jit(fun)
        traced = jitted.trace(*args)
        result = jax.tree.structure(traced.out_info)
        return cls(jax_compat.inlined(traced.jaxpr, _holds_derivative), result)

    def has_arguments(self, args: tuple[Any, ...]) -> bool:
        """Whether all arguments are arrays: none is static."""
        return len(self.jaxpr.jaxpr.invars) == len(jax.tree.leaves(args))

    @property
    def eqns(self) -> list[Any]:
        return list(self.jaxpr.jaxpr.eqns)

    def leaves_of(self, args: tuple[Any, ...], positions: Iterable[int]) -> set[Any]:
        """The variables of some arguments."""
        counts = [len(jax.tree.leaves(arg)) for arg in args]
        invars = self.jaxpr.jaxpr.invars
        return {
            var
            for position in positions
            for var in invars[sum(counts[:position]) : sum(counts[: position + 1])]
        }

    def gradient_part(self) -> set[int]:
        """Numbers of the equations of derivatives, and of those that they need."""
        return self._with_makers({i for i, eqn in enumerate(self.eqns) if _is_derivative(eqn)})

    def _with_makers(self, chosen: set[int]) -> set[int]:
        needed: set[Any] = set()
        found = set(chosen)
        for index in reversed(range(len(self.eqns))):
            eqn = self.eqns[index]
            if index in found or not needed.isdisjoint(eqn.outvars):
                found.add(index)
                needed.update(_variables(eqn.invars))
        return found

    def depending_on(self, variables: set[Any]) -> set[int]:
        """Numbers of the equations whose results depend on some of the arguments."""
        known, found = set(variables), set()
        for index, eqn in enumerate(self.eqns):
            if not known.isdisjoint(_variables(eqn.invars)):
                found.add(index)
                known.update(eqn.outvars)
        return found


def update_only(
    fun: Callable[..., Any], args: tuple[Any, ...], batches: Iterable[int]
) -> list[int]:
    """The arguments that gradients do not depend on, such as the state of an optimizer."""
    traced = Traced.of(fun, args)
    part = traced.gradient_part() if traced.has_arguments(args) else set()
    read = {var for index in part for var in _variables(traced.eqns[index].invars)}
    others = [i for i in range(len(args)) if i not in set(batches)] if part else []
    leaves = {i: traced.leaves_of(args, [i]) for i in others}
    return [i for i, own in leaves.items() if own and read.isdisjoint(own)]


def accumulated(
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    batches: tuple[int, ...],
    count: int,
    is_strided: bool = False,
) -> Callable[..., Any] | None:
    """The step with the mean of the gradients of `count` micro-batches, which are accumulated.

    Args:
        batches: arguments with samples along the first axis of all arrays.
        is_strided: whether a micro-batch has every `count`-th sample. If samples are sharded over
            devices, each device then divides its own, and none moves.
    Returns:
        A function of the same arguments; None if the gradient part has results for single samples,
        or cannot be separated from the rest.
    """
    micro = tuple(
        jax.tree.map(lambda x: part_of(x, count), arg) if i in batches else arg
        for i, arg in enumerate(args)
    )
    whole, traced = Traced.of(fun, args), Traced.of(fun, micro)
    if not whole.has_arguments(args):
        return None
    step = _Step(traced, traced.leaves_of(args, batches))
    if not step.is_divided or not _agree(whole, traced, step):
        return None
    divide = divide_batch if is_strided else _consecutive
    return lambda *given: step.run(
        given, [divide(x, count) for i in sorted(batches) for x in jax.tree.leaves(given[i])], count
    )


def _consecutive(x: jax.Array, count: int) -> jax.Array:
    return x.reshape(count, x.shape[0] // count, *x.shape[1:])


def part_of(x: Any, count: int) -> jax.ShapeDtypeStruct:
    """One of `count` equal parts of a batch."""
    return jax.ShapeDtypeStruct((x.shape[0] // count, *x.shape[1:]), x.dtype)


class _Step:
    """Equations before the loop over micro-batches, inside, and after it."""

    def __init__(self, traced: Traced, batched: set[Any]):
        self.traced = traced
        eqns, moving = traced.eqns, traced.depending_on(batched)
        inside = traced.gradient_part() & moving
        self.before = [eqn for i, eqn in enumerate(eqns) if i not in moving]
        self.inside = [eqn for i, eqn in enumerate(eqns) if i in inside]
        self.after = [eqn for i, eqn in enumerate(eqns) if i in moving - inside]
        self.batched = [var for var in traced.jaxpr.jaxpr.invars if var in batched]
        made = {var for eqn in self.inside for var in eqn.outvars}
        ends = traced.jaxpr.jaxpr.outvars
        used = dict.fromkeys(
            var for atoms in (*(e.invars for e in self.after), ends) for var in _variables(atoms)
        )
        self.cut = [var for var in used if var in made]
        reads = dict.fromkeys(var for eqn in self.inside for var in _variables(eqn.invars))
        self.shared = [var for var in reads if var not in made and var not in batched]
        is_float = all(jnp.issubdtype(var.aval.dtype, jnp.floating) for var in self.cut)
        reads_samples = any(var in batched for var in used)
        self.is_divided = bool(self.cut) and is_float and not reads_samples
        self.is_divided = self.is_divided and not traced.jaxpr.effects

    def run(self, args: tuple[Any, ...], parts: list[jax.Array], count: int) -> Any:
        """Runs the step with the samples of `args` in `count` micro-batches, stacked."""
        jaxpr = self.traced.jaxpr.jaxpr
        values = dict(zip(jaxpr.constvars, self.traced.jaxpr.consts, strict=True))
        values.update(zip(jaxpr.invars, jax.tree.leaves(args), strict=True))
        jax_compat.evaluate(self.before, values)

        def gradients(shared: Any, batch: Any) -> list[Any]:
            own = dict(zip((*self.shared, *self.batched), (*shared, *batch), strict=True))
            jax_compat.evaluate(self.inside, own)
            return [own[var] for var in self.cut]

        total = accumulate(gradients, micro_batches=count, in_axes=(None, 0))
        found = total([values[var] for var in self.shared], parts)
        values.update(zip(self.cut, found, strict=True))
        jax_compat.evaluate(self.after, values)
        results = [jax_compat.value_of(var, values) for var in jaxpr.outvars]
        return jax.tree.unflatten(self.traced.result, results)


def _agree(whole: Traced, micro: Traced, step: _Step) -> bool:
    """Whether what leaves the loop has the same shapes for the whole batch, so no sample axis."""
    if len(whole.eqns) != len(micro.eqns):
        return False
    shapes = {
        inner: outer.aval.shape
        for a, b in zip(micro.eqns, whole.eqns, strict=True)
        for inner, outer in zip(a.outvars, b.outvars, strict=True)
    }
    return all(shapes[var] == var.aval.shape for var in step.cut)


def _variables(atoms: Iterable[Any]) -> list[Any]:
    return [atom for atom in atoms if not jax_compat.is_literal(atom)]


def _is_derivative(eqn: Any) -> bool:
    name = jax_compat.name_of(eqn)
    return "jvp(" in name or "transpose(" in name


def _holds_derivative(eqn: Any) -> bool:
    """Whether it calls a function that computes a derivative, and is not part of one."""
    if _is_derivative(eqn):
        return False
    return jax_compat.holds(eqn, _is_derivative)
