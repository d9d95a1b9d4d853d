"""`cost` and `assert_fits`: time and memory of a program as numbers, and as a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.export

from ipujax import jax_compat
from ipujax.api.cost.devices import on_ipus
from ipujax.errors import ConfigError, FitError, PlacementError
from ipujax.host.html_tables import html_table, paragraphs
from ipujax.reporting.model import CODE
from ipujax.types import Fetched

#: Also look at a program that does not fit.
QUIETLY = {"ipu_out_of_memory": "run"}
#: The same, without the remedies that `ipu_fit="auto"` finds.
AS_IT_IS = {**QUIETLY, "ipu_fit": "off"}
#: What the bytes of a tile are for; see docs/guides/memory.md.
PARTS = (
    "parameters",
    "state",
    "accumulators",
    "stash",
    "temporaries",
    "rearrangement",
    "exchange buffers",
    "host copy buffers",
    "vertex state",
    "vertex code",
    "control code",
    "exchange code",
    "stack",
    "padding",
)


@dataclass(frozen=True)
class Cost:
    """What one run of a program costs on the modelled IPU.

    On several devices each one runs the same program, so all numbers are per device.

    Attributes:
        cycles: of the whole program.
        seconds: these cycles at the machine's clock rate.
        seconds_without_host: the same if streams and callbacks took no time.
        host_bytes: bytes that cross the link to the host in a run, in both directions.
        fullest_tile_bytes: peak bytes on the fullest tile.
        tile_capacity_bytes: bytes that a tile has.
        code_bytes: bytes of code on the tile with the most.
        code_capacity_bytes: bytes of a tile that can hold code.
        fullest_ipu: the IPU of the device that has the fullest tile.
        num_replicas: devices that run the program.
        collective_cycles: cycles in which replicas communicate; those of IPUs of one device that
            work at the same time are added up.
        collective_bytes: bytes that collectives bring from other replicas.
        parts: bytes of the fullest tile by purpose; they add up to `fullest_tile_bytes`.
        analysis: all that `compiled.cost_analysis()` gives.
    """

    cycles: float
    seconds: float
    seconds_without_host: float
    host_bytes: float
    fullest_tile_bytes: int
    tile_capacity_bytes: int
    code_bytes: int
    code_capacity_bytes: int
    fullest_ipu: int
    num_replicas: int
    collective_cycles: float
    collective_bytes: float
    parts: Mapping[str, int]
    analysis: Mapping[str, float]

    @property
    def headroom(self) -> float:
        """The free proportion of the fullest tile; negative if the program does not fit."""
        return 1 - self.fullest_tile_bytes / self.tile_capacity_bytes

    @property
    def fits(self) -> bool:
        """Whether the fullest tile has room for its bytes, and code fits where code can be."""
        has_room = self.fullest_tile_bytes <= self.tile_capacity_bytes
        return has_room and self.code_bytes <= self.code_capacity_bytes

    def __str__(self) -> str:
        verdict = "fits" if self.fits else "does not fit"
        parts = sorted(self.parts.items(), key=lambda part: -part[1])
        host = (
            f" ({self.seconds_without_host:.3g} s without the host's {self.host_bytes:.0f} bytes)"
            if self.host_bytes
            else ""
        )
        code = (
            f"code: {self.code_bytes} bytes on a tile, of {self.code_capacity_bytes} that can "
            "hold code\n"
        )
        replicas = (
            f"each of {self.num_replicas} replicas; collectives: {self.collective_cycles:.0f} "
            f"cycles, {self.collective_bytes:.0f} bytes over links\n"
        )
        return (
            f"{verdict}: {self.fullest_tile_bytes} of {self.tile_capacity_bytes} bytes on the "
            f"fullest tile, on IPU {self.fullest_ipu} (headroom {self.headroom:.1%})\n"
            f"{code if self.code_bytes > self.code_capacity_bytes else ''}"
            f"time: {self.cycles:.0f} cycles, {self.seconds:.3g} s{host}\n"
            f"{replicas if self.num_replicas > 1 else ''}"
            "fullest tile: " + ", ".join(f"{name} {size}" for name, size in parts if size)
        )

    def __repr__(self) -> str:
        return (
            f"Cost({'fits' if self.fits else 'does not fit'}: {self.fullest_tile_bytes} of "
            f"{self.tile_capacity_bytes} bytes, {self.cycles:.0f} cycles, {self.seconds:.3g} s)"
        )

    def _repr_html_(self) -> str:
        said = str(self).splitlines()[:-1]
        parts = sorted(self.parts.items(), key=lambda part: -part[1])
        rows = [(name, str(size)) for name, size in parts if size]
        return paragraphs(said) + html_table(("on the fullest tile", "bytes"), rows)


def cost(
    fun: Callable[..., Any],
    *args: Any,
    streamed: str | Iterable[str] = (),
    fetched: Fetched | None = None,
    run: bool = False,
) -> Cost:
    """Compiles a function for an IPU and returns its cost. Nothing runs unless `run` is True.

    A program that does not fit has a cost, too, whatever `ipu_out_of_memory` says.

    Args:
        fun: a function that `jax.jit` takes, or one that it, `ipu.pmap` or `jax.pmap` returned; or
            a `jax.export.Exported`.
        args: its arguments: arrays, or `jax.ShapeDtypeStruct`s, which may be sharded over a mesh of
            IPUs or over an abstract one; none for an exported program.
        streamed: names of the parameters of `fun` whose arrays come from the host in every run,
            such as "batch"; the others stay on the device, as JAX's arrays do.
        fetched: which results go to the host in every run: "none", "new" (those that do not reuse a
            donated argument) or "all"; by default "new" if anything is streamed, else "none".
        run: whether to run it once with these arrays, so that loops whose number of iterations is
            known only at run time count as often as they ran; otherwise they count
            `ipu_assumed_trip_count` times. `analysis` then has "loop 0 measured trip count" and so
            on.
    Returns:
        Cycles, seconds, and bytes of the fullest tile.
    Raises:
        ConfigError: `fun` is not a function, `streamed` names an argument that it does not use, or
            `run` is True without arrays.
        PlacementError: the arguments are on a device that is not an IPU, or there are fewer IPUs
            than the program needs.

    Example:
        >>> found = ipu.cost(jnp.tanh, jax.ShapeDtypeStruct((256, 256), jnp.float32))
        >>> found.fits, found.fullest_tile_bytes == sum(found.parts.values())
        (True, True)
        >>> x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
        >>> found = ipu.cost(lambda w, batch: batch @ w, x, x, streamed="batch")
        >>> found.host_bytes == 2 * 256 * 256 * 4, found.seconds > found.seconds_without_host
        (True, True)
    """
    options = QUIETLY | _host_options(streamed, fetched)
    compiled = lower("cost", fun, args).compile(options)
    if run:
        jax.block_until_ready(compiled(*_copied(args)))
    return of_compiled(compiled)


def assert_fits(
    fun: Callable[..., Any], *args: Any, headroom: float = 0.0, seconds: float | None = None
) -> Cost:
    """Raises an error if a function does not fit an IPU, or takes too long. Nothing runs.

    Args:
        fun: as for `ipu.cost`.
        args: its arguments, as for `ipu.cost`.
        headroom: proportion of the fullest tile that must stay free, from 0 to less than 1.
        seconds: the longest that a run may take on the modelled IPU; None for any time.
    Returns:
        The cost, if it is within both limits.
    Raises:
        FitError: an `AssertionError` that names each limit that is exceeded.
        ConfigError: a limit is out of range, or `fun` is not a function.
        PlacementError: the arguments are on a device that is not an IPU, or there are fewer IPUs
            than the program needs.

    Example:
        >>> x = jax.ShapeDtypeStruct((256, 256), jnp.float32)
        >>> ipu.assert_fits(jnp.tanh, x, headroom=0.05, seconds=2e-3).fits
        True
    """
    _check_limits(headroom, seconds)
    found = cost(fun, *args)
    allowed = found.tile_capacity_bytes * (1 - headroom)
    needs, got = [], []
    if found.code_bytes > found.code_capacity_bytes:
        needs.append(f"at most {found.code_capacity_bytes} bytes of code on a tile")
        got.append(f"{found.code_bytes} bytes of code")
    if found.fullest_tile_bytes > allowed:
        needs.append(f"at most {int(allowed)} bytes on a tile (headroom {headroom:g})")
        got.append(f"{found.fullest_tile_bytes} bytes")
    if seconds is not None and found.seconds > seconds:
        needs.append(f"at most {seconds:g} s")
        got.append(f"{found.seconds:.3g} s")
    if needs:
        raise FitError(
            f"[assert_fits] needs {' and '.join(needs)}; got {' and '.join(got)}.\n{found}\n"
            "Use a smaller batch or model, or more IPUs, or raise the limit.",
            found,
        )
    return found


def lower(
    where: str, fun: Callable[..., Any], args: tuple[Any, ...], *, with_callers: bool = False
) -> Any:
    """The function lowered for the first IPU.

    Args:
        where: the caller in errors.
        with_callers: whether operations keep the lines that called libraries; without, equal
            programs are equal wherever they are called.
    """
    fun, args = as_function(fun, args)
    if not callable(fun):
        raise ConfigError(
            f"[{where}] needs a function; got {type(fun).__name__}. Pass the function, then its "
            "arguments."
        )
    args = on_ipus(where, getattr(fun, "__name__", "a function"), args)
    platforms = {device.platform for device in jax.tree.leaves(_devices(args))}
    jitted = fun if hasattr(fun, "lower") else jax.jit(fun)
    locations = jax_compat.long_locations() if with_callers else jax_compat.short_locations()
    with jax.default_device(_first_ipu()), locations:
        lowered = jitted.lower(*args)
    if platforms - {jax_compat.PLATFORM}:
        raise PlacementError(
            f"[{where}] needs arguments on an IPU; got some on {', '.join(sorted(platforms))}. "
            "Pass jax.ShapeDtypeStructs, or arrays that jax.device_put put on an IPU."
        )
    return lowered


def as_function(fun: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """An exported program as a function, by default with the shapes that it was exported for."""
    if not isinstance(fun, jax.export.Exported):
        return fun, args
    if not args:
        shardings: list[Any] = [None] * len(fun.in_avals)
        if fun.nr_devices > 1:
            shardings = jax_compat.in_shardings_of(fun, jax_compat.mesh_of_exported(fun))
        args, keywords = jax.tree.unflatten(
            fun.in_tree,
            [
                jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=sharding)
                for aval, sharding in zip(fun.in_avals, shardings, strict=True)
            ],
        )
        if keywords:
            raise ConfigError(
                f"[exported] needs a function of positional arguments; got the keywords "
                f"{', '.join(keywords)}. Export it without them."
            )

    def call(*given: Any) -> Any:
        return fun.call(*given)

    call.__name__ = fun.fun_name
    return jax.jit(call), args


def of_compiled(compiled: Any, device: Any = None) -> Cost:
    """The cost of a program that was compiled for an IPU.

    Args:
        device: one for which it was compiled; None: like those of this process.
    Raises:
        ConfigError: a Poplar SDK compiled it, which reports no costs before a program runs.
    """
    from ipujax._poplar import _poplar

    if not _poplar.capabilities.images:
        raise ConfigError(
            "[cost] needs the IPU Model's own build, which accounts for programs; got a build "
            "against a Poplar SDK, which has profiles of runs alone. Set POPLAR_ENGINE_OPTIONS to "
            "have one for PopVision, use ipu.cycle_count, or unset IPUJAX_EXTENSION."
        )
    return _from_analysis(dict(compiled.cost_analysis()), device or _first_ipu())


def _copied(args: Any) -> Any:
    """Copies arrays, so that the caller keeps those that a run reuses."""
    leaves = jax.tree.leaves(args)
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in leaves):
        raise ConfigError(
            "[cost] needs arrays for run=True; got a ShapeDtypeStruct. Pass arrays, or omit run."
        )
    return jax.tree.map(lambda x: x.copy() if isinstance(x, jax.Array) else x, args)


def _first_ipu() -> Any:
    return jax.local_devices(backend=jax_compat.PLATFORM)[0]


def _host_options(streamed: str | Iterable[str], fetched: str | None) -> dict[str, str]:
    names = streamed if isinstance(streamed, str) else ",".join(streamed)
    options = {"ipu_streamed_arguments": names} if names else {}
    wanted = fetched or ("new" if names else None)
    return options | ({"ipu_streamed_results": wanted} if wanted else {})


def _devices(args: Any) -> list[Any]:
    """The devices of committed arrays, and of shapes with a sharding, among the arguments."""
    shardings = [
        x.sharding
        for x in jax.tree.leaves(args)
        if isinstance(x, jax.ShapeDtypeStruct) or (isinstance(x, jax.Array) and x.committed)
    ]
    return [list(each.device_set) for each in shardings if each is not None]


def _from_analysis(analysis: Mapping[str, float], device: Any) -> Cost:
    bytes_of_ipu: list[float] = []
    while (size := analysis.get(f"ipu {len(bytes_of_ipu)} worst tile bytes")) is not None:
        bytes_of_ipu.append(size)
    fullest = bytes_of_ipu.index(max(bytes_of_ipu)) if bytes_of_ipu else 0
    ipus = [f"ipu {i} " for i in range(len(bytes_of_ipu))] or [""]
    of = ipus[fullest]
    cycles = analysis.get("measured cycles", analysis["cycles"])
    rate = analysis["seconds"] / analysis["cycles"] if analysis["cycles"] else 0.0
    return Cost(
        cycles=cycles,
        seconds=rate * cycles,
        seconds_without_host=rate * (cycles - analysis["cycles"] + analysis["cycles without host"]),
        host_bytes=analysis["host bytes"],
        fullest_tile_bytes=int(analysis[f"{of}worst tile bytes"]),
        tile_capacity_bytes=device.bytes_per_tile,
        code_bytes=max(
            sum(int(analysis[f"{ipu}worst tile {part} bytes"]) for part in CODE) for ipu in ipus
        ),
        code_capacity_bytes=device.executable_bytes_per_tile,
        fullest_ipu=fullest,
        num_replicas=int(analysis["replicas"]),
        collective_cycles=analysis["collective cycles"],
        collective_bytes=analysis["collective bytes"],
        parts={part: int(analysis[f"{of}worst tile {part} bytes"]) for part in PARTS},
        analysis=analysis,
    )


def _check_limits(headroom: Any, seconds: Any) -> None:
    def is_number(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool)

    if not is_number(headroom) or not 0 <= headroom < 1:
        raise ConfigError(
            f"[assert_fits] needs headroom from 0 to less than 1; got {headroom!r}. "
            "Pass the proportion of a tile that must stay free, such as 0.05."
        )
    if seconds is not None and (not is_number(seconds) or not seconds > 0):
        raise ConfigError(
            f"[assert_fits] needs seconds above 0; got {seconds!r}. "
            "Pass the longest time that a run may take, or None."
        )
