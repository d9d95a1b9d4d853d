"""Runs a module on StableHLO's reference interpreter, after rewriting what it does not support."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, stablehlo

from ipujax import jax_compat
from ipujax.compiler.elements import elements
from ipujax.compiler.modules import main_of, ops_in
from ipujax.verification.slices import lower_calls

#: Ops and custom calls that return their operand.
_CONSTRAINTS = ("sdy.sharding_constraint", "sdy.reshard", "sdy.propagation_barrier")
_MARKS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement")


def interpret(code: bytes | str, arrays: Sequence[np.ndarray]) -> list[Any]:
    """The results of `main`."""
    module = jax_compat.parse_module(code)
    with module.context:
        _each(module.operation, _drop_sharding)
    lower_calls(module)
    with module.context:
        _each(module.operation, _copy_scattered)
        complex_at = _split_complex_results(module)
    # A splat has stride 0: callers get arrays of their own.
    parts = [np.array(elements(part)) for part in jax_compat.evaluate_module(module, arrays)]
    results = []
    for is_complex in complex_at:
        real = parts.pop(0)
        results.append(real + 1j * parts.pop(0) if is_complex else real)
    return results


def _each(op: Any, change: Callable[[Any], None]) -> None:
    """Calls `change`, which may erase or add ops, with every op inside `op`."""
    for inner in list(ops_in(op)):
        _each(inner, change)
        change(inner)


def _drop_sharding(op: Any) -> None:
    """Removes sharding constraints and memory annotations: there is one device."""
    is_mark = (
        op.name == "stablehlo.custom_call" and op.attributes["call_target_name"].value in _MARKS
    )
    if op.name in _CONSTRAINTS or is_mark:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    elif op.name == "sdy.mesh":
        op.erase()


def _copy_scattered(op: Any) -> None:
    """Gives scatters copies: the interpreter overwrites operands that other ops may use."""
    if op.name == "stablehlo.scatter":
        with ir.InsertionPoint(op), op.location:
            for k in range(len(op.results)):
                op.operands[k] = stablehlo.reshape(op.operands[k].type, op.operands[k])


def _split_complex_results(module: Any) -> list[bool]:
    """Makes `main` return real and imaginary parts; returns which results were complex.

    The interpreter's bindings crash on complex results.
    """
    main = main_of(module).opview
    back = list(main.entry_block.operations)[-1]
    values = list(back.operands)
    is_complex = [str(v.type.element_type).startswith("complex") for v in values]
    if any(is_complex):
        with ir.Location.unknown(), ir.InsertionPoint(back):
            parts: list[Any] = []
            for value, split in zip(values, is_complex, strict=True):
                parts += [stablehlo.real(value), stablehlo.imag(value)] if split else [value]
            func.ReturnOp(parts)
            back.operation.erase()
            kinds = ir.FunctionType.get(main.type.inputs, [part.type for part in parts])
            main.attributes["function_type"] = ir.TypeAttr.get(kinds)
            if "res_attrs" in main.attributes:
                del main.attributes["res_attrs"]
    return is_complex
