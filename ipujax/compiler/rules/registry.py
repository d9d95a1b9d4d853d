"""The one registry of rules, keyed by the op's name, and the table of ops that are refused."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ipujax.compiler.ir import Op, declare, declare_call
from ipujax.compiler.ir.traits import TRAITS, UNKNOWN
from ipujax.compiler.old_ops import DYNAMIC, DYNAMIC_REASON, OLD_OPS

if TYPE_CHECKING:
    from ipujax.compiler.rules.builder import Builder, Variable

#: A rule returns one tensor or remote buffer for each result of the op, and None for a token.
Rule: TypeAlias = "Callable[[Builder, Op], Sequence[Variable | None]]"

RULES: dict[str, Rule] = {}
#: Rules of custom calls, by the call's target.
CUSTOM_CALLS: dict[str, Rule] = {}
#: Custom calls that compute the elements of their results, which are checked like other ops'.
COMPUTING_CALLS: set[str] = set()


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Registers a function `(builder, op) -> tensors` for ops of these names.

    Raises:
        TypeError: a name has a rule already, or no traits, or the signature is wrong.
    """

    def register(function: Rule) -> Rule:
        for name in names:
            row = TRAITS.get(name, UNKNOWN)
            if row is UNKNOWN:
                raise TypeError(
                    f"[rules] needs the traits of each op with a rule; got none of {name!r} in "
                    f"{function.__module__}. Call declare({name!r}, ...) before the rule."
                )
            _register(RULES, name, function, bool(row.refused or row.removed))
        return function

    return register


def custom_call_rule(
    *targets: str, computes: bool = False, double: bool = False, **facts: Any
) -> Callable[[Rule], Rule]:
    """Registers a function `(builder, op) -> tensors` for custom calls of these targets.

    Args:
        computes: results are arithmetic on the operands: `floating_point_exceptions` checks them.
        double: operands and results may be float64.
        facts: more traits of the calls.
    Raises:
        TypeError: a target has a rule already, or the signature is wrong.
    """

    def register(function: Rule) -> Rule:
        for target in targets:
            _register(CUSTOM_CALLS, target, function)
            if computes:
                COMPUTING_CALLS.add(target)
            declare_call(target, no_double=not double, **facts)
        return function

    return register


def _register(table: dict[str, Rule], name: str, function: Rule, is_taken: bool = False) -> None:
    parameters = list(inspect.signature(function).parameters)
    if parameters != ["builder", "op"]:
        raise TypeError(
            f"[rules] needs a rule with parameters (builder, op); got {function.__name__}"
            f"({', '.join(parameters)}). Declare these two."
        )
    if name in table or is_taken:
        raise TypeError(
            f"[rules] needs one entry per op; got a second one for {name!r} in "
            f"{function.__module__}. Remove one of them."
        )
    table[name] = function


# Ops that no rule lowers -------------------------------------------------------------------------

_QUANTISED = "IPUs have no quantised types; use int8 and scale the values"
_HOST = "IPUs have no infeeds and outfeeds; use io_callback or jax.debug"
_OLD = "JAX does not emit it; it is rewritten after partitioning"

declare(
    "async_done",
    "async_start",
    removed="async_ops.py: becomes the collective itself",
    replicated="it is replaced before partitioning",
)
declare("infeed", "outfeed", "recv", "send", effect=True, refused=_HOST)
declare("set_dimension_size", refused=DYNAMIC_REASON)
declare("uniform_dequantize", "uniform_quantize", refused=_QUANTISED)
declare("constant", removed="the reader: it leaves no op")
declare("composite", removed="the reader: it leaves no op", replicated="its callee is inlined")
declare(
    "get_tuple_element",
    "return",
    "tuple",
    removed="the reader: it leaves no op",
    replicated="it only passes values on",
)
declare(
    "complex",
    "imag",
    "real",
    partition="elementwise",
    removed="passes/complex.py: complex numbers become two real ones",
)
for _name, (_becomes, _) in OLD_OPS.items():
    declare(_name, removed=f"the reader: becomes {_becomes}", replicated=_OLD)
for _name, _becomes in DYNAMIC.items():
    _where = "where its shapes are constants"
    declare(_name, removed=f"the reader: becomes {_becomes} {_where}", replicated=_OLD)
