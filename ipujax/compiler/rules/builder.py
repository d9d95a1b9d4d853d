"""The state that rules work with: graph, program, and the tensor of every value so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.elements import first
from ipujax.compiler.ir import Block, Op, Shape, Source, Value
from ipujax.compiler.ir.scopes import ScopedOptions
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.registry import RULES
from ipujax.compiler.rules.rounding_keys import RoundingKeys
from ipujax.compiler.sources import origin
from ipujax.config.options import CompileConfig
from ipujax.config.product_options import flags_of

#: Constants up to this many bytes are made once per program, not once per value.
_SHARED_CONSTANT_BYTES = 1024


#: Where a value lies: on tiles, or in the host's memory.
Variable: TypeAlias = "ipu.Tensor | ipu.RemoteBuffer"

#: JAX's dtype and the shape of an array that a host function takes or gives.
HostArray: TypeAlias = tuple[str, list[int]]
#: Poplar's handle of a host function, the callback's id, and its arrays.
HostCall: TypeAlias = tuple[str, str, list[HostArray], list[HostArray]]


class Builder:
    """Lowers blocks into the graph. `program` is the Sequence that rules add to."""

    def __init__(
        self,
        graph: ipu.Graph,
        program: ipu.Sequence,
        options: CompileConfig,
        num_ipus: int = 1,
        layout_groups: Mapping[Value, int] | None = None,
        plans: ipu.PlanningCache | None = None,
        ipu_order: Sequence[int] = (),
    ):
        """Args:
        num_ipus: of the device; each is a virtual graph.
        layout_groups: groups of values that begin at the same tile; by default all begin at tile 0.
        plans: of products and convolutions on this machine; by default none were made before.
        ipu_order: the device's IPU for each of the program's; by default the same.
        """
        self.whole_graph = graph
        self.ipu_order = ipu_order or range(num_ipus)  #: the device's number of each IPU
        self._graphs = _virtual_graphs(graph, self.ipu_order)
        self.ipu = 0  #: of the op that is being lowered
        self.graph = self._graphs[0]  #: its tiles
        self.program = program
        self._layout_groups = layout_groups or {}
        self._layout_group = 0  #: of variables that are made now
        self._scoped_options = ScopedOptions(options)
        self._set_options(options)  #: `options`: those of the op that is being lowered
        self.functions: dict[Block, list[Any]] = {}  #: compiled so far, see rules/call.py
        self.tensors: dict[Value, Variable] = {}
        #: Buffers that values are to be written to directly.
        self.destinations: dict[Value, ipu.RemoteBuffer] = {}
        self.in_pipeline = False  #: whether the current op is in a loop over micro-batches
        self._num_buffers = 0
        self.host_calls: list[HostCall] = []  #: in order
        self.prints = False  #: whether the program, or users' C++ code, may print
        self.codelets: set[tuple[str, str]] = set()  #: sources added so far, and their flags
        self.on_tiles: set[Value] = set()  #: values whose tiles the user chose; loops keep them
        #: Of products and convolutions.
        self.plans = ipu.poplin.PlanningCache() if plans is None else plans
        self.rounding = RoundingKeys(self)
        self._constants: dict[object, ipu.Tensor] = {}
        self._debug: dict[tuple[Source, tuple[str, ...]], ipu.DebugContext] = {}
        poplar = ipu.poplar
        rows = DTYPES.items()  # without double where Poplar has no type for it
        self.types: dict[str, ipu.Type] = {
            n: getattr(poplar, row.poplar) for n, row in rows if hasattr(poplar, row.poplar)
        }
        self.stored_types: dict[str, ipu.Type] = {
            n: getattr(poplar, row.stored) for n, row in rows if hasattr(poplar, row.stored)
        }

    def product_options(self, op: Op, is_convolution: bool = False) -> dict[str, str]:
        """Options of a product or convolution, by poplin's names."""
        options = self._scoped_options.of(op)
        is_convolution = is_convolution or op.name == "convolution"
        text = options.convolution_options if is_convolution else options.matmul_options
        # As in training's forward pass, the proportion includes rearranged operands.
        passed = {} if options.clear_pass_type else {"fullyConnectedPass": "TRAINING_FWD"}
        return {
            "partialsType": options.partials_type,
            "availableMemoryProportion": str(self._scoped_options.memory_proportion(op, self.ipu)),
            **passed,
            **flags_of(text),
        }

    @property
    def collective_options(self) -> dict[str, str]:
        """Options of collectives, by GCL's names."""
        return dict(flags_of(self._scoped_options.program.collective_options))

    def _set_options(self, options: CompileConfig) -> None:
        """Sets the options of the next op; some are set on the graph."""
        self.options = options
        ipu.popx.setHalfOverflow(self.graph, self.options.half_overflow, self.program)
        ipu.poplar.setStochasticRounding(self.graph, self.program, self.options.stochastic_rounding)

    # Values --------------------------------------------------------------------------------------

    def tensor(self, value: Value) -> ipu.Tensor:
        """The value's tensor; constants are made when first asked for."""
        found = self.tensors.get(value)
        if found is not None:
            assert isinstance(found, ipu.poplar.Tensor), f"{value!r} is on the host"
            return found
        if len(self._graphs) > 1:  # each IPU has its own constants
            return self._constant(value)
        constant = self.tensors[value] = self._constant(value)
        return constant

    def buffer(self, value: Value) -> ipu.RemoteBuffer:
        """The remote buffer of a value in the host's memory."""
        found = self.tensors[value]
        assert not isinstance(found, ipu.poplar.Tensor), f"{value!r} is on the device"
        return found

    def held(self, value: Value) -> Variable:
        """The value's tensor or remote buffer."""
        return self.buffer(value) if value.is_remote else self.tensor(value)

    def operands(self, op: Op) -> list[ipu.Tensor]:
        return [self.tensor(value) for value in op.operands]

    def type_of(self, value: Value) -> ipu.Type:
        """The Poplar type in which the value is computed."""
        return self.types[value.dtype]

    def _constant(self, value: Value) -> ipu.Tensor:
        const = value.const
        if const is None:
            raise AssertionError(f"{value!r} has no tensor yet")
        row = DTYPES[value.dtype]
        one = value.is_splat and const.size > 0
        array = first(const) if one else const
        array = np.ascontiguousarray(array.astype(row.held_numpy, copy=False))
        shape: Shape = (1,) if one else value.shape
        data = array.tobytes()
        content = (value.dtype, shape, data) if len(data) <= _SHARED_CONSTANT_BYTES else value
        key = (content, self.ipu)
        tensor = self._constants.get(key)
        if tensor is None:
            type_ = self.types[value.dtype]
            debug = ipu.poplar.DebugContext("constant")
            tensor = self.graph.addConstantBytes(type_, shape, data, debug)
            self._constants[key] = tensor
        if not one:
            return tensor
        return broadcast_to(tensor.reshape([1] * len(value.shape)), value.shape)

    # Program -------------------------------------------------------------------------------------

    def debug(self, op: Op) -> ipu.DebugContext:
        """Name and source line of the op, for accounts and errors; for profiles its origin, too."""
        source = op.source
        has_profile = self._scoped_options.program.profile
        key = (source, source.locations if has_profile else ())
        context = self._debug.get(key)
        if context is None:
            name = source.name or op.name
            context = self._debug[key] = self.named_debug(name, source)
        return context

    def named_debug(self, name: str, source: Source) -> ipu.DebugContext:
        """Another name, with the source line and the origin of an op."""
        has_profile = self._scoped_options.program.profile
        return ipu.poplar.DebugContext(name, origin(source).text() if has_profile else source.line)

    def variable(
        self, type_: ipu.Type, shape: Sequence[int], debug: ipu.DebugContext
    ) -> ipu.Tensor:
        """A new variable, spread over all tiles."""
        tensor = self.graph.addVariable(type_, list(shape), debug)
        ipu.poplar.poputil.mapTensorLinearly(self.graph, tensor)
        return tensor

    def remote_buffer(self, value: Value) -> ipu.RemoteBuffer:
        """A new buffer for the value, as callers see it, with an entry for each row."""
        entries = self.num_entries(value)
        type_ = self.stored_types[value.dtype]
        return self.add_buffer(type_, value.num_elements // entries, entries)

    def add_buffer(self, type_: ipu.Type, elements: int, entries: int) -> ipu.RemoteBuffer:
        return self.whole_graph.addRemoteBuffer(self.buffer_name(), type_, elements, entries)

    def buffer_name(self) -> str:
        """The handle of the next remote buffer."""
        self._num_buffers += 1
        return f"remote {self._num_buffers}"

    def host_function(self, id_: str, taken: list[HostArray], given: list[HostArray]) -> str:
        """The handle for another call of a callback; one for each call, if Poplar requires it."""
        handle = id_ if ipu.capabilities.shared_callbacks else f"{id_} #{len(self.host_calls)}"
        self.host_calls.append((handle, id_, taken, given))
        return handle

    def num_entries(self, value: Value) -> int:
        return value.shape[0] if value.shape else 1

    def copy(self, source: Variable, target: Variable, debug: ipu.DebugContext) -> None:
        """Copies between two variables in the same memory."""
        if not isinstance(source, ipu.poplar.Tensor):
            assert not isinstance(target, ipu.poplar.Tensor)
            ipu.popx.copyRemoteBuffer(self.graph, source, target, self.program, debug)
        else:
            assert isinstance(target, ipu.poplar.Tensor)
            self.program.add(ipu.poplar.program.Copy(source, target, debug))

    def materialise(self, tensor: ipu.Tensor, debug: ipu.DebugContext) -> ipu.Tensor:
        """A new variable with the tensor's elements."""
        variable = self.variable(tensor.elementType(), tensor.shape, debug)
        self.copy(tensor, variable, debug)
        return variable

    def put_aside(self, source: Variable, debug: ipu.DebugContext) -> Variable:
        """A new variable in the same memory with the same elements."""
        if isinstance(source, ipu.poplar.Tensor):
            return self.materialise(source, debug)
        repeats, elements = source.getRepeats(), source.numElements()
        buffer = self.add_buffer(source.elementType(), elements, repeats)
        self.copy(source, buffer, debug)
        return buffer

    def map(
        self,
        expressions: Sequence[ipu.Expr],
        tensors: Sequence[ipu.Tensor],
        debug: ipu.DebugContext,
    ) -> list[ipu.Tensor]:
        if len(expressions) == 1:
            (expression,) = expressions
            return [ipu.popops.map(self.graph, expression, tensors, self.program, debug)]
        return list(ipu.popx.map(self.graph, expressions, tensors, self.program, debug))

    def each(
        self, tensor: ipu.Tensor, function: Callable[[ipu.Expr], ipu.Expr], debug: ipu.DebugContext
    ) -> ipu.Tensor:
        """Applies the function to each element."""
        return self.map([function(ipu.popops.expr.PlaceHolder(1))], [tensor], debug)[0]

    def cast(self, tensor: ipu.Tensor, type_: ipu.Type, debug: ipu.DebugContext) -> ipu.Tensor:
        """The tensor in another type; itself if it already has that type."""
        if tensor.elementType() == type_:
            return tensor
        return self.each(tensor, lambda x: ipu.popops.expr.Cast(x, type_), debug)

    def round_bfloat16(self, op: Op, tensors: Sequence[ipu.Tensor]) -> list[ipu.Tensor]:
        """Rounds the results that are bfloat16: for ops that compute in float32."""
        return [
            self.each(tensor, ipu.popx.expr.RoundToBFloat16, self.debug(op))
            if value.dtype == "bf16"
            else tensor
            for value, tensor in zip(op.results, tensors, strict=True)
        ]

    # Blocks --------------------------------------------------------------------------------------

    @contextmanager
    def on(self, number: int) -> Iterator[None]:
        """Inside, variables and work go to the tiles of one IPU."""
        outer = self.ipu
        self._go_to(number)
        try:
            yield
        finally:
            self._go_to(outer)

    @contextmanager
    def at(self, value: Value) -> Iterator[None]:
        """Inside, variables are made where the value belongs: on its IPU, in its layout group."""
        outer, group = self.ipu, self._layout_group
        self._go_to(value.ipu)
        self._join(value)
        try:
            yield
        finally:
            self._go_to(outer)
            self._set_group(group)

    def _go_to(self, number: int) -> None:
        self.ipu = number
        self.graph = self._graphs[number]

    def _join(self, value: Value) -> None:
        self._set_group(self._layout_groups.get(value, 0))

    def _set_group(self, group: int) -> None:
        if group != self._layout_group:
            self._layout_group = group
            ipu.popx.setLayoutGroup(self.whole_graph, group)

    def lower(self, block: Block) -> list[Variable | None]:
        """Adds the block's ops to the program; returns the tensors of its results."""
        outer, group = self.ipu, self._layout_group
        tensors = self.tensors
        for op in block.ops:
            if op.ipu != self.ipu:
                self._go_to(op.ipu)
            if op.results:
                self._join(op.results[0])
            options = self._scoped_options.of(op)
            if options is not self.options:
                self._set_options(options)
            self.rounding.apply(op)
            made = RULES[op.name](self, op)
            for value, tensor in zip(op.results, made, strict=True):
                if tensor is not None:  # a token has none
                    tensors[value] = tensor
        self._go_to(outer)
        self._set_group(group)
        return [self.held(value) if value.dtype != "token" else None for value in block.results]

    @contextmanager
    def inside(self, program: ipu.Sequence) -> Iterator[None]:
        """Inside, rules add to `program`: a loop's body, a branch."""
        outer, self.program = self.program, program
        try:
            yield
        finally:
            self.program = outer


def _virtual_graphs(graph: ipu.Graph, order: Sequence[int]) -> list[ipu.Graph]:
    if len(order) == 1:
        return [graph]
    tiles = graph.getTarget().getTilesPerIPU()
    return [graph.createVirtualGraph(i * tiles, (i + 1) * tiles) for i in order]


def broadcast_to(tensor: ipu.Tensor, shape: Shape) -> ipu.Tensor:
    """A view with dimensions of size 1 repeated; `tensor` has the rank of `shape`."""
    for dim, (have, want) in enumerate(zip(tensor.shape, shape, strict=True)):
        if have != want:
            tensor = tensor.broadcast(want, dim)
    return tensor
