"""The one registry of rules, keyed by the op's name, and the table of ops that are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from ipujax.compiler.ir import Op
from ipujax.compiler.old_ops import DYNAMIC, OLD_OPS

#: A rule gives one tensor for each result of the op.
Rule = Callable[[Any, Op], Sequence[Any]]

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function `(builder, op) -> tensors` for ops of these names.

    Raises:
        TypeError: a name has a rule or a refusal already, or the signature is another.
    """

    def register(function: Rule) -> Rule:
        _check_signature(function)
        for name in names:
            if name in RULES or name in REFUSED:
                raise TypeError(
                    f"[rules] needs one entry per op; got a second one for {name!r} in "
                    f"{function.__module__}. Remove one of them."
                )
            RULES[name] = function
        return function

    return register


def _check_signature(function: Rule) -> None:
    parameters = list(inspect.signature(function).parameters)
    if parameters != ["builder", "op"]:
        raise TypeError(
            f"[rules] needs a rule with parameters (builder, op); got {function.__name__}"
            f"({', '.join(parameters)}). Declare these two."
        )


#: Rules of custom calls, by the call's target.
CUSTOM_CALLS: dict[str, Rule] = {}


def custom_call_rule(*targets: str) -> Callable[[Rule], Rule]:
    """Registers a function `(builder, op) -> tensors` for custom calls of these targets.

    Raises:
        TypeError: a target has a rule already, or the signature is another.
    """

    def register(function: Rule) -> Rule:
        _check_signature(function)
        for target in targets:
            if target in CUSTOM_CALLS:
                raise TypeError(
                    f"[rules] needs one rule per target; got a second one for {target!r} in "
                    f"{function.__module__}. Remove one of them."
                )
            CUSTOM_CALLS[target] = function
        return function

    return register


_ASYNC = "a program runs one op after another; use the collective itself"
_DYNAMIC = "shapes must be known when compiling; an IPU program has fixed shapes"
_QUANTISED = "quantised types have no place on an IPU; use int8 and scale yourself"
_HOST = "the host is reached with io_callback and jax.debug, not with in- and outfeeds"

#: Ops that are refused, each with the reason that users are told.
REFUSED: dict[str, str] = {
    "async_done": _ASYNC,
    "async_start": _ASYNC,
    "infeed": _HOST,
    "outfeed": _HOST,
    "recv": _HOST,
    "send": _HOST,
    "set_dimension_size": _DYNAMIC,
    "uniform_dequantize": _QUANTISED,
    "uniform_quantize": _QUANTISED,
}
#: Ops that the reader takes away, so that no rule ever sees them.
READ_AWAY = frozenset(
    {
        "composite",
        "constant",
        "get_tuple_element",
        "return",
        "tuple",
    }
)
#: Ops on complex numbers alone, which a pass takes away.
SPLIT_AWAY = frozenset({"complex", "imag", "real"})
#: Ops that the reader turns into others, and into which.
REWRITTEN = {name: becomes for name, (becomes, _) in OLD_OPS.items()} | DYNAMIC
