"""Dropout: a mask of poprand's generator, applied as it is drawn."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule


@custom_call_rule("ipu_dropout")
def dropout(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """x, two words of seed -> x / (1 - rate) or 0; a block also takes its start."""
    parameters = parameters_of(op)
    x, seed, *starts = builder.operands(op)
    rate, shape = parameters["rate"], parameters["noise_shape"]
    debug, keep = builder.debug(op), 1 - rate
    if starts:
        made = ipu.popx.dropoutBlock(
            builder.graph, seed, x, starts[0], shape, keep, 1 / keep, builder.program, debug
        )
    elif shape == list(x.shape):
        made = ipu.poprand.dropout(
            builder.graph, seed, 0, x, x, keep, 1 / keep, builder.program, debug
        )
    else:
        mask = builder.variable(x.elementType(), shape, debug)
        made = ipu.poprand.shapedDropout(
            builder.graph, seed, 0, x, mask, keep, 1 / keep, builder.program, debug
        )
    return builder.round_bfloat16(op, [made])
