"""sort with any comparator, and top_k."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.elementwise import body_expressions
from ipujax.compiler.rules.registry import rule

declare("sort", along=("dimension",), moves=True, complex="pairs")
declare("chlo.top_k", moves=True)


@rule("sort")
def sort(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Sorts arrays together; the comparator says whether the first element comes first."""
    return ipu.popx.sort(
        builder.graph,
        builder.operands(op),
        body_expressions(op.regions[0])[0],
        op.attrs["dimension"],
        bool(op.attrs.get("is_stable", False)),
        builder.program,
        builder.debug(op),
    )


@rule("chlo.top_k")
def top_k(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The k largest of the last dimension, largest first, and their indices."""
    (tensor,) = builder.operands(op)
    popops = ipu.popops
    params = popops.TopKParams(op.attrs["k"], True, popops.SortOrder.DESCENDING, True)
    largest, where = popops.topKWithPermutation(
        builder.graph, builder.program, tensor, params, builder.debug(op)
    )
    return [largest, where.reinterpret(builder.type_of(op.results[1]))]
