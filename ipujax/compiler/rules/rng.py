"""rng_bit_generator: the counter-based generators of XLA, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule


@rule("rng_bit_generator")
def rng_bit_generator(builder: Builder, op: Op) -> Sequence[Any]:
    """New state and random bits; the 64-bit words of the state are pairs of 32-bit ones."""
    (state,) = builder.operands(op)
    bits = op.results[1]
    new_state, random = ipu.popx.rngBitGenerator(
        builder.graph,
        state,
        op.attrs["rng_algorithm"],
        builder.type_of(bits),
        list(bits.shape),
        builder.program,
        builder.debug(op),
    )
    return [new_state, random]
