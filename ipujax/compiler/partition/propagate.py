"""Shardy's part: from JAX's annotations to a sharding for every value, and explicit reshards."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ipujax import jax_compat
from ipujax.compiler.partition.inline import inline_calls
from ipujax.compiler.partition.op_calls import name_dimensions
from ipujax.compiler.partition.same_grids import name_axes_alike
from ipujax.compiler.partition.stand_ins import name_composites, name_slices
from ipujax.errors import InvalidProgramError

#: In this order, after calls are inlined. Their nesting matters: a wrong one ends the process.
PASSES = (
    "sdy-propagation-pipeline",
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
    "func.func(sdy-reshard-to-collectives)",
)


def propagate(module: Any) -> None:
    """Gives each value a sharding and writes where it changes, in place.

    Raises:
        InvalidProgramError: Shardy refuses the module.
    """
    try:
        name_axes_alike(module)
        name_composites(module)
        inline_calls(module)
        name_slices(module)
        name_dimensions(module)
        jax_compat.run_passes(module, PASSES)
    except ir.MLIRError as error:
        raise InvalidProgramError(
            f"[partition] needs shardings that Shardy can propagate; got: {error}. "
            "Check the shardings of this program's arguments and constraints."
        ) from error
