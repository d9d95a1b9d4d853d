"""Ops of `ipu.ops` that are popops' histograms and normalised images."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule

_FLOAT_COUNTS = {"useFloatArithmetic": "true"}


@custom_call_rule("ipu_histogram")
def histogram(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Counts in float32."""
    x, levels = builder.operands(op)
    absolute = parameters_of(op)["absolute"]
    counts = ipu.popops.histogram(
        builder.graph, x, levels, absolute, builder.program, builder.debug(op), _FLOAT_COUNTS
    )
    return [counts]


@custom_call_rule("ipu_normalise_image")
def normalise_image(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The normalised image, with four channels."""
    image, offsets, scales = builder.operands(op)
    scale = parameters_of(op)["scale"]
    made = ipu.popops.normaliseImage(
        builder.graph, builder.program, image, scale, offsets, scales, builder.debug(op)
    )
    return [made]
