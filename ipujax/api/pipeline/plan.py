"""Plans: a function with the stages that `ipu.plan_stages` found for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import update_wrapper
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from ipujax import jax_compat
from ipujax.api.pipeline.pipeline import pipeline
from ipujax.api.pipeline.stages import stage
from ipujax.errors import PipelineError
from ipujax.host.new_files import replacing
from ipujax.planner.fingerprint import fingerprint
from ipujax.planner.parts import Divided, divide
from ipujax.planner.pieces import Piece, pieces_of, run_pieces
from ipujax.planner.plan_file import PlanData, check_stages, from_file, stages_of, to_text
from ipujax.planner.table import table

WHERE = "ipu.Plan"


class Plan:
    """A function of a micro-batch, cut into stages; made by `ipu.plan_stages`.

    `ipu.pipeline(plan)` runs it on several IPUs, `plan(...)` on one micro-batch. `print(plan)`
    shows a table of the stages with their costs. `device_mapping` and `parts` may be changed.

    Example:
        >>> def model(weights, x):
        ...     return jnp.mean(jnp.tanh(x @ weights[0]) @ weights[1])
        >>> weights, batch = [jnp.eye(4), jnp.ones((4, 4))], jnp.ones((2, 3, 4))
        >>> plan = ipu.plan_stages(model, (weights, batch), ipus=(2, 2), micro_batches=2)
        >>> print(plan.parts)
        {'dot_general 0': 0, 'dot_general 1': 1}
        >>> print(plan.device_mapping)
        [0, 1]
    """

    def __init__(self, fun: Callable[..., Any], data: PlanData):
        update_wrapper(self, fun, updated=())
        self.fun = fun
        self.data = data

    @property
    def parts(self) -> dict[str, int]:
        """The stage of each part, by name; the name of a block may stand for all its parts."""
        return self.data.parts

    @property
    def device_mapping(self) -> list[int]:
        """The IPU of each stage."""
        return self.data.device_mapping

    @property
    def planned(self) -> dict[str, Any]:
        """The options of `ipu.pipeline` for which the plan was made."""
        names = ("micro_batches", "schedule", "reduction")
        return {name: getattr(self.data, name) for name in names}

    def __call__(self, *args: Any) -> Any:
        """The function's result for one micro-batch, each stage on its IPU."""
        jax_compat.hide_frames(__file__)
        leaves, tree = jax.tree.flatten(args)
        made: list[Any] = []
        jaxpr, captured = jax_compat.trace_call(flat_function(self.fun, tree, made), leaves)
        divided = self._divide(jaxpr, len(captured), len(leaves))
        pieces = pieces_of(divided, list(self.parts.values()), len(self.device_mapping))
        check_order(divided, pieces)

        def call(index: int, piece: Piece, given: list[Any]) -> Sequence[Any]:
            name = self.stage_name(index)
            remat = self.data.remat
            return stage(piece.__call__, self.device_mapping[index], name=name, remat=remat)(*given)

        results = run_pieces(divided, pieces, call, [*captured, *leaves])
        return jax.tree.unflatten(made[-1], results)

    def stage_name(self, index: int) -> str:
        """A stage's name in reports: the first and the last of its parts."""
        own = [name for name, place in self.parts.items() if place == index]
        return own[0] if len(own) == 1 else f"{own[0]} to {own[-1]}"

    def _divide(self, jaxpr: Any, num_captured: int, num_leaves: int) -> Divided:
        """Divides the function into parts, which must be those of the plan."""
        found = fingerprint(jaxpr)
        if found != self.data.fingerprint or num_leaves != len(self.data.shared):
            raise PipelineError(
                f"[{WHERE}] needs the function and the shapes that the plan was made for, "
                f"{self.data.function!r} with fingerprint {self.data.fingerprint}; got "
                f"{getattr(self.fun, '__name__', self.fun)!r} with fingerprint {found}. "
                "Make a new plan with ipu.plan_stages."
            )
        shared = [True] * num_captured + self.data.shared
        divided = divide(jaxpr, shared, self.data.largest)
        names = [part.name for part in divided.parts]
        self.data.parts = stages_of(self.parts, names, "the plan")
        check_stages(self.data, "the plan")
        return divided

    def __str__(self) -> str:
        return table(self.data)

    def __repr__(self) -> str:
        return f"<ipu.Plan of {self.data.function} on IPUs {self.device_mapping}>"

    def save(self, path: str | Path) -> None:
        """Writes the plan as JSON, whose `device_mapping` and `parts` may be edited.

        In `parts` the name of a block may stand for all its parts: `"encoder": 0`.
        """
        with replacing(path) as file:
            file.write(to_text(self.data).encode())

    @classmethod
    def load(cls, path: str | Path, fun: Callable[..., Any]) -> Plan:
        """Reads a plan that `save` wrote.

        Args:
            fun: the function that it was made for.
        Raises:
            PipelineError: the file is not a plan, or was edited so that a name or a type is wrong.
                A plan for another function is detected when it is called.
        """
        return cls(fun, from_file(path))

    def measure(self, args: Sequence[Any], in_axes: Any = None) -> dict[str, float]:
        """Compiles the pipeline, with its gradient if it has a reduction, for the first IPU device.

        Args:
            args: arguments of the pipeline, or their `jax.ShapeDtypeStruct`s.
            in_axes: as in `ipu.pipeline`.
        Returns:
            The compiled program's cost analysis.
        """
        program = self.program(in_axes)
        with jax.default_device(jax.local_devices(backend=jax_compat.PLATFORM)[0]):
            return dict(jax.jit(program).lower(*args).compile().cost_analysis())

    def program(self, in_axes: Any = None) -> Callable[..., Any]:
        """The pipeline as it is measured: with its gradient if it has a reduction."""
        run = pipeline(self, in_axes=in_axes)
        return run if self.data.reduction is None else self._gradient(run)

    def _gradient(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """The value and its gradient with respect to all shared floating-point arguments."""

        def with_gradient(*args: Any) -> Any:
            leaves, tree = jax.tree.flatten(args)
            is_float = [jnp.issubdtype(jnp.result_type(x), jnp.inexact) for x in leaves]
            pairs = zip(is_float, self.data.shared, strict=True)
            moving = [i for i, (moves, shared) in enumerate(pairs) if moves and shared]

            def loss(given: list[Any]) -> Any:
                whole = list(leaves)
                for index, leaf in zip(moving, given, strict=True):
                    whole[index] = leaf
                value, *rest = jax.tree.leaves(run(*jax.tree.unflatten(tree, whole)))
                return value, rest

            return jax.value_and_grad(loss, has_aux=True)([leaves[i] for i in moving])

        return with_gradient

    def tune(self, args: Sequence[Any], *, in_axes: Any = None, rounds: int = 4) -> Plan:
        """Compiles the plan and its neighbours, and keeps the one with the fewest cycles.

        A neighbour has one part more or less in a stage. The device must have the plan's IPUs.

        Args:
            args: arguments of the pipeline, or their `jax.ShapeDtypeStruct`s.
            in_axes: as in `ipu.pipeline`.
            rounds: the neighbours of the best plan are tried at most this many times.
        Returns:
            The best plan; its notes say how many cycles it takes.
        Raises:
            PlacementError: the device has fewer IPUs than the plan.
        """
        measured: dict[tuple[int, ...], float] = {}

        def cycles(plan: Plan) -> float:
            key = tuple(plan.parts.values())
            if key not in measured:
                measured[key] = plan.measure(args, in_axes)["cycles"]
            return measured[key]

        best = self
        first = cycles(best)
        for _ in range(rounds):
            moved = [plan for ipu in set(best.device_mapping) for plan in best.moved_off(ipu)]
            found = min((best, *moved), key=cycles)
            if found is best:
                break
            best = found
        return best.noted(f"tuned: {cycles(best):,.0f} cycles a call, {first:,.0f} before")

    def moved_off(self, ipu: int) -> list[Plan]:
        """The plans with one part less on this IPU: it goes to the stage before or after."""
        places = list(self.parts.values())
        found = []
        for index, place in enumerate(places):
            if self.device_mapping[place] != ipu or places.count(place) == 1:
                continue
            for other in (index - 1, index + 1):
                if 0 <= other < len(places) and abs(places[other] - place) == 1:
                    moved = [*places[:index], places[other], *places[index + 1 :]]
                    parts = dict(zip(self.parts, moved, strict=True))
                    found.append(Plan(self.fun, replace(self.data, parts=parts)))
        return found

    def noted(self, note: str) -> Plan:
        """The plan with one more note."""
        return Plan(self.fun, replace(self.data, notes=[*self.data.notes, note]))


def flat_function(fun: Callable[..., Any], tree: Any, made: list[Any]) -> Callable[..., list[Any]]:
    """The function of flat arguments; puts the tree of its results into `made`."""

    def flat(*leaves: Any) -> list[Any]:
        results, results_tree = jax.tree.flatten(fun(*jax.tree.unflatten(tree, leaves)))
        made.append(results_tree)
        return [jnp.asarray(result) for result in results]

    return flat


def check_order(divided: Divided, pieces: Sequence[Piece]) -> None:
    """Refuses a stage that needs a result of a later one."""
    made = set(divided.listing.inputs)
    for index, piece in enumerate(pieces):
        needed = {value for part in piece.parts for value in part.reads() if value in divided.maker}
        own = {value for part in piece.parts for value in part.makes()}
        late = [divided.maker[value] for value in needed - own - made]
        if late:
            raise PipelineError(
                f"[{WHERE}] needs stages that read what earlier ones made; got stage {index} with "
                f"{piece.parts[0].name!r}, which needs {late[0].name!r} of a later stage. Give "
                f"{late[0].name!r} a stage that is not later."
            )
        made |= own
