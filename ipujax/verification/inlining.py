"""Inlines calls, and legalises what only JAX's own dialects say."""

from __future__ import annotations

import functools
from typing import Any

from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager


@functools.cache
def _register_passes() -> None:
    """Makes StableHLO's passes known by name, once in a process."""
    stablehlo.register_stablehlo_passes()


def lower_calls(module: Any, legalise: bool = True) -> None:
    """Inlines calls, in place; where `legalise`, composites and CHLO too become StableHLO."""
    _register_passes()
    passes = ["inline", "symbol-dce"]
    if legalise:
        composites = "func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo)"
        passes = [composites, *passes]
    with module.context:
        PassManager.parse(f"builtin.module({','.join(passes)})").run(module.operation)
