"""Gives the ops that update a stage's parameters the options that the stage has for them.

Before, with B the backward pass of stage s, whose `options["weight_update"]` are o:
  %1 = B(...)   %2 = multiply(%1, 0.1)        %3 = subtract(%0, %2)
After:
  %1 = B(...)   %2 = multiply(%1, 0.1) {o}    %3 = subtract(%0, %2) {o}
An op that no stage claims belongs to the stage whose gradients it reads, or else to the only stage
whose updates read its results. Ops that join the gradients of several stages, such as a global
norm, belong to none, and neither do the accumulators of a pipeline.
"""

from __future__ import annotations

from dataclasses import replace

from ipujax.compiler.ir import Block, Op, Program, Value, inputs_of, walk_ops

#: Name and place of a stage, and its options for updates.
Owner = tuple[str, int | None, tuple[tuple[str, str], ...]]
#: The owner of values that come from several stages.
SEVERAL: Owner = ("", None, ())


def set_update_options(program: Program) -> Program:
    """Sets the options of ops outside of all stages."""
    if any(op.source.placed.weight_update for op in walk_ops(program.main)):
        updates = _Updates(program.main)
        for op, owner in updates.owners.items():
            if owner[2] and not op.source.placed.pipeline and op not in updates.feeding:
                options = {**dict(owner[2]), **dict(op.source.options)}
                op.source = replace(op.source, options=tuple(sorted(options.items())))
    return program


class _Updates:
    """Finds the stage whose parameters each op updates."""

    def __init__(self, main: Block):
        self.owners: dict[Op, Owner] = {}
        self.origins: dict[Value, Owner] = {}  #: the stage whose gradients a value comes from
        self.users: dict[Value, list[Op]] = {}
        self.feeding: set[Op] = set()  #: ops whose results a stage needs: no updates
        for op in walk_ops(main):
            for value in inputs_of(op):
                self.users.setdefault(value, []).append(op)
        self._follow_gradients(main)
        self._follow_users(main, False)

    def _follow_gradients(self, block: Block) -> None:
        for op in block.ops:
            placed = op.source.placed
            if placed.stage_name:
                if placed.direction == "backward":
                    stage = (placed.stage_name, placed.stage, placed.weight_update)
                    self.origins.update(dict.fromkeys(op.results, stage))
            elif op.regions:
                self._enter(op)
            else:
                owner = _only([self.origins[v] for v in inputs_of(op) if v in self.origins])
                if owner is not None:
                    self.owners[op] = owner
                    self.origins.update(dict.fromkeys(op.results, owner))

    def _enter(self, op: Op) -> None:
        """Results of a loop or branches have the origins of the regions' results."""
        for region in op.regions:
            for given, value in zip(op.operands, region.args, strict=False):
                if op.name == "while" and given in self.origins:
                    self.origins[value] = self.origins[given]
            self._follow_gradients(region)
        last = op.regions[-1]
        for value, result in zip(last.results, op.results, strict=False):
            if value in self.origins:
                self.origins[result] = self.origins[value]

    def _follow_users(self, block: Block, feeds: bool) -> None:
        """Gives ops that no gradient reaches to the owner of their users."""
        for op in reversed(block.ops):
            users = [user for value in op.results for user in self.users.get(value, ())]
            is_returned = feeds and not set(op.results).isdisjoint(block.results)
            if is_returned or any(u.source.placed.stage_name or u in self.feeding for u in users):
                self.feeding.add(op)
            for region in op.regions:
                self._follow_users(region, op in self.feeding)
            if op not in self.owners and not op.regions and not op.source.placed.stage_name:
                owner = _only([self.owners[user] for user in users if user in self.owners])
                if owner is not None:
                    self.owners[op] = owner


def _only(owners: list[Owner]) -> Owner | None:
    """The only stage; `SEVERAL` if there are several, None if there are none."""
    found = set(owners)
    stages = found - {SEVERAL}
    return next(iter(stages)) if len(stages) == 1 else SEVERAL if found else None
