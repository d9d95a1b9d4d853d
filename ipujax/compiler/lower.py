"""Stage 7: lowers the scheduled program to a Poplar graph and its control program.

Each argument is a variable filled from its own stream at the start, each result a variable copied
to its own stream at the end: the engine binds both to the caller's arrays. At the end, a donated
argument's variable holds the result that takes it over.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ipujax.compiler.dtypes import DTYPES, TOKEN
from ipujax.compiler.ingest import Request
from ipujax.compiler.ir import NO_SOURCE, Program, Seen, Value
from ipujax.compiler.kept_arguments import KeptArguments
from ipujax.compiler.layouts import layout_groups
from ipujax.compiler.mapping import map_parameters
from ipujax.compiler.modules import main_of
from ipujax.compiler.plans import plans_for
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, HostCall, Variable
from ipujax.compiler.rules.custom_call import from_stored, to_stored
from ipujax.compiler.selection_order import in_order
from ipujax.compiler.streamed import Streamed, compute_tiles, find_streamed

RemoteArray: TypeAlias = tuple[int, str, int]


@dataclass(slots=True)
class Lowered:
    """A graph with its program, and the interface for callers."""

    graph: ipu.Graph
    program: ipu.Sequence
    signature: ipu.engine.Signature
    host_calls: list[HostCall] = field(default_factory=list)
    #: Index, handle and number of entries of arguments and results in the host's memory.
    remote_inputs: list[RemoteArray] = field(default_factory=list)
    remote_outputs: list[RemoteArray] = field(default_factory=list)
    #: Arguments that are read from their streams only where the stream "fresh" says so.
    kept_inputs: list[int] = field(default_factory=list)


def lower(program: Program, request: Request) -> Lowered:
    """Makes the graph, runs every op's rule, and connects the streams."""
    machine = request.machine
    num_ipus = request.num_devices * machine.ipus_per_device
    streamed = find_streamed(program, request.options)
    target = ipu.poplar.createTarget(
        machine.machine,
        num_ipus,
        compute_tiles(machine, request.options, streamed),
        machine.streaming_gigabytes,
        request.options.host_bandwidth,
        request.options.host_latency,
    )
    graph = ipu.poplar.Graph(target, request.num_devices)
    main = ipu.poplar.program.Sequence(ipu.poplar.DebugContext(program.name))
    spreads = "starts" not in request.options.engine_without.split(",")
    groups = layout_groups(program) if spreads else {}
    plans = plans_for(machine.machine)
    order = in_order(machine.selection_order, program.num_ipus)
    builder = Builder(graph, main, request.options, program.num_ipus, groups, plans, order)
    builder.rounding.begin(program.main)
    kept = KeptArguments(builder, program)
    arguments = _read_arguments(builder, program, kept)
    remote_inputs = _remote(enumerate(arguments))
    results = builder.lower(program.main)
    given = _write_results(builder, program, arguments, results)
    signature = _signature(program, builder, request, streamed)
    return Lowered(
        graph,
        main,
        signature,
        builder.host_calls,
        remote_inputs,
        _remote(given.items()),
        kept.indices,
    )


def _read_arguments(
    builder: Builder, program: Program, kept: KeptArguments
) -> list[Variable | None]:
    """The variable of each argument as callers see it; None for tokens."""
    mapped = map_parameters(builder, program)
    variables: list[Variable | None] = []
    for index, value in enumerate(program.main.args):
        if value.dtype == TOKEN:
            variables.append(None)
            continue
        debug = ipu.poplar.DebugContext(program.parameters[index].name)
        type_ = builder.stored_types[value.dtype]
        stream = builder.graph.addHostToDeviceFIFO(f"in{index}", type_, value.num_elements)
        if value.is_remote:
            buffer = builder.tensors[value] = builder.remote_buffer(value)
            ipu.popx.fillFromHost(stream, buffer, builder.program, debug)
            variables.append(buffer)
            continue
        tensor = mapped.get(value)
        if tensor is None:
            with builder.at(value):
                tensor = builder.variable(type_, value.shape, debug)
        builder.program.add(kept.reading(index, ipu.poplar.program.Copy(stream, tensor, debug)))
        variables.append(tensor)
    for value, variable in zip(program.main.args, variables, strict=True):
        if isinstance(variable, ipu.poplar.Tensor):
            debug = ipu.poplar.DebugContext("argument")
            with builder.at(value):
                builder.tensors[value] = from_stored(builder, variable, value.dtype, debug)
    return variables


def _write_results(
    builder: Builder,
    program: Program,
    arguments: list[Variable | None],
    results: list[Variable | None],
) -> dict[int, ipu.RemoteBuffer]:
    """Copies results of donated arguments to the arguments' variables, after all have been read.

    So a result that is a view of another donated argument is copied first.

    Returns:
        the remote buffers that hold results at the end.
    """
    values, alias = program.main.results, program.output_alias
    streams = _result_streams(builder, values)
    remote = _give_remote_results(builder, program, arguments, results, streams)
    names = zip(values, program.result_names, strict=True)
    debug = [_result_debug(builder, value, name) for value, name in names]
    stored: list[ipu.Tensor | None] = []
    for tensor, value, name in zip(results, values, debug, strict=True):
        if not isinstance(tensor, ipu.poplar.Tensor):
            stored.append(None)
            continue
        with builder.at(value):
            stored.append(to_stored(builder, tensor, value.dtype, name))
    owns = [
        _shaped_as(value, arguments[i]) if i >= 0 else None
        for value, i in zip(values, alias, strict=True)
    ]
    taken_over = _Overwritten([own for own in owns if own is not None])
    for j, (tensor, own) in enumerate(zip(stored, owns, strict=True)):
        if tensor is not None and (own is None or taken_over.is_seen_by(tensor, own)):
            with builder.at(values[j]):
                stored[j] = builder.materialise(tensor, debug[j])
    for j in range(len(values)):
        tensor, own = stored[j], owns[j]
        if tensor is None:
            continue
        if own is not None and tensor != own:
            if tensor.intersectsWith(own):
                with builder.at(values[j]):
                    tensor = builder.materialise(tensor, debug[j])
            builder.copy(tensor, own, debug[j])
        tensor = tensor if own is None else own
        builder.program.add(ipu.poplar.program.Copy(tensor, streams[j], debug[j]))
    return remote


def _result_streams(builder: Builder, values: list[Value]) -> dict[int, ipu.DataStream]:
    """A stream for each result but tokens, in order, so that the engine tells them apart."""
    return {
        index: builder.graph.addDeviceToHostFIFO(
            f"out{index}", builder.stored_types[value.dtype], value.num_elements
        )
        for index, value in enumerate(values)
        if value.dtype != TOKEN
    }


def _remote(variables: Iterable[tuple[int, Variable | None]]) -> list[RemoteArray]:
    return [
        (index, buffer.handle(), buffer.getRepeats())
        for index, buffer in variables
        if buffer is not None and not isinstance(buffer, ipu.poplar.Tensor)
    ]


def _shaped_as(value: Value, variable: Variable | None) -> ipu.Tensor | None:
    """An argument's tensor in the shape of the result that takes it over, or None."""
    if not isinstance(variable, ipu.poplar.Tensor):
        return None
    shape = list(value.shape)
    return variable if list(variable.shape) == shape else variable.reshape(shape)


def _give_remote_results(
    builder: Builder,
    program: Program,
    arguments: list[Variable | None],
    results: list[Variable | None],
    streams: dict[int, ipu.DataStream],
) -> dict[int, ipu.RemoteBuffer]:
    """Gives the host its results; those of donated arguments end in the arguments' buffers."""
    alias, debug = program.output_alias, ipu.poplar.DebugContext("result")
    owns = {i: arguments[alias[i]] for i in range(len(alias)) if alias[i] >= 0}
    given: dict[int, Variable] = {}
    ends: dict[int, ipu.RemoteBuffer] = {}
    for index, buffer in enumerate(results):
        if buffer is not None and not isinstance(buffer, ipu.poplar.Tensor):
            is_another = any(buffer == own for j, own in owns.items() if j != index)
            given[index] = builder.put_aside(buffer, debug) if is_another else buffer
    for index, buffer in given.items():
        own = owns.get(index)
        if own is not None and not isinstance(own, ipu.poplar.Tensor):
            if buffer != own:
                builder.copy(buffer, own, debug)
            buffer = own
        assert not isinstance(buffer, ipu.poplar.Tensor)
        ipu.popx.giveToHost(buffer, streams[index], builder.program, debug)
        ends[index] = buffer
    return ends


class _Overwritten:
    """The arguments that results take over."""

    def __init__(self, variables: list[ipu.Tensor]):
        self._variables = variables
        kinds: dict[ipu.Type, list[ipu.Tensor]] = {}
        for variable in variables:
            kinds.setdefault(variable.elementType(), []).append(variable.flatten())
        self._joined = [ipu.poplar.concat(same, 0) for same in kinds.values()]

    def is_seen_by(self, tensor: ipu.Tensor, own: ipu.Tensor) -> bool:
        """Whether the tensor overlaps one of these arguments other than `own`."""
        if not any(tensor.intersectsWith(joined) for joined in self._joined):
            return False
        return any(tensor.intersectsWith(v) for v in self._variables if v is not own)


def _result_debug(builder: Builder, value: Value, name: str) -> ipu.DebugContext:
    return builder.named_debug(name, NO_SOURCE if value.op is None else value.op.source)


def _signature(
    program: Program, builder: Builder, request: Request, streamed: Streamed
) -> ipu.engine.Signature:
    inputs, outputs = request.parameter_shardings, request.result_shardings
    main, takes_seed = program.main, builder.rounding.are_taken
    arguments = _specs(main.args, program.seen_arguments, inputs, program.argument_memories)
    results = _specs(main.results, program.seen_results, outputs, program.result_memories)
    for specs, layouts in (
        (arguments, program.argument_layouts),
        (results, program.result_layouts),
    ):
        for index, layout in layouts.items():
            specs[index].minor_to_major = list(layout)
    for specs, chosen in ((arguments, streamed.arguments), (results, streamed.results)):
        for index in chosen:
            specs[index].is_streamed = True
    return ipu.engine.Signature(
        program.name,
        arguments,
        results,
        program.output_alias,
        bool(builder.host_calls),
        request.num_devices,
        _interface(request.module) if request.num_devices > 1 else "",
        takes_seed,
        builder.prints,
    )


def _interface(module: Any) -> str:
    """A module whose main has the same type, but an opaque body."""
    kind = main_of(module).attributes["function_type"].value
    arguments = ", ".join(f"%arg{i}: {type_}" for i, type_ in enumerate(kind.inputs))
    results = ", ".join(map(str, kind.results))
    made = ", ".join(f"%0#{i}" for i in range(len(kind.results)))
    body = f"return {made} : {results}" if made else "return"
    if made:
        call = f'"stablehlo.custom_call"() {{call_target_name = "body"}} : () -> ({results})'
        body = f"%0:{len(kind.results)} = {call}\n{body}"
    name = module.operation.attributes["sym_name"]
    head = f"module @{name.value} {{\nfunc.func public @main({arguments}) -> ({results})"
    return f"{head} {{\n{body}\n}}\n}}\n"


def _specs(
    values: list[Value], seen: dict[int, Seen], shardings: list[bytes], memories: dict[int, str]
) -> list[ipu.engine.TensorSpec]:
    """Specs of arguments or results, in order; shapes and bytes are those of one replica."""
    specs = []
    for index, value in enumerate(values):
        sharding = shardings[index] if shardings else b""
        if value.dtype == TOKEN:
            specs.append(ipu.engine.TensorSpec(TOKEN, [], 0, sharding))
            continue
        row = DTYPES[value.dtype]
        outside = seen.get(index, Seen(row.jax_name, value.shape))
        size = value.num_elements * row.size
        spec = ipu.engine.TensorSpec(outside.dtype, outside.shape, size, sharding)
        if index in memories:
            spec.memory_kind = memories[index]
        specs.append(spec)
    return specs
