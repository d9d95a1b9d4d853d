"""Custom calls: callbacks into Python, and targets that have a rule. Others are refused by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ipujax.compiler.dtypes import DTYPES, TOKEN
from ipujax.compiler.ir import Op, Value, declare, declare_call
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, HostArray, Variable
from ipujax.compiler.rules.call_signatures import SIGNATURES, signature_refusal
from ipujax.compiler.rules.registry import CUSTOM_CALLS, rule
from ipujax.jax_compat import CALLBACK_TARGET, platforms_of_target

declare("custom_call", effect=True, complex="marked pairs", no_double=True)
declare_call(CALLBACK_TARGET, complex="marked pairs")


def refusal(op: Op) -> str | None:
    """Why this custom call cannot be lowered, or None if it can."""
    target = op.attrs["call_target_name"]
    if target == CALLBACK_TARGET or target in CUSTOM_CALLS:
        return None
    platforms = platforms_of_target(target)
    if not platforms:
        return (
            f"no target {target!r} is registered for any platform; correct the name, or make it an "
            "op of IPUs with ipujax.custom_op"
        )
    names = " and ".join(map(repr, platforms))
    return (
        f"the target {target!r} is registered for {names} as code of the host's; make it an op of "
        "IPUs with ipujax.custom_op, or call it with jax.pure_callback"
    )


def misread(op: Op) -> str | None:
    """Why the target's rule, if it has one, cannot read this call; None if it can."""
    target = op.attrs["call_target_name"]
    is_ours = target.startswith("ipu_") and target in CUSTOM_CALLS and target not in SIGNATURES
    if is_ours and "config" not in (op.attrs.get("mhlo.backend_config") or {}):
        return "it is ipujax's own; use the function of ipujax that makes this call"
    return signature_refusal(op)


def parameters_of(op: Op) -> dict[str, Any]:
    """The parameters, from JSON, of a custom call that this package wrote."""
    found: dict[str, Any] = json.loads(op.attrs["mhlo.backend_config"]["config"])
    return found


@rule("custom_call")
def custom_call(builder: Builder, op: Op) -> Sequence[Variable | None]:
    """Lowers the call by its target's rule, or as a callback if there is none."""
    found = CUSTOM_CALLS.get(op.attrs["call_target_name"])
    return (found or _callback)(builder, op)


def _callback(builder: Builder, op: Op) -> Sequence[ipu.Tensor | None]:
    """Copies the operands to the host, runs the Python function, copies its results back."""
    debug = builder.debug(op)
    values = [value for value in op.operands if value.dtype != TOKEN]
    results = [value for value in op.results if value.dtype != TOKEN]
    taken, given = _arrays(values), _arrays(results)
    written = ipu.popx.hostCallback(
        builder.graph,
        builder.host_function(str(op.attrs.get("backend_config", "")), taken, given),
        [to_stored(builder, builder.tensor(value), value.dtype, debug) for value in values],
        [dtype for dtype, _ in taken],
        given,
        builder.program,
        debug,
    )
    held = {
        value: from_stored(builder, tensor, value.dtype, debug)
        for tensor, value in zip(written, results, strict=True)
    }
    return [held.get(value) for value in op.results]


def _arrays(values: Sequence[Value]) -> list[HostArray]:
    return [(DTYPES[value.dtype].jax_name, list(value.shape)) for value in values]


def to_stored(
    builder: Builder, tensor: ipu.Tensor, dtype: str, debug: ipu.DebugContext
) -> ipu.Tensor:
    """The tensor as the program's callers see it: bfloat16 as its bits."""
    if dtype != "bf16":
        return tensor
    return builder.each(tensor, ipu.popx.expr.ToBFloat16, debug)


def from_stored(
    builder: Builder, tensor: ipu.Tensor, dtype: str, debug: ipu.DebugContext
) -> ipu.Tensor:
    """The inverse of `to_stored`."""
    if dtype != "bf16":
        return tensor
    return builder.each(tensor, ipu.popx.expr.FromBFloat16, debug)
