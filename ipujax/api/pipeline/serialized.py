"""Loops over micro-batches as they are lowered: stage by stage.

Each stage fetches the values that all micro-batches share. With `batch_serialization_iterations=n`
each stage of a sequential pipeline runs n micro-batches before the next stage begins, so that this
is done once for all of them:

Before:  for k in all:                    After:  for each block of n:
           x = F0(w, k)                             w = fetched for F0
           g = g + B1(w, x)                         for k in block: xs[k] = F0(w, k)
                                                    w = fetched for B1
                                                    for k in block: g = g + B1(w, xs[k])

Stages that carry state to each other, from micro-batch to micro-batch, stay in one loop.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.extend.core import ClosedJaxpr

from ipujax import jax_compat
from ipujax.api.pipeline.accumulators import stages_inside
from ipujax.api.pipeline.division import Division, Part
from ipujax.api.pipeline.loops import ALL, Loop, run
from ipujax.api.pipeline.stages import STAGE_CALL, StageLabel


def run_by_stage(jaxpr: ClosedJaxpr, loop: Loop, *operands: Any) -> list[Any]:
    """The same loop as `run`, stage by stage if that makes a difference."""
    if loop.serial == 1 and not loop.fetches:
        return run(jaxpr, loop, *operands)
    return _StageByStage(Division(jaxpr, loop), loop).run(operands)


@dataclass
class _Block:
    """The state while a block of micro-batches runs; results and stacks by place and name."""

    begin: Any  #: the first micro-batch
    carried: list[Any]
    held: dict[int, Any]
    stacks: dict[Any, Any]
    results: dict[int, Any]


class _StageByStage:
    """The loop of one divided function."""

    def __init__(self, division: Division, loop: Loop):
        self.division = division
        self.loop = loop
        jaxpr = division.jaxpr
        self.constants = dict(zip(jaxpr.jaxpr.constvars, jaxpr.consts, strict=True))
        self.index_of = {var: i for i, var in enumerate(division.shared)}

    def run(self, operands: tuple[Any, ...]) -> list[Any]:
        loop = self.loop
        shared, carried, batched = loop.split(operands)
        far = [loop.put_away(x) for x in shared]
        avals = self.division.jaxpr.out_avals[loop.num_carried :]
        held = {
            index: loop.initial(output, aval)
            for index, (output, aval) in enumerate(zip(loop.outputs, avals, strict=True))
            if output.kind != ALL
        }
        length, size = loop.micro_batches // loop.serial, loop.serial
        blocks = [x.reshape(length, size, *x.shape[1:]) for x in batched] if size > 1 else batched

        def block(state: Any, batch: Any) -> Any:
            stacks = dict(zip(self.division.batched, batch, strict=True))
            begin, carried, held = state
            now = _Block(begin, carried, held, stacks, {})
            for part in self.division.parts:
                self._run_part(part, self._near(part, far), now)
            return (now.begin + size, now.carried, now.held), now.results

        state = (jnp.int32(0), list(carried), held)
        (_, carried, held), stacked = lax.scan(block, state, blocks, length=length)
        results = [
            loop.final(held[i]) if i in held else stacked[i].reshape(-1, *aval.shape)
            for i, aval in enumerate(avals)
        ]
        return [*carried, *results]

    def _run_part(self, part: Part, near: dict[Any, dict[Any, Any]], now: _Block) -> None:
        """Runs the micro-batches of a block."""
        loop, division = self.loop, self.division
        stacked = [i for i in part.results if i not in now.held]

        def step(state: Any, given: Any) -> Any:
            index, changed, sums = state
            values = self.constants | dict(zip(division.carried, now.carried, strict=True))
            values.update((division.carried[i], x) for i, x in changed.items())
            values.update(zip(part.reads, map(self._waited, part.reads, given), strict=True))
            for eqn in part.eqns:
                jax_compat.evaluate([eqn], ChainMap(values, near[_label(eqn)]))
            ends = ChainMap(values, near[None])
            after = {i: jax_compat.value_of(division.next_carried[i], ends) for i in part.carried}
            made = {i: jax_compat.value_of(division.results[i], ends) for i in part.results}
            sums = {
                i: loop.updated(loop.outputs[i], index, old, made[i]) for i, old in sums.items()
            }
            handed_on = [self._waiting(values[var]) for var in part.makes]
            return (index + 1, after, sums), (handed_on, [made[i] for i in stacked])

        changed = {i: now.carried[i] for i in part.carried}
        sums = {i: now.held[i] for i in part.results if i in now.held}
        state, given = (now.begin, changed, sums), [now.stacks[var] for var in part.reads]
        if loop.serial > 1:
            (_, changed, sums), (made, results) = lax.scan(step, state, given, length=loop.serial)
        else:  # one micro-batch, and one part
            (_, changed, sums), (made, results) = step(state, given)
        now.carried = [changed.get(i, x) for i, x in enumerate(now.carried)]
        now.held = now.held | sums
        now.stacks.update(zip(part.makes, made, strict=True))
        now.results.update(zip(stacked, results, strict=True))

    # Fetched values ------------------------------------------------------------------------------

    def _near(self, part: Part, far: list[Any]) -> dict[StageLabel | None, dict[Any, Any]]:
        """Shared values, and values computed from them alone, for each stage of the part."""
        wanted: dict[StageLabel | None, dict[Any, None]] = {None: {}}
        uses: Iterable[Any] = ((_label(eqn), eqn.invars) for eqn in part.eqns)
        for label, atoms in [(None, self.division.ends(part)), *uses]:
            own = wanted.setdefault(label, {})
            for atom in atoms:
                if jax_compat.is_literal(atom):
                    continue
                if atom in self.index_of or self.division.is_independent(atom):
                    own[atom] = None
        return {label: self._brought(label, list(own), far) for label, own in wanted.items()}

    def _brought(
        self, label: StageLabel | None, wanted: list[Any], far: list[Any]
    ) -> dict[Any, Any]:
        eqns, needed = self.division.independent(wanted)
        places = [self.index_of[var] for var in needed]

        def bring(*given: Any) -> list[Any]:
            near = map(self.loop.fetched, places, given)
            values = self.constants | dict(zip(needed, near, strict=True))
            jax_compat.evaluate(eqns, values)
            return [values[var] for var in wanted]

        given = tuple(far[i] for i in places)
        if label is None or not (eqns or self.loop.fetches):
            made = bring(*given)
        else:  # by the stage itself
            plain = replace(label, options=())
            made = jax_compat.call_with_label(STAGE_CALL, plain, bring, given, {})
        return dict(zip(wanted, made, strict=True))

    # Values for a later part ---------------------------------------------------------------------

    def _waiting(self, value: Any) -> Any:
        return self.loop.offload.store(value) if self.loop.offload.activations else value

    def _waited(self, var: Any, value: Any) -> Any:
        is_made = var in self.division.makers  # not of the batch
        return self.loop.offload.load(value) if is_made and self.loop.offload.activations else value


def _label(eqn: Any) -> StageLabel | None:
    """The only stage that the equation calls."""
    labels = stages_inside(eqn)
    return labels.pop() if len(labels) == 1 else None
