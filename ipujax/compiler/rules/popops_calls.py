"""Ops of `ipu.ops` that are functions of popops: slices of sequences, selection, sorting, print."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule


@custom_call_rule("ipu_sequence_slice", double=True, moves=True, complex="parts")
def sequence_slice(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """A copy of the first operand, with the runs written to it."""
    debug = builder.debug(op)
    out, source, num, from_, to = builder.operands(op)
    written = builder.materialise(out, debug)
    ipu.popops.sequenceSlice(
        builder.graph,
        source,
        written,
        num,
        from_,
        to,
        parameters_of(op)["zero_unused"],
        builder.program,
        debug,
    )
    return [written]


_ORDERS = {"descending": "DESCENDING", "ascending": "ASCENDING", "none": "NONE"}


@custom_call_rule("ipu_top_k", chooses=True)
def top_k(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Values and indices."""
    config, popops = parameters_of(op), ipu.popops
    order = getattr(popops.SortOrder, _ORDERS[config["order"]])
    params = popops.TopKParams(config["k"], config["largest"], order, True)
    (tensor,) = builder.operands(op)
    values, where = popops.topKWithPermutation(
        builder.graph, builder.program, tensor, params, builder.debug(op)
    )
    return [values, where.reinterpret(builder.type_of(op.results[1]))]


@custom_call_rule("ipu_sort", chooses=True)
def sort(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Along the last dimension."""
    (tensor,) = builder.operands(op)
    dim = len(tensor.shape) - 1
    return [ipu.popops.sort(builder.graph, tensor, dim, builder.program, builder.debug(op))]


@custom_call_rule("ipu_sort_key_value", chooses=True)
def sort_key_value(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The second operand, in the order of the first."""
    keys, values = builder.operands(op)
    dim, debug = len(keys.shape) - 1, builder.debug(op)
    return [ipu.popops.sortKeyValue(builder.graph, keys, values, dim, builder.program, debug)]


@custom_call_rule("ipu_print_tensor", double=True, moves=True)
def print_tensor(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Prints the operand to standard error, and returns it."""
    (tensor,) = builder.operands(op)
    title = parameters_of(op)["title"]
    builder.prints = True
    builder.program.add(ipu.poplar.program.PrintTensor(title, tensor))
    return [tensor]
