"""Cuts a function into the stages of a pipeline by the costs of its parts on the IPU Model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import jax

from ipujax import jax_compat
from ipujax.api.pipeline.arguments import Arguments
from ipujax.api.pipeline.loops import ACCUMULATED
from ipujax.api.pipeline.pipeline import GROUPED, SCHEDULES
from ipujax.api.pipeline.plan import Plan, flat_function
from ipujax.errors import PipelineError, check_choice
from ipujax.planner.choose import Choice, choose, numbers_of_ipus, priced, whole
from ipujax.planner.costs import Pricing
from ipujax.planner.fingerprint import fingerprint
from ipujax.planner.intervals import Intervals, Schedule
from ipujax.planner.parts import divide
from ipujax.planner.plan_file import PlanData
from ipujax.types import Accumulation, Priority, ScheduleName

WHERE = "ipu.plan_stages"
PRIORITIES = ("cycles", "memory")
MOST_IPUS = 64
#: A search compiles at most this many pipelines.
MOST_COMPILED = 8
#: A cut is compiled if its estimate is at most this many times that of the best one.
UNCERTAIN = 1.25
#: In cycles: more than any program takes.
TOO_LARGE = 1e18


def plan_stages(
    fun: Callable[..., Any],
    args: Sequence[Any],
    ipus: tuple[int, int] = (2, MOST_IPUS),
    priority: Priority = "cycles",
    *,
    micro_batches: int,
    in_axes: Any = None,
    schedule: ScheduleName = GROUPED,
    reduction: Accumulation | None = None,
    remat: bool | None = None,
    check: bool = True,
) -> Plan:
    """Finds stages for a function: where to cut it, and on how many IPUs.

    The function is cut where it calls jitted functions, at matrix products, convolutions and
    look-ups, and between the iterations of a scan; names of `ipu.block` begin those of its parts.
    Each different part is compiled once for one IPU of the IPU Model, and the cut with the best
    sums of cycles or memory is chosen. If the first and the last part share weights, they may be on
    one IPU.

    Args:
        fun: pure function of one micro-batch, without stages, as `ipu.pipeline` takes it.
        args: arguments of the pipeline, or their `jax.ShapeDtypeStruct`s.
        ipus: the least and the greatest number of IPUs. Powers of two and the number of the JAX
            device are tried; larger numbers than that only if it has fewer than the least.
        priority: "cycles": the fewest cycles for all micro-batches; "memory": the least bytes on
            the fullest tile.
        micro_batches, in_axes, schedule: as in `ipu.pipeline`.
        reduction: as in `ipu.pipeline`; if there is one, the costs are those of value and gradient.
        remat: as in `ipu.stage`, for all stages.
        check: compile the pipeline of the chosen cut, correct the estimates by its costs, and
            compile promising cuts with one part moved to the stage before or after, as long as that
            helps; at most eight cuts are compiled. This needs a JAX device with as many IPUs;
            otherwise the notes say that it was not compiled.
    Returns:
        A `Plan`. Its notes say whether one IPU is enough and, if nothing fits, what is missing.
    Raises:
        PipelineError: an invalid number of IPUs, a function that cannot be cut, or as
            `ipu.pipeline`.
        ConfigError: an option with an unknown value.

    Example:
        >>> def loss(weights, x):
        ...     for w in weights:
        ...         x = jnp.tanh(x @ w)
        ...     return jnp.mean(x**2)
        >>> args = [jnp.eye(16)] * 4, jnp.ones((8, 4, 16))
        >>> plan = ipu.plan_stages(loss, args, ipus=(2, 2), micro_batches=8, reduction="mean")
        >>> print(list(plan.parts.values()))
        [0, 1, 1, 1]
    """
    check_choice(WHERE, "priority", priority, PRIORITIES, PipelineError)
    check_choice(WHERE, "schedule", schedule, SCHEDULES, PipelineError)
    if reduction is not None:
        check_choice(WHERE, "reduction", reduction, ACCUMULATED, PipelineError)
    device = jax.local_devices(backend=jax_compat.PLATFORM)[0]
    counts = _numbers(ipus, device.num_ipus)
    jaxpr, shared, num_leaves = _traced(fun, args, in_axes, micro_batches)
    largest = 0.5 / max(counts)
    divided = divide(jaxpr, shared, largest)
    if len(divided.parts) < counts[0]:
        names = [part.name for part in divided.parts]
        raise PipelineError(
            f"[{WHERE}] needs at least {counts[0]} parts for {counts[0]} IPUs; got {names} in "
            f"{_name(fun)}. Use fewer IPUs, or write it as several layers."
        )
    training = reduction is not None
    timing = Schedule(schedule, micro_batches, training)
    intervals = Intervals(Pricing(divided, device, training, remat), timing)
    limit = float(device.bytes_per_tile)
    blank = PlanData(
        function=_name(fun),
        fingerprint=fingerprint(jaxpr),
        shared=shared[len(shared) - num_leaves :],
        largest=largest,
        micro_batches=micro_batches,
        schedule=schedule,
        reduction=reduction,
        remat=remat,
        priority=priority,
    )
    found = _Search(intervals, counts, limit, Plan(fun, blank))
    return found.checked(args, in_axes, device.num_ipus) if check else found.plan


class _Search:
    """Chooses a cut by the costs of the parts; compiles its pipeline to improve it."""

    def __init__(self, intervals: Intervals, counts: Sequence[int], limit: float, blank: Plan):
        self.limit = limit
        self.priority = blank.data.priority
        self.intervals = intervals
        fitting, smallest = choose(intervals, counts, self.priority, limit)
        choice = fitting or smallest
        names = intervals.names
        data = replace(
            blank.data,
            device_mapping=list(choice.device_mapping),
            parts=dict(zip(names, choice.places, strict=True)),
            costs=dict(zip(names, intervals.of_parts(), strict=True)),
            notes=_notes(intervals, choice, limit),
        )
        self.plan = Plan(blank.fun, data)
        self.more_cycles = [0.0] * len(choice.ipu_cycles)  #: per IPU and slot, over the estimate
        self.more_bytes = [0.0] * len(choice.ipu_cycles)  #: per IPU, on its fullest tile

    def checked(self, args: Sequence[Any], in_axes: Any, num_ipus: int) -> Plan:
        """The plan with parts moved to the next stage as long as that helps.

        Measurements correct the estimates; a cut is compiled only if by these it may win.
        """
        needed = max(self.plan.device_mapping) + 1
        if needed > num_ipus:
            return self.plan.noted(
                f"not compiled: it needs {needed} IPUs, and the JAX device has {num_ipus}; set "
                f"JAX_IPU_IPUS_PER_DEVICE to {needed} or more before JAX starts"
            )
        best, cost = self.plan, self.plan.measure(args, in_axes)
        self._learn(best, cost)
        tried = {tuple(best.parts.values())}
        while len(tried) < MOST_COMPILED:
            plan = self._promising(best, tried)
            if plan is None:
                break
            tried.add(tuple(plan.parts.values()))
            own = plan.measure(args, in_axes)
            self._learn(plan, own)
            if self._rank(own["cycles"], own["worst tile bytes"]) < self._rank(
                cost["cycles"], cost["worst tile bytes"]
            ):
                best, cost = plan, own
        return best.noted(
            f"compiled: {cost['cycles']:,.0f} cycles a call, {cost['worst tile bytes']:,.0f} bytes "
            f"on the fullest tile; the best of {len(tried)} cuts that were compiled"
        )

    def _promising(self, best: Plan, tried: set[tuple[int, ...]]) -> Plan | None:
        """The neighbour of the best plan with the lowest estimate, if it may be better."""

        def estimated(plan: Plan) -> float:
            choice = self._estimate(plan)
            return self._rank(choice.cycles, max(choice.tile_bytes))

        ipus = set(best.device_mapping)
        near = [plan for ipu in sorted(ipus) for plan in best.moved_off(ipu)]
        fresh = [plan for plan in near if tuple(plan.parts.values()) not in tried]
        found = min(fresh, key=estimated, default=None)
        may_win = found is not None and estimated(found) <= UNCERTAIN * estimated(best)
        return found if may_win else None

    def _estimate(self, plan: Plan) -> Choice:
        """Estimates from the costs of the parts and the last plan's measured excess on each IPU."""
        places = list(plan.parts.values())
        count = len(plan.device_mapping)
        ends = accumulate(places.count(stage) for stage in range(count))
        found = priced(self.intervals, tuple(ends), tuple(plan.device_mapping))
        cycles = [a + b for a, b in zip(found.ipu_cycles, self.more_cycles, strict=True)]
        tile_bytes = [a + b for a, b in zip(found.tile_bytes, self.more_bytes, strict=True)]
        return replace(
            found,
            ipu_cycles=tuple(cycles),
            cycles=self.intervals.schedule.cycles(count, cycles),
            tile_bytes=tuple(tile_bytes),
        )

    def _learn(self, plan: Plan, cost: dict[str, float]) -> None:
        """Adds to the estimates the measured excess of cycles and bytes of each IPU."""
        estimate, kinds = self._estimate(plan), ("compute", "exchange", "link")
        for ipu, cycles in enumerate(estimate.ipu_cycles):
            busy = sum(cost[f"ipu {ipu} {kind} cycles"] for kind in kinds)
            self.more_cycles[ipu] += busy / plan.data.micro_batches - cycles
            more = cost[f"ipu {ipu} worst tile bytes"] - estimate.tile_bytes[ipu]
            self.more_bytes[ipu] += more

    def _rank(self, cycles: float, fullest: float) -> float:
        """The value to minimise. A plan that does not fit ranks after those that do."""
        if self.priority == "memory":
            return fullest
        return cycles if fullest <= self.limit else TOO_LARGE + fullest


def _name(fun: Callable[..., Any]) -> str:
    return str(getattr(fun, "__name__", type(fun).__name__))


def _numbers(ipus: tuple[int, int], of_device: int) -> list[int]:
    """Which numbers of IPUs to try."""
    least, most = ipus
    if not 1 <= least <= most <= MOST_IPUS:
        raise PipelineError(
            f"[{WHERE}] needs ipus to be the least and the greatest number of IPUs, 1 to "
            f"{MOST_IPUS}; got {ipus!r}. Pass for example (2, 8)."
        )
    allowed = min(most, of_device) if of_device >= least else most
    found = numbers_of_ipus(least, allowed, of_device)
    return found or [least]


def _traced(
    fun: Callable[..., Any], args: Sequence[Any], in_axes: Any, micro_batches: int
) -> tuple[Any, list[bool], int]:
    """The function of a micro-batch, which of its inputs are shared, and how many are arguments."""
    found: list[Any] = []

    def look(*args: Any) -> None:
        arguments = Arguments(args, in_axes)
        arguments.check((micro_batches,))
        found.append((arguments.unflatten(arguments.micro_avals), arguments.is_shared))

    jax.eval_shape(look, *args)
    micro_batch, shared = found[-1]
    avals, tree = jax.tree.flatten(micro_batch)
    jaxpr, captured = jax_compat.trace_avals(flat_function(fun, tree, []), avals)
    if any(eqn.primitive.name == "ipu_stage" for eqn in jaxpr.jaxpr.eqns):
        raise PipelineError(
            f"[{WHERE}] needs a function without stages; got calls of ipu.stage in {_name(fun)}. "
            "Remove them, or pass the function to ipu.pipeline as it is."
        )
    return jaxpr, [True] * len(captured) + shared, len(avals)


def _notes(intervals: Intervals, choice: Choice, limit: float) -> list[str]:
    notes = []
    one = whole(intervals)
    if one.tile_bytes[0] <= limit:
        notes.append(
            f"one IPU is enough: all parts need {one.tile_bytes[0]:,.0f} of {limit:,.0f} bytes of "
            f"a tile, and {one.cycles:,.0f} cycles"
        )
    fullest = max(choice.tile_bytes)
    if fullest > limit:
        missing = (fullest - limit) * intervals.tiles
        ipu = choice.tile_bytes.index(fullest)
        part = intervals.largest_part(choice.parts_on(ipu))
        notes.append(
            f"nothing fits: IPU {ipu} needs {fullest:,.0f} bytes of a tile and has {limit:,.0f}, "
            f"{missing:,.0f} bytes are missing on it; its largest part is {part!r}"
        )
    notes.append(f"estimated: {choice.cycles:,.0f} cycles a call")
    return notes
