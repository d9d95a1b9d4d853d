"""The contents of a report. `profile.py` makes it, `document.py` writes and reads it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipujax.types import Grouping

if TYPE_CHECKING:
    from ipujax.reporting.compare import Comparison

#: Kinds of time of an IPU, and the columns of cycles for them.
KINDS = ("compute", "exchange", "sync", "inter-IPU", "host")
#: What tables of time group steps by, with the field of a step for it.
GROUPINGS: dict[Grouping, str] = {
    "line": "source",
    "layer": "scope",
    "op": "op",
    "direction": "direction",
    "stage": "stage",
    "block": "block",
    "function": "function",
}
#: Groupings that every program has.
ALWAYS_GROUPED: frozenset[Grouping] = frozenset({"line", "layer", "op"})


#: Categories of tile memory that must be in the part where a tile can run code.
CODE = frozenset({"vertex code", "control code", "exchange code"})
#: Categories that stay for the whole program.
ALWAYS_LIVE = CODE | {"parameters", "state", "stack", "vertex state"}


@dataclass(frozen=True)
class Step:
    """A step of the program, at one of the places where it runs. Costs are for one execution.

    Attributes:
        node: its place in the program tree.
        times: how often a run executes it; 0 in a branch that is not counted.
        name: as JAX has it, such as "jit(f)/layer1/dot_general".
        op: the last part of the name.
        scope: the layer: named scopes and modules, such as "Model/encoder/norm"; for ops outside
            of both, the function that they are in, such as "loss()".
        source: "train.py:31", or "".
        stack: the call frames, such as "train.py:31 loss", innermost first.
        direction: of a derivative, "forward" or "backward"; otherwise "".
        block: name of the `ipu.block` around it, or "".
        stage: name of the pipeline stage that it is in, or "".
        function: name of the `ipu.outlined` function that it is in, or "".
        kernel: the kernel that implements it.
        kind: the kind of most of its cycles; one of `KINDS`.
        operands: types and shapes of the first operands.
        plan: plan of a product or convolution, if known.
        is_collective: whether replicas communicate in it.
        ipus: the IPUs that take part; empty if it takes no time.
        link_bytes: bytes that come from other IPUs, in one replica.
        utilisation: flops as a proportion of the device's maximum in that time.
    """

    node: int
    times: float
    name: str
    op: str
    scope: str
    source: str
    stack: tuple[str, ...]
    direction: str
    block: str
    stage: str
    function: str
    kernel: str
    kind: str
    operands: str
    plan: str
    is_collective: bool
    ipus: tuple[int, ...]
    compute_cycles: float
    exchange_cycles: float
    sync_cycles: float
    link_cycles: float
    host_cycles: float
    exchange_bytes: float
    link_bytes: float
    flops: float
    temporary_bytes: int
    utilisation: float

    @property
    def cycles(self) -> float:
        """Cycles of one execution."""
        return sum(self.by_kind())

    @property
    def total_cycles(self) -> float:
        """Cycles of all executions in a run."""
        return self.times * self.cycles

    def by_kind(self) -> tuple[float, ...]:
        """Cycles of one execution, in the order of `KINDS`."""
        return (
            self.compute_cycles,
            self.exchange_cycles,
            self.sync_cycles,
            self.link_cycles,
            self.host_cycles,
        )


@dataclass(frozen=True)
class Node:
    """A node of the program tree; children follow in the order they run.

    Attributes:
        kind: "sequence", "step", "repeat", "while", "if", "switch" or "error".
        count: iterations of a "repeat", or the assumed ones of a "while"; otherwise 1.
        times: how often a run executes the node.
    """

    kind: str
    count: int
    times: float
    children: tuple[int, ...]


@dataclass(frozen=True)
class Slice:
    """When a step or a loop first runs, in cycles from the beginning of the run.

    Attributes:
        cycles: how long it takes; for a loop, with all iterations.
        by_kind: the cycles of a step in the order of `KINDS`; zeros for a loop.
        times: how often a run does the same.
    """

    node: int
    ipus: tuple[int, ...]
    times: float
    begin: float
    cycles: float
    by_kind: tuple[float, ...]


@dataclass(frozen=True)
class Tensor:
    """A variable in tile memory.

    Attributes:
        scope: the layer of the op that makes it, as in a `Step`.
        category: what it is for; one of `Report.categories`.
        bytes: bytes on all tiles.
        peak_tile_bytes: bytes on the fullest tile at its peak, if the tensor is live then.
        ipus_at_peak: the IPUs that hold some of it at the peak of their fullest tile.
        always_live: whether it stays for the whole program.
    """

    name: str
    scope: str
    source: str
    category: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    peak_tile_bytes: int
    ipus_at_peak: tuple[int, ...]
    always_live: bool


@dataclass(frozen=True)
class Ipu:
    """Time and memory of one IPU.

    Attributes:
        by_kind: cycles in the order of `KINDS`; syncs count as "exchange".
        idle_cycles: cycles spent waiting for other IPUs.
        fullest_tile: its number, counted from the first tile of this IPU.
        tile_bytes: for each category, the bytes of each tile at the peak of the fullest one.
    """

    by_kind: tuple[float, ...]
    idle_cycles: float
    fullest_tile: int
    fullest_tile_bytes: int
    tile_bytes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class LivePoint:
    """Memory while one step runs: bytes of all tiles, and of the fullest (code not counted)."""

    node: int
    live_bytes: int
    fullest_tile_bytes: int


@dataclass(frozen=True)
class Group:
    """Steps with the same line, layer or op. Cycles and bytes are those of a whole run.

    Attributes:
        stack: the call frames of the longest step, innermost first.
        forward_cycles: cycles of a derivative's forward pass.
        backward_cycles: cycles of a derivative's backward pass.
        link_bytes: bytes that come from other IPUs, in one replica.
    """

    name: str
    stack: tuple[str, ...]
    steps: int
    cycles: float
    forward_cycles: float
    backward_cycles: float
    by_kind: tuple[float, ...]
    exchange_bytes: float
    link_bytes: float
    flops: float
    utilisation: float


@dataclass(frozen=True)
class Tried:
    """A change of a program that does not fit, which was tried by compiling it.

    Attributes:
        text: what to change.
        fullest_tile_bytes: bytes that the changed program needs on the fullest tile.
        cycles: cycles for the work of one run of the unchanged program.
        keeps_results: whether results stay the same bit for bit.
    """

    text: str
    fullest_tile_bytes: int
    cycles: float
    fits: bool
    keeps_results: bool


@dataclass(frozen=True)
class Report:
    """Whether a program fits, what it costs, and where.

    On several devices each one runs the same program, so time and memory are per device.

    Attributes:
        name: of the program.
        version: version of ipujax that made the report.
        machine: machine that the program was compiled for: the kind, number and size of its IPUs.
        options: options that differed from their defaults, such as "outline=auto".
        date: when the program was compiled, in UTC, such as "2024-05-17 09:30:00+00:00".
        num_replicas: number of devices that run it.
        clock_hz: clock rate of the tiles.
        cycles: from the beginning to the end of a run.
        tile_capacity_bytes: bytes of a tile.
        code_capacity_bytes: bytes of these that can hold code.
        always_live_bytes: bytes of tensors that stay for the whole program, on all tiles.
        peak_live_bytes: most bytes that are live at one time, on all tiles.
        assumed_trip_count: iterations of each loop whose number is known only at run time.
        categories: categories of tile memory.
        remedies: changes tried for a program that does not fit, see `ipu.remedies`.
    """

    name: str
    version: str
    machine: str
    options: tuple[str, ...]
    date: str
    num_replicas: int
    clock_hz: float
    cycles: float
    flops_per_cycle: float
    tile_capacity_bytes: int
    code_capacity_bytes: int
    always_live_bytes: int
    peak_live_bytes: int
    assumed_trip_count: int
    categories: tuple[str, ...]
    ipus: tuple[Ipu, ...]
    steps: tuple[Step, ...]
    nodes: tuple[Node, ...]
    slices: tuple[Slice, ...]
    live: tuple[LivePoint, ...]
    tensors: tuple[Tensor, ...]
    remedies: tuple[Tried, ...] = ()

    @property
    def seconds(self) -> float:
        """The time of a run on the modelled IPU."""
        return self.cycles / self.clock_hz if self.clock_hz else 0.0

    @property
    def fullest_ipu(self) -> int:
        """The IPU that has the fullest tile."""
        return max(range(len(self.ipus)), key=lambda i: self.ipus[i].fullest_tile_bytes)

    @property
    def fullest_tile_bytes(self) -> int:
        return self.ipus[self.fullest_ipu].fullest_tile_bytes

    @property
    def parts(self) -> dict[str, int]:
        """The bytes of the fullest tile by category, largest first; they add up to the total."""
        ipu = self.ipus[self.fullest_ipu]
        sizes = (tiles[ipu.fullest_tile] for tiles in ipu.tile_bytes)
        parts = zip(self.categories, sizes, strict=True)
        return dict(sorted(((name, size) for name, size in parts if size), key=lambda p: -p[1]))

    @property
    def headroom(self) -> float:
        """The free proportion of the fullest tile; negative if the program does not fit."""
        return 1 - self.fullest_tile_bytes / self.tile_capacity_bytes

    @property
    def fits(self) -> bool:
        has_room = self.fullest_tile_bytes <= self.tile_capacity_bytes
        return has_room and self.code_bytes <= self.code_capacity_bytes

    @property
    def code_bytes(self) -> int:
        """Bytes of code on the tile with the most."""
        kinds = [i for i, name in enumerate(self.categories) if name in CODE]
        return max(sum(ipu.tile_bytes[i][ipu.fullest_tile] for i in kinds) for ipu in self.ipus)

    @property
    def unknown_loops(self) -> int:
        """Number of loops whose number of iterations is known only at run time."""
        return sum(node.kind == "while" for node in self.nodes)

    @property
    def collectives(self) -> list[Group]:
        """Collectives by op and source line, such as "allReduce train.py:31", longest first."""
        found: dict[str, list[Step]] = defaultdict(list)
        for step in self.steps:
            if step.is_collective and step.times:
                found[f"{step.op} {step.source}".rstrip()].append(step)
        return self._groups(found)

    @property
    def collective_cycles(self) -> float:
        """Cycles of all collectives; those of IPUs that work at the same time are added up."""
        return sum(group.cycles for group in self.collectives)

    @property
    def collective_share(self) -> float:
        """The collectives' share of the steps' cycles."""
        return self.collective_cycles / self.step_cycles if self.step_cycles else 0.0

    @property
    def step_cycles(self) -> float:
        """Cycles of all steps in a run; those of IPUs that work at the same time are added up."""
        return sum(step.total_cycles for step in self.steps)

    def by(self, grouping: Grouping) -> list[Group]:
        """Time by a grouping, longest first. The groups add up to the steps' time.

        Args:
            grouping: "line", "layer", "op", "direction" (forward or backward), or the names of
                pipeline stages ("stage"), of blocks ("block") or of outlined functions
                ("function").
        """
        attribute = GROUPINGS[grouping]
        found: dict[str, list[Step]] = defaultdict(list)
        for step in self.steps:
            found[getattr(step, attribute)].append(step)
        return self._groups(found)

    @property
    def groupings(self) -> list[Grouping]:
        """The groupings of `by` that tell this program's steps apart, or that all programs have."""
        return [
            grouping
            for grouping, attribute in GROUPINGS.items()
            if grouping in ALWAYS_GROUPED or any(getattr(step, attribute) for step in self.steps)
        ]

    def modules(self) -> list[Group]:
        """Time by module path, including everything inside it, longest first.

        The time of "Model/encoder/norm" counts in "Model" and "Model/encoder", too.
        """
        found: dict[str, list[Step]] = defaultdict(list)
        for step in self.steps:
            parts = step.scope.split("/")
            for count in range(1, len(parts) + 1):
                found["/".join(parts[:count])].append(step)
        found.pop("", None)
        return self._groups(found)

    def _groups(self, found: Mapping[str, list[Step]]) -> list[Group]:
        groups = [self._group(name, steps) for name, steps in found.items()]
        return sorted(groups, key=lambda group: (-group.cycles, group.name))

    def _group(self, name: str, steps: list[Step]) -> Group:
        kinds = tuple(
            sum(step.times * cycles for step, cycles in zip(steps, column, strict=True))
            for column in zip(*(step.by_kind() for step in steps), strict=True)
        )
        cycles = sum(kinds)
        longest = max(steps, key=lambda step: step.total_cycles)
        ideal = sum(step.times * step.utilisation * step.cycles for step in steps)
        return Group(
            name=name,
            stack=longest.stack,
            steps=len(steps),
            cycles=cycles,
            forward_cycles=_cycles_of("forward", steps),
            backward_cycles=_cycles_of("backward", steps),
            by_kind=kinds,
            exchange_bytes=sum(step.times * step.exchange_bytes for step in steps),
            link_bytes=sum(step.times * step.link_bytes for step in steps),
            flops=sum(step.times * step.flops for step in steps),
            utilisation=ideal / cycles if cycles else 0.0,
        )

    def save(self, path: str | Path) -> None:
        """Writes the report: a page ("step.html"), data ("step.json") or a trace
        ("step.trace.json", which Perfetto and chrome://tracing open).

        Raises:
            ConfigError: the file name has another suffix.
            ReportError: the file cannot be written, or the page's drawing library is missing.
        """
        from ipujax.reporting.saving import save

        save(self, path)

    def compare(self, other: Report) -> Comparison:
        """The changes from this report to another one."""
        from ipujax.reporting.compare import Comparison

        return Comparison(self, other)

    def __str__(self) -> str:
        from ipujax.reporting.summary import summary

        return summary(self)

    def __repr__(self) -> str:
        return (
            f"Report({self.name!r}, {'fits' if self.fits else 'does not fit'}: "
            f"{self.fullest_tile_bytes} of {self.tile_capacity_bytes} bytes, "
            f"{self.cycles:.0f} cycles, {len(self.steps)} steps)"
        )

    def _repr_html_(self) -> str:
        from ipujax.reporting.summary import summary_page

        return summary_page(self)


def _cycles_of(direction: str, steps: list[Step]) -> float:
    return sum(step.total_cycles for step in steps if step.direction == direction)


def bits(mask: Any, count: int) -> tuple[int, ...]:
    """The IPUs of a mask; the 64th and later IPUs share its last bit."""
    mask = int(mask)
    return tuple(i for i in range(count) if mask >> min(i, 63) & 1)
