"""`ipu.ops.float8_matmul`: products of floats of 8 bits, which one machine has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule
from ipujax.errors import UnsupportedDtypeError

#: poplibs has convolution vertices of quarters for this architecture alone.
_ARCHITECTURE = "ipu21"


@custom_call_rule("ipu_float8_matmul", computes=True)
def float8_matmul(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Operands are halves with the numbers; the model plans them as quarters on a C600."""
    arch = builder.whole_graph.getTarget().getTargetArchString()
    emulate = parameters_of(op)["emulate"]
    if arch != _ARCHITECTURE and not emulate:
        raise UnsupportedDtypeError(
            f"[ipu.ops.float8_matmul] needs a C600 ({_ARCHITECTURE}), whose tiles multiply floats "
            f"of 8 bits; got a machine of architecture {arch}. Pass emulate=True, or set "
            "IPUJAX_MACHINE=c600."
        )
    options = builder.product_options(op)
    if not emulate and ipu.backend == "IPU Model":
        options["quarterOperands"] = "true"
    left, right = builder.operands(op)
    groups = math.prod(left.shape[:-2])
    rounds_later = (
        builder.options.stochastic_rounding or builder.options.half_overflow != "infinity"
    )
    type_ = ipu.poplar.FLOAT if rounds_later else builder.type_of(op.results[0])
    product = ipu.poplin.matMulGrouped(
        builder.graph,
        left.reshape([groups, *left.shape[-2:]]),
        right.reshape([groups, *right.shape[-2:]]),
        builder.program,
        type_,
        builder.debug(op),
        options,
        builder.plans,
    )
    product = builder.cast(product, builder.type_of(op.results[0]), builder.debug(op))
    return [product.reshape(list(op.results[0].shape))]
