"""Pallas kernels, which are for GPUs and TPUs, in interpret mode."""

from __future__ import annotations

from functools import partial
from typing import Any

from jax.interpreters import mlir

from ipujax.errors import UnsupportedOpError
from ipujax.jax_compat.platform import PLATFORM


def lower_pallas_interpreted() -> None:
    """Lowers `pl.pallas_call`, `pl.kernel` and `pl.core_map` as for the CPU: interpreted.

    JAX's rule for the last two refuses platforms by name.
    """
    from jax._src.pallas import mpmd, pallas_call

    for primitive, rule in (
        (pallas_call.pallas_call_p, pallas_call._pallas_call_lowering),
        (mpmd.mpmd_map_p, mpmd._mpmd_map_fallback_lowering),
    ):
        mlir.register_lowering(primitive, partial(_lower_interpreted, rule), platform=PLATFORM)


def _lower_interpreted(rule: Any, ctx: Any, *operands: Any, interpret: Any, **rest: Any) -> Any:
    if not interpret:
        reason = "Pallas compiles kernels for GPUs and TPUs only; pass interpret=True"
        raise UnsupportedOpError([(ctx.primitive.name, reason, "")])
    return rule(ctx, *operands, interpret=interpret, **rest)
