"""iota: the one constant that reaches the device as an op."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, broadcast_to
from ipujax.compiler.rules.registry import rule

declare("iota", cheap=True, integers64=True)


@rule("iota")
def iota(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """A line of whole numbers, broadcast to the result's shape."""
    result, axis = op.results[0], op.attrs["iota_dimension"]
    length, debug = result.shape[axis], builder.debug(op)
    poplar = ipu.poplar
    is_native = DTYPES[result.dtype].poplar in ("INT", "UNSIGNED_INT")
    type_ = builder.type_of(result) if is_native else poplar.INT
    line = builder.variable(type_, [length], debug)
    ipu.popops.iota(builder.graph, line, 0, builder.program, debug)
    if not is_native:
        line = builder.cast(line, builder.type_of(result), debug)
        if result.dtype == "bf16":
            line = builder.each(line, ipu.popx.expr.RoundToBFloat16, debug)
    expanded = [1] * len(result.shape)
    expanded[axis] = length
    return [broadcast_to(line.reshape(expanded), result.shape)]
