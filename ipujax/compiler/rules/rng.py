"""rng_bit_generator: the counter-based generators of XLA, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.registry import rule

_ALGORITHMS = {"THREE_FRY": "threefry", "PHILOX": "philox", "DEFAULT": "default"}


@rule("rng_bit_generator")
def rng_bit_generator(builder: Builder, op: Op) -> Sequence[Any]:
    """New state and random bits; the 64-bit words of the state are pairs of 32-bit ones."""
    (state,) = builder.operands(op)
    bits = op.results[1]
    new_state, random = ipu.popx.rngBitGenerator(
        builder.graph,
        state.flatten(),
        _ALGORITHMS[op.attrs["rng_algorithm"]],
        list(bits.shape),
        builder.type_of(bits),
        builder.program,
        builder.debug(op),
    )
    return [new_state.reshape(list(op.results[0].shape)), random]
