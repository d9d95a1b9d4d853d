"""Divides the function of a micro-batch into parts that may each run several micro-batches.

Before: x = F0(w, k); g = g + B1(w, x)      After: a part with F0, which makes x,
                                                   a part with B1 and the sum, which reads x
Equations on shared values alone belong to no part: each part that needs them has its own copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from typing import Any

from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from ipujax import jax_compat
from ipujax.api.pipeline.accumulators import stages_inside
from ipujax.api.pipeline.loops import Loop
from ipujax.api.pipeline.stages import BACKWARD, STAGE_CALL, StageLabel

#: Primitives that are not computed again where their results are used.
_PRODUCTS = frozenset({"dot_general", "conv_general_dilated"})


@dataclass
class Part:
    """Stages that run one micro-batch after the other.

    `reads` are variables of a micro-batch from earlier parts or the batch, `makes` those that later
    parts read.
    """

    eqns: list[Any] = field(default_factory=list)
    carried: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    reads: list[Any] = field(default_factory=list)
    makes: list[Any] = field(default_factory=list)


class Division:
    """The parts of one jaxpr, in order; one part if stages run one micro-batch at a time."""

    def __init__(self, jaxpr: ClosedJaxpr, loop: Loop):
        opened = jax_compat.inlined(jaxpr, lambda eqn: bool(stages_inside(eqn)))
        self.jaxpr = jaxpr = _separated(opened, loop)
        self.shared, self.carried, self.batched = loop.split(jaxpr.jaxpr.invars)
        self.next_carried = jaxpr.jaxpr.outvars[: loop.num_carried]
        self.results = jaxpr.jaxpr.outvars[loop.num_carried :]
        self.makers = {var: i for i, eqn in enumerate(jaxpr.eqns) for var in eqn.outvars}
        self.places = self._joined(self._places()) if loop.serial > 1 else {}
        self.parts = self._parts()

    def ends(self, part: Part) -> list[Any]:
        """The values that the part hands to the next micro-batch, or returns."""
        after = [self.next_carried[i] for i in part.carried]
        return after + [self.results[i] for i in part.results]

    def is_independent(self, atom: Any) -> bool:
        """Whether it is made outside stages, from shared values alone."""
        return self._maker(atom) in self._independent

    def independent(self, wanted: list[Any]) -> tuple[list[Any], list[Any]]:
        """The equations that make these variables from shared values, and those values."""
        eqns: set[int] = set()
        shared, pending = dict[Any, None](), list(wanted)
        while pending:
            atom = pending.pop()
            maker = self._maker(atom)
            if not jax_compat.is_literal(atom) and atom in self._shared:
                shared[atom] = None
            elif maker is not None and maker not in eqns:
                eqns.add(maker)
                pending += self.jaxpr.eqns[maker].invars
        return [self.jaxpr.eqns[i] for i in sorted(eqns)], list(shared)

    def _parts(self) -> list[Part]:
        """The parts; each value is made in the part of its reader or in an earlier one."""
        places = self.places
        first = min(places.values(), default=0)
        parts = {place: Part() for place in sorted({first, *places.values()})}
        for i, eqn in enumerate(self.jaxpr.eqns):
            if i not in self._independent:
                parts[places.get(i, first)].eqns.append(eqn)
        owners: dict[Any, int] = {}
        for index, (before, after) in enumerate(zip(self.carried, self.next_carried, strict=True)):
            if before is not after:
                near = [self._maker(after), *self._readers(before)]
                owners[before] = next((places[i] for i in near if i in places), first)
                parts[owners[before]].carried.append(index)
        for index, atom in enumerate(self.results):
            is_state = not jax_compat.is_literal(atom) and atom in owners
            maker = self._maker(atom)
            made = first if maker is None else places.get(maker, first)
            parts[owners[atom] if is_state else made].results.append(index)
        self._connect(list(parts.values()))
        return list(parts.values())

    def _places(self) -> dict[int, int]:
        """The place of each equation: that of its stage, or of its operands if that is later."""
        eqns = self.jaxpr.eqns
        labels = [stages_inside(eqn) for eqn in eqns]
        num_stages = 1 + max((label.index or 0 for own in labels for label in own), default=0)
        found: dict[int, int] = {}
        for i, eqn in enumerate(eqns):
            known = [_place(label, num_stages) for label in labels[i]]
            known += [found[maker] for maker in self._makers(eqn) if maker in found]
            if known and i not in self._independent:
                found[i] = max(known)
        for i in reversed(range(len(eqns))):  # equations that need no stage: where they are used
            if i not in found and i not in self._independent:
                users = [found[user] for var in eqns[i].outvars for user in self._readers(var)]
                found[i] = min(users, default=0)
        return found

    def _joined(self, places: dict[int, int]) -> dict[int, int]:
        """Gives one place to equations that must share a loop."""
        spans = [[places[i] for i, eqn in enumerate(self.jaxpr.eqns) if jax_compat.is_ordered(eqn)]]
        for before, after in zip(self.carried, self.next_carried, strict=True):
            if before is after:
                continue
            maker = self._maker(after)
            span = [places[i] for i in (*self._readers(before), maker) if i in places]
            # A value that no equation makes may be another state: then the order of all equations
            # matters.
            spans.append(list(places.values()) if maker is None else span)
        joined: list[tuple[int, int]] = []
        for low, high in sorted((min(span), max(span)) for span in spans if span):
            if joined and low <= joined[-1][1]:
                low, high = joined[-1][0], max(high, joined.pop()[1])
            joined.append((low, high))

        def join(place: int) -> int:
            return next((low for low, high in joined if low <= place <= high), place)

        return {i: join(place) for i, place in places.items()}

    def _connect(self, parts: list[Part]) -> None:
        """Finds the values that go from part to part."""
        made_in: dict[Any, Part] = {}
        for part in parts:
            own = {var for eqn in part.eqns for var in eqn.outvars}
            atoms = [*(atom for eqn in part.eqns for atom in eqn.invars), *self.ends(part)]
            for var in dict.fromkeys(atom for atom in atoms if not jax_compat.is_literal(atom)):
                if var in self.batched or (var in made_in and var not in own):
                    part.reads.append(var)
                if var in made_in and var not in own and var not in made_in[var].makes:
                    made_in[var].makes.append(var)
            made_in.update(dict.fromkeys(own, part))

    @cached_property
    def _shared(self) -> set[Any]:
        return set(self.shared)

    @cached_property
    def _independent(self) -> set[int]:
        """Equations outside of stages that are the same for all micro-batches."""
        changing = {*self.carried, *self.batched}
        found: set[int] = set()
        for i, eqn in enumerate(self.jaxpr.eqns):
            inputs = [atom for atom in eqn.invars if not jax_compat.is_literal(atom)]
            if eqn.effects or stages_inside(eqn) or not changing.isdisjoint(inputs):
                changing.update(eqn.outvars)
            else:
                found.add(i)
        return found

    def _maker(self, atom: Any) -> int | None:
        return None if jax_compat.is_literal(atom) else self.makers.get(atom)

    def _makers(self, eqn: Any) -> Iterator[int]:
        for atom in eqn.invars:
            maker = self._maker(atom)
            if maker is not None:
                yield maker

    @cached_property
    def _users(self) -> dict[Any, list[int]]:
        found: dict[Any, list[int]] = {}
        for i, eqn in enumerate(self.jaxpr.eqns):
            for atom in eqn.invars:
                if not jax_compat.is_literal(atom) and i not in self._independent:
                    found.setdefault(atom, []).append(i)
        return found

    def _readers(self, var: Any) -> list[int]:
        return self._users.get(var, [])


def _separated(jaxpr: ClosedJaxpr, loop: Loop) -> ClosedJaxpr:
    """The same function, with results that stages make from shared values alone moved outside them.

    A backward pass may need a transposed weight. It is the same for all micro-batches, so it is
    recomputed where it is used instead of being stacked.
    """
    inner = jaxpr.jaxpr

    def flat(*given: Any) -> list[Any]:
        fixed = {*inner.constvars, *inner.invars[: loop.num_shared]}
        values = dict(zip(inner.constvars, jaxpr.consts, strict=True))
        values.update(zip(inner.invars, given, strict=True))
        for eqn in jaxpr.eqns:
            made = _follows(eqn, fixed)
            fixed.update(compress(eqn.outvars, made))
            if eqn.primitive.name == STAGE_CALL and any(made):
                _evaluate_apart(eqn, made, values)
            else:
                jax_compat.evaluate([eqn], values)
        return [jax_compat.value_of(atom, values) for atom in inner.outvars]

    return jax_compat.traced_again(flat, jaxpr.in_avals)


def _evaluate_apart(eqn: Any, apart: list[bool], values: dict[Any, Any]) -> None:
    """Runs a stage without some of its results, and computes those outside it."""
    operands = [jax_compat.value_of(atom, values) for atom in eqn.invars]
    called, label = eqn.params["jaxpr"], eqn.params["label"]
    small, used = jax_compat.without_dead(called, apart, [False] * len(operands))
    results = jaxpr_as_fun(small)(*compress(operands, used))
    values.update(zip(compress(eqn.outvars, apart), results, strict=True))
    others = [not one for one in apart]
    rest = jax_compat.with_outputs(called, others)
    results = eqn.primitive.bind(*operands, jaxpr=rest, label=label)
    values.update(zip(compress(eqn.outvars, others), results, strict=True))


def _follows(eqn: Any, known: set[Any]) -> list[bool]:
    """Which results depend on the known variables alone, without matrix products."""
    if eqn.effects:
        return [False] * len(eqn.outvars)
    is_known = [jax_compat.is_literal(atom) or atom in known for atom in eqn.invars]
    if eqn.primitive.name != STAGE_CALL:
        return [all(is_known) and not _has_product(eqn)] * len(eqn.outvars)
    called = eqn.params["jaxpr"].jaxpr
    inside = {*called.constvars, *compress(called.invars, is_known)}
    for inner in called.eqns:
        inside.update(compress(inner.outvars, _follows(inner, inside)))
    return [jax_compat.is_literal(atom) or atom in inside for atom in called.outvars]


def _has_product(eqn: Any) -> bool:
    return jax_compat.holds(eqn, lambda inner: inner.primitive.name in _PRODUCTS)


def _place(label: StageLabel, num_stages: int) -> int:
    stage = label.index or 0
    return 2 * num_stages - 1 - stage if label.direction == BACKWARD else stage
