"""Lowers `ipu.cycle_count`."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.errors import PlacementError


@custom_call_rule("ipu_cycle_count", double=True, moves=True, complex="pairs")
def cycle_count(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The unchanged operands, and tile 0's cycle counter."""
    num_ipus = builder.whole_graph.getTarget().getNumIPUs()
    if num_ipus > 1:
        raise PlacementError(
            f"[ipu.cycle_count] needs a device of one IPU; got one of {num_ipus}, whose operations "
            "run at one time. See ipu.report for the time of each IPU."
        )
    stamp = ipu.poplar.cycleStamp(builder.graph, builder.program, 0, builder.debug(op))
    return [*builder.operands(op), stamp]
