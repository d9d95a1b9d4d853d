"""Ops of `ipu.ops` that are functions of poprand."""

from __future__ import annotations

from collections.abc import Sequence

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule

#: Functions, and the parameters that they take.
_DISTRIBUTIONS = {
    "uniform": ("uniform", "low", "high"),
    "normal": ("normal", "mean", "deviation"),
    "truncated_normal": ("truncatedNormal", "mean", "deviation", "alpha"),
    "bernoulli": ("bernoulli", "probability"),
}


@custom_call_rule(*(f"ipu_random_{name}" for name in _DISTRIBUTIONS))
def random(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The operand is a seed of two uint32."""
    config, debug = parameters_of(op), builder.debug(op)
    name = op.attrs["call_target_name"].removeprefix("ipu_random_")
    function, *parameters = _DISTRIBUTIONS[name]
    (seed,) = builder.operands(op)
    type_ = builder.type_of(op.results[0])
    reference = builder.variable(ipu.poplar.FLOAT, list(op.results[0].shape), debug)
    draw = getattr(ipu.poprand, function)
    values = [float(config[parameter]) for parameter in parameters]
    made = draw(builder.graph, seed, 0, reference, type_, *values, builder.program, debug)
    return builder.round_bfloat16(op, [made])
