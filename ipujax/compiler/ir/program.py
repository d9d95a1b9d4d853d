"""The compiler's own program representation, which stages 3 to 7 read and change.

A block has ops in order; an op has operands and results; a region of an op is a block that may use
any value of the blocks around it. A constant is a value without an op. It is light on purpose: a
program of 1,000 ops is read once from MLIR, and every later pass costs microseconds per op.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ipujax.annotations import placement
from ipujax.compiler.dtypes import DTYPES, TOKEN
from ipujax.compiler.elements import first
from ipujax.compiler.ir.scopes import ScopedOptions
from ipujax.compiler.ir.traits import CALL_TRAITS, TRAITS, UNKNOWN, Traits
from ipujax.config.options import CompileConfig

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the user wants an op, as set by stages, blocks, pipelines and `ipu.shard`."""

    stage_ipu: int | None = None  #: number of the IPU in the device, from a stage or a shard
    block_ipu: int | None = None  #: from a block; a stage around it overrides it
    stage: int | None = None  #: its stage's index in the pipeline
    stage_name: str = ""
    direction: str = ""  #: "forward" or "backward"
    pipeline: str = ""  #: the schedule of the loop over micro-batches
    weight_update: tuple[tuple[str, str], ...] = ()  #: the stage's options for updates
    outlined: tuple[int, ...] = ()  #: numbers of the calls of `ipu.outlined` around it
    #: the smallest array offloaded to the host in this loop, in bytes; None if nothing is offloaded
    offload: int | None = None
    phase: placement.LeavingPhase | None = None  #: if values leave the tiles between phases
    #: Names of `ipu.block` and `ipu.outlined`, for reports only.
    block: str = field(default="", compare=False)
    function: str = field(default="", compare=False)

    @property
    def ipu(self) -> int | None:
        return self.block_ipu if self.stage_ipu is None else self.stage_ipu


NOWHERE = Placed()


@dataclass(frozen=True, slots=True)
class Source:
    """Where an op comes from."""

    name: str = ""  #: "jit(f)/layer/dot_general"
    line: str = ""  #: "train.py:31"
    options: tuple[
        tuple[str, str], ...
    ] = ()  #: compiler options set for this op, see ipu.precision
    placed: Placed = NOWHERE
    #: MLIR's text of its location and of its callers' locations, innermost first, for reports only
    locations: tuple[str, ...] = field(default=(), compare=False)


NO_SOURCE = Source()


class Value:
    """One array of the program: result `index` of `op`, a block's argument, or a constant.

    `const` holds a constant's elements: an array of `shape`, with all strides 0 for a splat.
    """

    __slots__ = ("const", "dtype", "index", "ipu", "is_remote", "op", "shape")

    def __init__(
        self,
        shape: Shape,
        dtype: str,
        op: Op | None = None,
        index: int = 0,
        const: np.ndarray | None = None,
    ):
        self.shape = shape
        self.dtype = dtype
        self.op = op
        self.index = index
        self.const = const
        self.ipu = 0  #: the IPU that it lives on; set by stage 4
        self.is_remote = False  #: whether it lies in the host's memory; set by stage 4

    @property
    def num_elements(self) -> int:
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes on the tiles while computing; 0 for tokens and values on the host."""
        if self.dtype == TOKEN or self.is_remote:
            return 0
        return self.num_elements * DTYPES[self.dtype].held_numpy.itemsize

    @property
    def is_splat(self) -> bool:
        """Whether it is a constant with one element, or the same element everywhere."""
        const = self.const
        if const is None or const.size == 0:
            return False
        return const.size == 1 or not any(const.strides)

    def __repr__(self) -> str:
        text = "x".join(map(str, (*self.shape, self.dtype)))
        return f"<{text}{' const' if self.const is not None else ''}>"


class Op:
    """One operation. `name` is StableHLO's without the prefix, or the compiler's own ("fused")."""

    __slots__ = ("attrs", "ipu", "name", "operands", "regions", "results", "source")

    def __init__(
        self,
        name: str,
        operands: list[Value],
        attrs: dict[str, Any],
        source: Source = NO_SOURCE,
        regions: list[Block] | None = None,
    ):
        self.name = name
        self.operands = operands
        self.attrs = attrs
        self.source = source
        self.regions = regions or []
        self.results: list[Value] = []
        self.ipu = 0  #: the IPU that it runs on; set by stage 4

    @property
    def traits(self) -> Traits:
        """The traits of ops with this name; for custom calls, of calls with this target."""
        if self.name == "custom_call" and self.attrs.get("call_target_name") in CALL_TRAITS:
            return CALL_TRAITS[self.attrs["call_target_name"]]
        return TRAITS.get(self.name, UNKNOWN)

    @property
    def shown_name(self) -> str:
        """The name for error messages, with the target of a custom call."""
        if self.name == "custom_call":
            return f"custom_call @{self.attrs['call_target_name']}"
        return self.name

    def add_result(self, shape: Shape, dtype: str) -> Value:
        value = Value(shape, dtype, self, len(self.results))
        self.results.append(value)
        return value


@dataclass(slots=True, eq=False)
class Block:
    """Ops in order, with the arguments they may use and the values that the block returns."""

    args: list[Value] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)


@dataclass(slots=True)
class Parameter:
    """What the caller promised for one argument of the program."""

    name: str = ""  #: its place in the caller's pytrees: "params['layers'][3]['w']"
    donated: bool = False
    alias: int | None = None  #: the result that takes over its memory
    memory_kind: str = placement.DEVICE  #: where the caller holds it
    layout: placement.MinorToMajor | None = None  #: as the caller sees it; None: row-major


@dataclass(frozen=True, slots=True)
class Seen:
    """An argument or result as callers see it, if the program holds it in another form."""

    dtype: str  #: JAX's name
    shape: Shape


@dataclass(slots=True)
class Program:
    """A whole program for one device."""

    name: str
    main: Block
    parameters: list[Parameter]
    result_names: list[str] = field(default_factory=list)  #: may be empty
    #: Memory kinds of results that do not go to device memory, by index.
    result_memories: dict[int, str] = field(default_factory=dict)
    #: The layouts of the results that callers do not see as row-major, by index.
    result_layouts: dict[int, placement.MinorToMajor] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)
    #: Compile options, and changes to them for single ops.
    options: ScopedOptions = field(default_factory=lambda: ScopedOptions(CompileConfig()))
    #: IPUs of the device; 1 if every op is spread over the whole device. Set by stage 4.
    num_ipus: int = 1
    #: Functions for `call` ops, made after stage 4; they use no outside values but arguments.
    functions: list[Block] = field(default_factory=list)
    #: By index; passes that change a boundary type add to them.
    seen_arguments: dict[int, Seen] = field(default_factory=dict)
    seen_results: dict[int, Seen] = field(default_factory=dict)

    def blocks_run(self) -> list[Block]:
        """Blocks that are lowered to programs: those of main, then those of functions."""
        return [block for root in (self.main, *self.functions) for block in blocks_run(root)]

    @property
    def argument_memories(self) -> dict[int, str]:
        """Memory kinds of arguments that are not in device memory, by index."""
        kinds = {index: p.memory_kind for index, p in enumerate(self.parameters)}
        return {index: kind for index, kind in kinds.items() if kind != placement.DEVICE}

    @property
    def argument_layouts(self) -> dict[int, placement.MinorToMajor]:
        """The layouts of the arguments that are not row-major, by index."""
        layouts = {index: p.layout for index, p in enumerate(self.parameters)}
        return {index: layout for index, layout in layouts.items() if layout is not None}

    @property
    def output_alias(self) -> list[int]:
        """For each result the parameter whose memory it takes over, or -1."""
        alias = [-1] * len(self.main.results)
        for index, parameter in enumerate(self.parameters):
            if parameter.alias is not None:
                alias[parameter.alias] = index
        return alias


def constant(array: np.ndarray, dtype: str) -> Value:
    """A constant value; `array` has the dtype's numpy type."""
    return Value(array.shape, dtype, const=array)


def splat(scalar: np.ndarray, shape: Shape, dtype: str) -> Value:
    """A constant with the one element of `scalar` everywhere."""
    return Value(shape, dtype, const=np.broadcast_to(scalar.reshape(()), shape))


def converted(value: Value, dtype: str, convert: Callable[[np.ndarray], np.ndarray]) -> Value:
    """The constant with converted elements, of the dtype's numpy type; a splat stays a splat."""
    assert value.const is not None, value
    const = first(value.const).reshape(()) if value.is_splat else value.const
    return Value(value.shape, dtype, const=np.broadcast_to(convert(const), value.shape))


def number(scalar: float, shape: Shape, dtype: str) -> Value:
    """A constant with the same Python number everywhere."""
    return splat(np.asarray(scalar, DTYPES[dtype].numpy), shape, dtype)


def splat_of(value: Value) -> Any:
    """The number that all elements of a constant equal; None for other values."""
    return first(value.const)[0] if value.is_splat and value.const is not None else None


def number_of(value: Value) -> Any:
    """The number that all elements equal, for a constant or its broadcast; else None."""
    while value.op is not None and value.op.name == "broadcast_in_dim":
        value = value.op.operands[0]
    return splat_of(value)


def walk_blocks(block: Block) -> Iterator[Block]:
    """The block and all blocks inside it, outermost first."""
    pending = [block]
    while pending:
        block = pending.pop()
        yield block
        inner = [region for op in block.ops for region in op.regions]
        pending += reversed(inner)


def walk_ops(block: Block) -> Iterator[Op]:
    """All ops; each op comes before those of its regions."""
    pending = [iter(block.ops)]
    while pending:
        for op in pending[-1]:
            yield op
            if op.regions:
                pending += [iter(region.ops) for region in reversed(op.regions)]
                break
        else:
            pending.pop()


def walk_values(block: Block) -> Iterator[Value]:
    """All values that the block and those inside it define or use; some more than once."""
    for inner in walk_blocks(block):
        yield from inner.args
        for op in inner.ops:
            yield from op.operands
            yield from op.results
        yield from inner.results


def blocks_run(block: Block) -> list[Block]:
    """Blocks that are lowered to programs, not those that are functions of single elements."""
    found = [block]
    for op in block.ops:
        if op.regions and op.traits.control_flow:
            for region in op.regions:
                found.extend(blocks_run(region))
    return found


def has_effect(op: Op) -> bool:
    """Whether the op must run even if its results have no users."""
    if op.traits.effect:
        return op.name != "custom_call" or bool(op.attrs.get("has_side_effect"))
    return any(has_effect(inner) for block in _bodies(op) for inner in block.ops)


def _bodies(op: Op) -> list[Block]:
    return [op.attrs["function"]] if op.name == "call" else op.regions


def combiner_of(block: Block) -> str | None:
    """The name of the op if the block is just `op(argument 0, argument 1)`."""
    if len(block.ops) != 1 or block.results != block.ops[0].results:
        return None
    (inner,) = block.ops
    in_order = len(block.args) == 2 and inner.operands == block.args
    swapped = inner.operands == block.args[::-1] and inner.traits.identity != ""
    return inner.name if in_order or swapped else None


def captured(block: Block) -> list[Value]:
    """Values of surrounding blocks that the block or its regions use, each once; no constants."""
    own: set[Value] = set()
    found: dict[Value, None] = {}

    def visit(inner: Block) -> None:
        own.update(inner.args)
        for op in inner.ops:
            for value in op.operands:
                if value.const is None and value not in own:
                    found[value] = None
            for region in op.regions:
                visit(region)
            own.update(op.results)
        for value in inner.results:
            if value.const is None and value not in own:
                found[value] = None

    visit(block)
    return list(found)


def inputs_of(op: Op) -> list[Value]:
    """All values the op needs, including those its regions capture; no constants."""
    if not op.regions:
        return [value for value in op.operands if value.const is None]
    found = {value: None for value in op.operands if value.const is None}
    for region in op.regions:
        for value in captured(region):
            found[value] = None
    return list(found)
