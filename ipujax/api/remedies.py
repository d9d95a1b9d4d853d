"""`remedies`: changes of a program that does not fit an IPU, each compiled to see what it gives."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding

from ipujax import jax_compat
from ipujax.api.cost import Cost, lower, of_compiled
from ipujax.compiler.fit import remedies_of
from ipujax.config import PER_CALL_PREFIX, from_environment, with_compiler_options
from ipujax.errors import ConfigError
from ipujax.placement import HOST

WHERE = "remedies"
logger = logging.getLogger("ipujax")

#: Parts into which the batch is divided.
DIVISORS = (2, 4, 8)


@dataclass(frozen=True)
class Remedy:
    """One change, and the program that it gave.

    Attributes:
        text: what to change, in words.
        cost: of one run of the changed program.
        runs: how many runs do the work of one before, more than 1 for a smaller batch.
        keeps_results: whether results stay bit for bit as they are.
        options: compiler options that are part of the change.
    """

    text: str
    cost: Cost
    runs: int = 1
    keeps_results: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cycles(self) -> float:
        """For the work of one run of the program as it was."""
        return self.cost.cycles * self.runs


@dataclass(frozen=True)
class Remedies:
    """What was tried.

    Attributes:
        before: the cost of the program as it is.
        tried: those that fit first, the fastest of them first; then by bytes of the fullest tile.
    """

    before: Cost
    tried: tuple[Remedy, ...]

    @property
    def fitting(self) -> tuple[Remedy, ...]:
        """Those with which the program fits, the fastest first."""
        return tuple(remedy for remedy in self.tried if remedy.cost.fits)

    def __str__(self) -> str:
        def row(text: str, cost: Cost, cycles: float, note: str) -> str:
            slower = 100 * (cycles / self.before.cycles - 1) if self.before.cycles else 0.0
            fits = "fits" if cost.fits else ""
            return f"{cost.fullest_tile_bytes:>12,} {slower:>+9.1f} % {fits:>5}  {text}{note}"

        lines = [f"{'tile bytes':>12} {'cycles':>11}"]
        lines += [row("as it is", self.before, self.before.cycles, "")]
        lines += [
            row(each.text, each.cost, each.cycles, "" if each.keeps_results else " *")
            for each in self.tried
        ]
        if not all(each.keeps_results for each in self.tried):
            lines.append("* results change: other rounding, or other samples in a step")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Change:
    """Options, arguments in streaming memory, and a divisor of the batch."""

    options: Mapping[str, Any] = field(default_factory=dict)
    on_host: frozenset[int] = frozenset()
    divisor: int = 1
    keeps_results: bool = True

    @property
    def text(self) -> str:
        texts = [f"{name}={value}" for name, value in self.options.items()]
        texts += [f"argument {position} in streaming memory" for position in sorted(self.on_host)]
        if self.divisor > 1:
            texts.append(f"1/{self.divisor} of the batch, {self.divisor} times")
        return "; ".join(texts)

    def with_(self, other: _Change) -> _Change:
        """Both; where they differ in an option or in the batch, as the other has it."""
        return _Change(
            {**self.options, **other.options},
            self.on_host | other.on_host,
            other.divisor if other.divisor > 1 else self.divisor,
            self.keeps_results and other.keeps_results,
        )


def remedies(
    fun: Callable[..., Any],
    *args: Any,
    batch: int | Sequence[int] = (),
    state: int | Sequence[int] = (),
    options: Mapping[str, Any] | None = None,
    seconds: float = 60.0,
) -> Remedies:
    """Changes that make a program smaller, each tried by compiling it. Nothing runs.

    Tries compiler options that keep results (outlining, recomputation of elementwise values, less
    memory for products), half partials, arguments in streaming memory, and smaller batches. If none
    is enough by itself, they are joined, one more each time, until the program fits.
    A program that fits has nothing tried.

    Args:
        fun: a function that `jax.jit` takes, or one that it returned without compiler options.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s.
        batch: arguments whose arrays have the samples along their first axis. A batch in n parts
            stands for n runs; `ipu.accumulate` also has to keep a sum of the gradients.
        state: arguments that could wait in streaming memory between runs, such as the state of an
            optimizer (`ipu.optim.offload_state`). A result of equal structure goes there, too.
        options: compiler options of all trials, such as {"ipu_partials_type": "half"}.
        seconds: no further trial begins after so long; one begins in any case.
    Returns:
        The cost of the program as it is, and of each change.
    Raises:
        ConfigError: an argument's number, a batch or an option is not as said above.
        PlacementError: the arguments are on a device that is no IPU.

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
    batches, states = _positions("batch", batch, args), _positions("state", state, args)
    program = _Program(fun, args, batches, dict(options or {}))
    before = program.cost(_Change())
    if before.fits:
        return Remedies(before, ())
    deadline = time.monotonic() + seconds
    tried: list[tuple[_Change, Remedy]] = []
    for change in _changes(program, states):
        tried.append((change, program.trial(change)))
        if time.monotonic() > deadline:
            break
    for change in _joined(tried):
        if time.monotonic() > deadline or any(remedy.cost.fits for _, remedy in tried):
            break
        tried.append((change, program.trial(change)))
    found = (remedy for _, remedy in tried)
    return Remedies(before, tuple(sorted(found, key=_order)))


def _order(remedy: Remedy) -> tuple[bool, float]:
    fits = remedy.cost.fits
    return not fits, remedy.cycles if fits else remedy.cost.fullest_tile_bytes


def _changes(program: _Program, states: tuple[int, ...]) -> Iterator[_Change]:
    """Single changes: those of the compiler, then those of the user's function."""
    config = program.config
    for group in remedies_of(config):
        for changed in group:
            yield _Change({f"{PER_CALL_PREFIX}{name}": value for name, value in changed.items()})
    if config.partials_type == "float" and program.has_half:
        yield _Change({f"{PER_CALL_PREFIX}partials_type": "half"}, keeps_results=False)
    for position in states:
        yield _Change(on_host=frozenset({position}))
    for divisor in DIVISORS:
        if program.divides(divisor):
            yield _Change(divisor=divisor, keeps_results=False)


def _joined(tried: list[tuple[_Change, Remedy]]) -> Iterator[_Change]:
    """One change more each time: those that keep results first, then by the time they cost."""
    together = _Change()
    known = [change for change, _ in tried]
    for change, _ in sorted(tried, key=lambda each: (not each[0].keeps_results, each[1].cycles)):
        together = together.with_(change)
        if together not in known:
            known.append(together)
            yield together


class _Program:
    """The user's function, and how it is changed."""

    def __init__(
        self,
        fun: Callable[..., Any],
        args: tuple[Any, ...],
        batches: tuple[int, ...],
        options: dict[str, Any],
    ):
        self.fun, self.args, self.batches, self.options = fun, args, batches, options
        self.config = with_compiler_options(from_environment().compile, options)
        self._lowered = lower(WHERE, fun, args)
        for position in batches:
            for leaf in jax.tree.leaves(args[position]):
                if not jax.numpy.shape(leaf):
                    raise ConfigError(
                        f"[{WHERE}] needs batch arguments with a first axis of samples; got "
                        f"a number in argument {position}. Name other arguments."
                    )

    @property
    def has_half(self) -> bool:
        return "f16" in self._lowered.as_text()

    def divides(self, divisor: int) -> bool:
        leaves = [leaf for i in self.batches for leaf in jax.tree.leaves(self.args[i])]
        return bool(leaves) and all(leaf.shape[0] % divisor == 0 for leaf in leaves)

    def trial(self, change: _Change) -> Remedy:
        logger.info("[%s] compiles with %s", WHERE, change.text)
        cost = self.cost(change)
        return Remedy(change.text, cost, change.divisor, change.keeps_results, change.options)

    def cost(self, change: _Change) -> Cost:
        lowered = self._lowered
        if change.on_host or change.divisor > 1:
            lowered = self._changed(change)
        options = {f"{PER_CALL_PREFIX}out_of_memory": "log", f"{PER_CALL_PREFIX}fit": "off"}
        return of_compiled(lowered.compile({**options, **self.options, **change.options}))

    def _changed(self, change: _Change) -> Any:
        """The function with a smaller batch, and arguments that come from streaming memory."""
        host = SingleDeviceSharding(jax.devices(jax_compat.PLATFORM)[0], memory_kind=HOST)
        args = list(self.args)
        if change.divisor > 1:
            for i in self.batches:
                args[i] = jax.tree.map(lambda x: _part(x, change.divisor), args[i])
        for i in change.on_host:
            args[i] = jax.tree.map(
                lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=host), args[i]
            )
        structures = [_structure(args[i]) for i in sorted(change.on_host)]

        def run(*given: Any) -> Any:
            near = list(given)
            for i in change.on_host:
                near[i] = jax.device_put(near[i], jax.memory.Space.Device)
            return _put_back(self.fun(*near), structures)

        info = self._lowered.args_info[0]
        donated = [i for i, of in enumerate(info) if _is_donated(of)]
        try:
            return lower(WHERE, jax.jit(run, donate_argnums=donated), tuple(args))
        except ValueError as error:
            if "compiler_options" not in str(error):
                raise
            raise ConfigError(
                f"[{WHERE}] needs a function without compiler options; got one that jax.jit "
                "returned with some. Pass them as options=."
            ) from error


def _part(x: Any, divisor: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((x.shape[0] // divisor, *x.shape[1:]), x.dtype)


def _is_donated(info: Any) -> bool:
    leaves = jax.tree.leaves(info)
    return bool(leaves) and all(leaf.donated for leaf in leaves)


def _structure(tree: Any) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]


def _put_back(results: Any, structures: list[Any]) -> Any:
    """Results with the structure of an argument that came from streaming memory go there."""
    if _structure(results) in structures:
        return jax.device_put(results, jax.memory.Space.Host)
    if not isinstance(results, tuple):
        return results
    put = [_put_back(each, structures) for each in results]
    return type(results)(*put) if hasattr(results, "_fields") else tuple(put)


def _positions(name: str, given: int | Sequence[int], args: tuple[Any, ...]) -> tuple[int, ...]:
    positions = (given,) if isinstance(given, int) else tuple(given)
    for position in positions:
        if not isinstance(position, int) or not 0 <= position < len(args):
            raise ConfigError(
                f"[{WHERE}] needs {name} to name arguments from 0 to {len(args) - 1}; got "
                f"{position!r}. Count the arguments after the function."
            )
    return positions
