"""`remedies`: changes of a program that does not fit an IPU, each compiled to see its effect."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipujax.api.cost.changed_programs import WHERE, Change, ChangedPrograms, CompiledProgram
from ipujax.api.cost.cost import Cost, as_function
from ipujax.api.pipeline.plan import Plan
from ipujax.compiler.remedies import Changes, by_order, by_proportion, by_report, without_cost
from ipujax.config.options import PER_CALL_PREFIX
from ipujax.errors import ConfigError
from ipujax.host.compile_progress import compile_note
from ipujax.host.logs import logger_of
from ipujax.reporting.model import Report, Tried

logger = logger_of("api")

#: Changes are joined unless one alone fits and takes at most this many times as long.
ALMOST_FREE = 1.05
#: A change is assumed to cost at least this proportion of all cycles.
NEARLY_NOTHING = 0.01
#: A change that adds more than this proportion of all cycles is joined last.
SLOW = 0.5
#: Parts into which the batch is divided.
DIVISORS = (2, 4, 8)
#: IPUs of a pipeline, and its micro-batches: the most of these that divide the batch.
PIPELINES = (2, 4)
MICRO_BATCHES = (16, 8, 4, 2)


@dataclass(frozen=True)
class Remedy:
    """One change, and the program that it gave.

    Attributes:
        text: what to change, in words.
        cost: of one run of the changed program.
        runs: number of runs that do the work of one run before; more than 1 for a smaller batch.
        keeps_results: whether results stay the same bit for bit.
        options: compiler options that are part of the change.
        plan: where a pipeline is cut, to be passed to `ipu.pipeline`.
    """

    text: str
    cost: Cost
    runs: int = 1
    keeps_results: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)
    plan: Plan | None = None

    @property
    def cycles(self) -> float:
        """Cycles for the work of one run of the unchanged program."""
        return self.cost.cycles * self.runs


@dataclass(frozen=True)
class Remedies:
    """What was tried.

    Attributes:
        before: the cost of the program as it is.
        tried: those that fit, the fastest first; then the others, by bytes of the fullest tile.
    """

    before: Cost
    tried: tuple[Remedy, ...]

    @property
    def fitting(self) -> tuple[Remedy, ...]:
        """The changes with which the program fits, the fastest first."""
        return tuple(remedy for remedy in self.tried if remedy.cost.fits)

    @property
    def rows(self) -> tuple[Tried, ...]:
        """The same in the form of a report."""
        return tuple(
            Tried(
                text=each.text,
                fullest_tile_bytes=each.cost.fullest_tile_bytes,
                cycles=each.cycles,
                fits=each.cost.fits,
                keeps_results=each.keeps_results,
            )
            for each in self.tried
        )

    def __str__(self) -> str:
        from ipujax.reporting.summary import tried_table

        before = Tried("as it is", self.before.fullest_tile_bytes, self.before.cycles, False, True)
        return "\n".join(tried_table(before, self.rows))


def remedies(
    fun: Callable[..., Any],
    *args: Any,
    batch: int | Sequence[int] = (),
    state: int | Sequence[int] | None = None,
    loss: Callable[..., Any] | None = None,
    options: Mapping[str, Any] | None = None,
    seconds: float = 60.0,
) -> Remedies:
    """Finds changes that make a program smaller, by compiling each. Nothing runs.

    Tries compiler options that keep results (the order of ops, outlining, recomputation of
    elementwise values and of the named layers with the most bytes where memory is fullest, slices
    of the largest product, less memory for products), half partials, arguments in streaming memory,
    gradients accumulated over micro-batches, and pipelines over more IPUs. If no single change is
    enough at little cost, they are joined, one more each time, until the program fits or takes
    longer than with a change that is enough. Nothing is tried for a program that fits. Results are
    cached in the process.

    Args:
        fun: a function that `jax.jit` takes, or one that it returned without compiler options; or
            a `jax.export.Exported`.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s; none for an exported program.
        batch: arguments whose arrays have the samples along their first axis. The gradients that
            `fun` takes by `jax.grad` or `jax.vjp` are accumulated over parts of them, as
            `ipu.accumulate` does; if these cannot be separated from the rest of `fun`, a batch in n
            parts stands for n runs. With several devices, each divides its own samples.
        state: arguments that could be kept in streaming memory between runs, such as the state of
            an optimizer (`ipu.optim.offload_state`). A result of the same structure goes there,
            too. None: those that no gradient depends on and that have a result of the same shapes.
        loss: the mean over the samples that `fun` differentiates, a function of the arguments of
            `fun` without those in `state`. With it and `batch`, pipelines over 2 and 4 IPUs are
            planned and compiled, whatever the device has; their cost is that of value and gradient.
            Not for programs on several devices.
        options: compiler options of all trials, such as {"ipu_partials_type": "half"}.
        seconds: no further trial begins after this time; the first one always begins.
    Returns:
        The cost of the program as it is, and of each change.
    Raises:
        ConfigError: an argument's number, a batch or an option is invalid.
        PlacementError: the arguments are on a device that is not an IPU.

    Example:
        >>> def loss(w, x):
        ...     for _ in range(24):
        ...         x = jax.nn.gelu(x @ w)
        ...     return jnp.mean(x**2)
        >>> w, x = (jax.ShapeDtypeStruct((n, 1024), jnp.float32) for n in (1024, 4096))
        >>> found = ipu.remedies(jax.grad(loss), w, x, batch=1)
        >>> found.before.fits, bool(found.fitting)
        (False, True)
    """
    fun, args = as_function(fun, args)
    batches = _positions("batch", batch, args)
    states = None if state is None else _positions("state", state, args)
    programs = ChangedPrograms(fun, args, batches, states, loss, dict(options or {}))
    return search(programs, programs.before(), programs.profile, seconds)


def search(
    programs: CompiledProgram, before: Cost, profile: Callable[[], Report], seconds: float
) -> Remedies:
    """What `remedies` returns, for a program whose unchanged cost is known."""
    if before.fits:
        return Remedies(before, ())
    deadline = time.monotonic() + seconds
    tried: list[tuple[Change, Remedy]] = []
    for change in _changes(programs, profile):
        if tried and time.monotonic() > deadline:
            break
        _try(programs, change, tried)
    if _least(tried) > ALMOST_FREE * before.cycles:
        for chain in _chains(before, tried):
            _Join(programs, before, tried, deadline).run(chain)
    found = (remedy for _, remedy in tried)
    return Remedies(before, tuple(sorted(found, key=_order)))


def _try(
    programs: CompiledProgram, change: Change, tried: list[tuple[Change, Remedy]]
) -> Remedy | None:
    """Tries a change and adds the result, if the change can be made."""
    text = change.text
    logger.info("[%s] compiles with %s", WHERE, text)
    with compile_note(f"trial {len(tried) + 1}, {text}"):
        cost = programs.cost(change)
    if cost is None:
        return None
    keeps, options = change.keeps_results, change.options
    remedy = Remedy(text, cost, change.runs, keeps, options, change.plan)
    tried.append((change, remedy))
    return remedy


def _least(tried: list[tuple[Change, Remedy]]) -> float:
    """Cycles of the fastest change that fits on one IPU."""
    fitting = (r.cycles for change, r in tried if r.cost.fits and change.plan is None)
    return min(fitting, default=float("inf"))


def _order(remedy: Remedy) -> tuple[bool, float]:
    fits = remedy.cost.fits
    return not fits, remedy.cycles if fits else remedy.cost.fullest_tile_bytes


def _changes(programs: CompiledProgram, profile: Callable[[], Report]) -> Iterator[Change]:
    """Single changes: those of the compiler, then those of the user's function."""
    config = programs.config
    yield from map(_options, by_order(config))
    yield from map(_options, without_cost(config))
    yield from map(_options, by_report(profile(), config))
    yield from map(_options, by_proportion(config))
    if config.partials_type == "float" and programs.has_half:
        yield Change({f"{PER_CALL_PREFIX}partials_type": "half"}, keeps_results=False)
    for position in programs.states:
        yield Change(on_host=frozenset({position}))
    for divisor in DIVISORS:
        if programs.divides(divisor):
            accumulates = programs.accumulates(divisor)
            is_strided = accumulates and programs.is_sharded
            yield Change(
                divisor=divisor,
                accumulates=accumulates,
                is_strided=is_strided,
                keeps_results=False,
            )
    counts = [count for count in MICRO_BATCHES if programs.divides(count)]
    for ipus in PIPELINES if counts else ():
        if (plan := programs.plan(ipus, counts[0])) is not None:
            yield Change(plan=plan, keeps_results=False)


def _options(changes: Changes) -> Change:
    return Change({f"{PER_CALL_PREFIX}{name}": value for name, value in changes.items()})


def _chains(before: Cost, tried: list[tuple[Change, Remedy]]) -> list[list[Change]]:
    """Chains of changes to join in order: one without, and one with a smaller batch."""

    def worth(pair: tuple[Change, Remedy]) -> float:
        """Bytes saved per added cycle."""
        saved = before.fullest_tile_bytes - pair[1].cost.fullest_tile_bytes
        return saved / max(pair[1].cycles - before.cycles, NEARLY_NOTHING * before.cycles)

    on_one_ipu = [pair for pair in tried if pair[0].plan is None]
    ranked = [pair[0] for pair in sorted(on_one_ipu, key=worth, reverse=True) if worth(pair) > 0]
    keeping = [change for change in ranked if change.keeps_results]
    others = [change for change in ranked if not change.keeps_results and change.divisor == 1]
    of_batch = [pair for pair in on_one_ipu if pair[0].divisor > 1]
    smallest = min(of_batch, key=lambda pair: pair[1].cost.fullest_tile_bytes, default=None)
    return [keeping + others, *([[smallest[0], *keeping]] if smallest is not None else [])]


class _Join:
    """Adds one change after the other if it saves bytes; slow ones after all others."""

    def __init__(
        self,
        programs: CompiledProgram,
        before: Cost,
        tried: list[tuple[Change, Remedy]],
        deadline: float,
    ):
        self.programs, self.tried, self.deadline = programs, tried, deadline
        self.known: dict[str, Remedy | None] = {each.text: remedy for each, remedy in tried}
        self.together, self.cost, self.cycles = Change(), before, before.cycles
        self.slow = SLOW * before.cycles

    def run(self, chain: list[Change]) -> None:
        skipped: list[tuple[float, Change]] = []
        for change in chain:
            if self._add(change, self.slow, skipped):
                return
        for _, change in sorted(skipped, key=lambda pair: pair[0]):
            if self._add(change, math.inf, []):
                return

    def _add(self, change: Change, most: float, skipped: list[tuple[float, Change]]) -> bool:
        """Whether to stop: the program fits, takes longer than one that fits, or time is up."""
        both = self.together.with_(change)
        if both.text not in self.known:
            if time.monotonic() > self.deadline:
                return True
            least = _least(self.tried)
            new = self.known[both.text] = _try(self.programs, both, self.tried)
            if new and new.cycles >= least:
                return True
        remedy = self.known[both.text]
        if remedy is None or remedy.cost.fullest_tile_bytes >= self.cost.fullest_tile_bytes:
            return False
        if remedy.cycles - self.cycles > most:
            skipped.append((remedy.cycles, change))
            return False
        self.together, self.cost, self.cycles = both, remedy.cost, remedy.cycles
        return remedy.cost.fits


def _positions(name: str, given: int | Sequence[int], args: tuple[Any, ...]) -> tuple[int, ...]:
    positions = (given,) if isinstance(given, int) else tuple(given)
    for position in positions:
        if not isinstance(position, int) or not 0 <= position < len(args):
            raise ConfigError(
                f"[{WHERE}] needs {name} to name arguments from 0 to {len(args) - 1}; got "
                f"{position!r}. Count the arguments after the function."
            )
    return positions
