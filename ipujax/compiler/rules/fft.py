"""fft of all four kinds, over the last one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule

declare("fft", complex="marked pairs")


@rule("fft")
def fft(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Complex operands and results are two tensors each: real and imaginary parts."""
    return list(
        ipu.popx.fft(
            builder.graph,
            builder.operands(op),
            getattr(ipu.popx.FftType, op.attrs["fft_type"]),
            list(op.attrs["fft_length"]),
            builder.program,
            builder.debug(op),
        )
    )
