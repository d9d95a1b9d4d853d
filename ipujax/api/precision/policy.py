"""`CastPolicy`: which operations of an autocast function run in float16 and which in float32."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from ipujax.errors import ConfigError

#: Primitives that compute the same function for any float dtype; all operands have one dtype.
_ALIKE = """
    abs acos acosh add add_any asin asinh atan atan2 atanh cbrt ceil clamp concatenate cos cosh
    digamma div dot_general conv_general_dilated dynamic_update_slice eq erf erf_inv erfc exp exp2
    expm1 floor ge gt integer_pow is_finite le lgamma log log1p logistic lt max min mul ne neg
    nextafter pad pow ragged_dot_general rem round rsqrt scatter scatter-add scatter-max scatter-min
    scatter-mul scatter-sub select_and_scatter_add select_n sign sin sinh sqrt square sub tan tanh
""".split()  # noqa: SIM905
#: Primitives whose results have the dtype of their operand: they move, select or add up values.
_EACH = """
    all_gather all_to_all argmax argmin broadcast_in_dim copy copy_p cumlogsumexp cummax cummin
    cumprod cumsum device_put dynamic_slice expand_dims gather optimization_barrier pbroadcast pmax
    pmin ppermute psum psum_invariant pvary reduce_max reduce_min reduce_precision reduce_prod
    reduce_scatter reduce_sum reduce_window_max reduce_window_min reduce_window_sum reshape rev
    sharding_constraint slice sort split squeeze stop_gradient top_k transpose
""".split()  # noqa: SIM905
ALIKE, EACH = set(_ALIKE), frozenset(_EACH)

#: Other names that users know.
_ALIASES = {
    "bmm": "dot_general",
    "conv": "conv_general_dilated",
    "convolution": "conv_general_dilated",
    "divide": "div",
    "dot": "dot_general",
    "einsum": "dot_general",
    "matmul": "dot_general",
    "multiply": "mul",
    "power": "pow",
    "scatter_add": "scatter-add",
    "scatter_max": "scatter-max",
    "scatter_min": "scatter-min",
    "scatter_mul": "scatter-mul",
    "sigmoid": "logistic",
    "subtract": "sub",
    "tensordot": "dot_general",
    "where": "select_n",
}

#: PopTorch's default policy, as far as JAX has its operations.
DEFAULTS = {
    "fp16": ("conv_general_dilated", "dot_general", "ipu_multi_conv"),
    "fp32": (),
    "promote": ("atan2", "concatenate", "eq", "scatter"),
    "demote": (),
}

Operation = str | Callable[..., Any] | Any
_NOT_GIVEN: Any = object()


def allow_casts(name: str) -> None:
    """Lets policies name this primitive, which computes in any dtype that its operands have."""
    ALIKE.add(name)


@dataclass(frozen=True)
class CastPolicy:
    """Which operations of an autocast function (see `ipu.autocast`) change their dtype.

    An operation is a primitive of JAX, as a string, a primitive or a function of that name:
    "dot_general", `jax.lax.dot_general_p`, `jax.lax.dot_general`, and also "matmul", "conv" and
    the like; or an operation of `ipu.nn` and `ipu.ops`. An operation is in one list at most. Lists
    that are not given have PopTorch's defaults without the operations that other lists name.

    Args:
        fp16: operations whose float32 operands are cast to float16. Default: products and
            convolutions.
        fp32: operations whose float16 operands are cast to float32. Default: none.
        promote: operations that use float32 if their operands are mixed. Default: atan2,
            concatenate, eq and scatter.
        demote: operations that use float16 if their operands are mixed. Default: none.
        mixed: "half" or "float": what other operations use if their operands are mixed. PopTorch's
            default is "half" (`HalfFloatCastingBehavior.FloatDowncastToHalf`).
    Raises:
        ConfigError: an unknown operation, or one in two lists; an invalid `mixed`.

    Source: PopTorch User Guide, "Custom casting policies", and `poptorch.autocasting`.

    Example:
        >>> policy = ipu.CastPolicy(fp16=["conv"], fp32=["dot_general", jax.lax.exp])
        >>> policy.fp32
        ('dot_general', 'exp')
    """

    fp16: tuple[str, ...] = field(default=_NOT_GIVEN)
    fp32: tuple[str, ...] = field(default=_NOT_GIVEN)
    promote: tuple[str, ...] = field(default=_NOT_GIVEN)
    demote: tuple[str, ...] = field(default=_NOT_GIVEN)
    mixed: Literal["half", "float"] = "half"

    def __post_init__(self) -> None:
        given = {
            name: _names(name, getattr(self, name))
            for name in DEFAULTS
            if getattr(self, name) is not _NOT_GIVEN
        }
        _check_once(given)
        named = {operation for names in given.values() for operation in names}
        for name, default in DEFAULTS.items():
            rest = tuple(operation for operation in default if operation not in named)
            object.__setattr__(self, name, given.get(name, rest))
        if not isinstance(self.mixed, str) or self.mixed not in ("half", "float"):
            raise ConfigError(
                f'[ipu.CastPolicy] needs mixed="half" or "float"; got {self.mixed!r}. Use one of '
                "them."
            )

    def list_of(self, operation: str) -> str:
        """The list that has the operation, or ""."""
        return next((name for name in DEFAULTS if operation in getattr(self, name)), "")


def _names(where: str, operations: Iterable[Operation]) -> tuple[str, ...]:
    if isinstance(operations, str) or not isinstance(operations, Iterable):
        advice = f"Pass [{operations!r}]." if isinstance(operations, str) else "Pass a list."
        raise ConfigError(
            f"[ipu.CastPolicy] needs {where} to be a list of operations; got {operations!r}. "
            f"{advice}"
        )
    return tuple(dict.fromkeys(_name(where, operation) for operation in operations))


def _name(where: str, operation: Operation) -> str:
    given = operation if isinstance(operation, str) else getattr(operation, "name", None)
    if not isinstance(given, str):
        given = getattr(operation, "__name__", repr(operation))
    name = _ALIASES.get(given, given)
    is_ours = getattr(operation, "__module__", "").startswith("ipujax.")
    for known in (f"ipu_{name}", name) if is_ours else (name, f"ipu_{name}"):
        if known in ALIKE or known in EACH:
            return known
    names = sorted(each.removeprefix("ipu_") for each in {*ALIKE, *EACH, *_ALIASES})
    close = difflib.get_close_matches(given, names, 3, 0.5)
    hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else "Use names of primitives."
    raise ConfigError(
        f"[ipu.CastPolicy] needs operations in {where} that exist in float16 and in float32, such "
        f"as 'dot_general' or 'exp'; got {given!r}. {hint}"
    )


def _check_once(given: dict[str, tuple[str, ...]]) -> None:
    seen: dict[str, str] = {}
    for name, operations in given.items():
        for operation in operations:
            other = seen.setdefault(operation, name)
            if other != name:
                raise ConfigError(
                    f"[ipu.CastPolicy] needs each operation in one list; got {operation!r} in "
                    f"{other} and {name}. Remove one of them."
                )
