"""Values in the host's memory: remote buffers, and copies between them and the tiles.

A stack is one buffer whose entries lie along its first dimension.
"""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, Variable
from ipujax.compiler.rules.custom_call import from_stored, to_stored
from ipujax.compiler.rules.registry import rule

_MADE = "it is made after programs are divided"
declare("to_host", moves=True, unique=True, complex="parts", replicated=_MADE)
declare("to_device", loads=True, moves=True, unique=True, complex="parts", replicated=_MADE)
declare("host_empty", moves=True, unique=True, replicated=_MADE)
declare("host_reshape", moves=True, unique=True, reads_part=True, replicated=_MADE)
declare("read_entry", loads=True, moves=True, unique=True, replicated=_MADE)
declare("write_entry", moves=True, unique=True, update=True, replicated=_MADE)


@rule("to_host")
def to_host(builder: Builder, op: Op) -> Sequence[Variable]:
    debug, value = builder.debug(op), op.operands[0]
    tensor = to_stored(builder, builder.tensor(value), value.dtype, debug)
    result = op.results[0]
    buffer = builder.destinations.get(result) or builder.remote_buffer(result)
    builder.program.add(ipu.poplar.program.Copy(tensor, buffer, debug))
    return [buffer]


@rule("to_device")
def to_device(builder: Builder, op: Op) -> Sequence[Variable]:
    debug, result = builder.debug(op), op.results[0]
    tensor = builder.variable(builder.stored_types[result.dtype], result.shape, debug)
    buffer = builder.buffer(op.operands[0])
    builder.program.add(ipu.poplar.program.Copy(buffer, tensor, debug))
    return [from_stored(builder, tensor, result.dtype, debug)]


@rule("host_empty")
def host_empty(builder: Builder, op: Op) -> Sequence[Variable]:
    """A buffer that a loop writes before anything reads it."""
    return [builder.remote_buffer(op.results[0])]


@rule("host_reshape")
def host_reshape(builder: Builder, op: Op) -> Sequence[Variable]:
    buffer, entries = builder.buffer(op.operands[0]), builder.num_entries(op.results[0])
    name, debug = builder.buffer_name(), builder.debug(op)
    graph, program = builder.whole_graph, builder.program
    return [ipu.popx.withRepeats(graph, buffer, entries, name, program, debug)]


@rule("read_entry")
def read_entry(builder: Builder, op: Op) -> Sequence[Variable]:
    """Reads to the device, or to a new buffer."""
    debug, result = builder.debug(op), op.results[0]
    stack, index = builder.buffer(op.operands[0]), builder.tensor(op.operands[1]).reshape([1])
    if result.is_remote:
        entry = builder.remote_buffer(result)
        ipu.popx.readEntry(builder.graph, stack, entry, index, builder.program, debug)
        return [entry]
    tensor = builder.variable(builder.stored_types[result.dtype], result.shape, debug)
    ipu.popx.readEntry(builder.graph, stack, tensor, index, builder.program, debug)
    return [from_stored(builder, tensor, result.dtype, debug)]


@rule("write_entry")
def write_entry(builder: Builder, op: Op) -> Sequence[Variable]:
    """Writes in place if nothing else needs the old stack."""
    debug, (stack, entry, at) = builder.debug(op), op.operands
    buffer, index = builder.buffer(stack), builder.tensor(at).reshape([1])
    if not op.attrs["taken"]:
        whole = builder.remote_buffer(op.results[0])
        builder.copy(buffer, whole, debug)
        buffer = whole
    if entry.is_remote:
        own = builder.buffer(entry)
        ipu.popx.writeEntry(builder.graph, own, buffer, index, builder.program, debug)
    else:
        tensor = to_stored(builder, builder.tensor(entry), entry.dtype, debug)
        ipu.popx.writeEntry(builder.graph, tensor, buffer, index, builder.program, debug)
    return [buffer]
