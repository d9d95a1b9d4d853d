"""StableHLO ops as functions of `jax.lax`, one rule each: rule(op, *operands) -> results.

Results have the dtype of the operands unless the op names another one, so that a program can run in
other dtypes than it was written in. `NoRule`: the op's form has no counterpart in `lax`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax.compiler.elements import elements

Rule = Callable[..., Any]
RULES: dict[str, Rule] = {}


class NoRule(Exception):  # noqa: N818 (not an error: the op is called as a program of its own)
    """The op's form has no counterpart."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Registers the rule of one op."""

    def register(function: Rule) -> Rule:
        if name in RULES:
            raise TypeError(
                f"[convert] needs one rule per op; got a second one for {name!r}. Remove one."
            )
        RULES[name] = function
        return function

    return register


_UNARY = {
    "abs": lax.abs,
    "cbrt": lax.cbrt,
    "ceil": lax.ceil,
    "cosine": lax.cos,
    "count_leading_zeros": lax.clz,
    "exponential": lax.exp,
    "exponential_minus_one": lax.expm1,
    "floor": lax.floor,
    "imag": lax.imag,
    "is_finite": lax.is_finite,
    "log": lax.log,
    "log_plus_one": lax.log1p,
    "logistic": lax.logistic,
    "negate": lax.neg,
    "not": lax.bitwise_not,
    "popcnt": lax.population_count,
    "real": lax.real,
    "round_nearest_afz": partial(lax.round, rounding_method=lax.RoundingMethod.AWAY_FROM_ZERO),
    "round_nearest_even": partial(lax.round, rounding_method=lax.RoundingMethod.TO_NEAREST_EVEN),
    "rsqrt": lax.rsqrt,
    "sign": lax.sign,
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "tan": lax.tan,
    "tanh": lax.tanh,
    "chlo.erf": lax.erf,
    "chlo.erfc": lax.erfc,
    "chlo.erf_inv": lax.erf_inv,
}
_BINARY = {
    "add": lax.add,
    "and": lax.bitwise_and,
    "atan2": lax.atan2,
    "complex": lax.complex,
    "divide": lax.div,
    "maximum": lax.max,
    "minimum": lax.min,
    "multiply": lax.mul,
    "or": lax.bitwise_or,
    "power": lax.pow,
    "remainder": lax.rem,
    "shift_left": lax.shift_left,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "shift_right_logical": lax.shift_right_logical,
    "subtract": lax.sub,
    "xor": lax.bitwise_xor,
}
#: What arithmetic on bools means.
_OF_BOOLS = {"add": lax.bitwise_or, "maximum": lax.bitwise_or, "multiply": lax.bitwise_and}
_OF_BOOLS["minimum"] = lax.bitwise_and
#: Ops for which `lax.reduce` has its own primitive.
_MONOIDS = frozenset({"add", "and", "maximum", "minimum", "multiply", "or"})
_COMPARISONS = {name: getattr(lax, name.lower()) for name in ("EQ", "NE", "LT", "LE", "GT", "GE")}


def _elementwise(function: Rule, of_bools: Rule | None = None) -> Rule:
    def call(op: Any, *operands: Any) -> Any:
        is_bool = operands[0].dtype == np.bool_
        return of_bools(*operands) if is_bool and of_bools else function(*operands)

    return call


for _name, _function in {**_UNARY, **_BINARY}.items():
    RULES[_name] = _elementwise(_function, _OF_BOOLS.get(_name))


@rule("constant")
def _constant(op: Any) -> Any:
    if op.dtypes[0].kind == "c":
        raise NoRule
    value = np.asarray(elements(op.operation.attributes["value"]))
    if value.ndim and value.size and not any(value.strides):  # one element everywhere
        return jnp.full(value.shape, _within(value[(0,) * value.ndim], op.result_dtype))
    return _within(value, op.result_dtype)


def _within(value: Any, dtype: np.dtype[Any]) -> Any:
    """The constant in that dtype; finite numbers stay finite, such as a mask's -1e9 in float16."""
    if value.dtype == dtype or dtype != np.float16:
        return np.asarray(value, dtype)
    most = np.finfo(dtype).max
    return np.where(np.isfinite(value), np.clip(value, -most, most), value).astype(dtype)


@rule("iota")
def _iota(op: Any) -> Any:
    return lax.broadcasted_iota(op.result_dtype, op.shapes[0], op.attrs["iota_dimension"])


@rule("convert")
def _convert(op: Any, x: Any) -> Any:
    return lax.convert_element_type(x, op.result_dtype)


@rule("compare")
def _compare(op: Any, x: Any, y: Any) -> Any:
    if op.attrs.get("compare_type") == "TOTALORDER":
        raise NoRule
    return _COMPARISONS[op.attrs["comparison_direction"]](x, y)


@rule("select")
def _select(op: Any, which: Any, on_true: Any, on_false: Any) -> Any:
    return lax.select(which, on_true, on_false)


@rule("clamp")
def _clamp(op: Any, low: Any, x: Any, high: Any) -> Any:
    return lax.clamp(low, x, high)


@rule("optimization_barrier")
def _barrier(op: Any, *operands: Any) -> Any:
    return lax.optimization_barrier(list(operands))


# Shapes ------------------------------------------------------------------------------------------


@rule("broadcast_in_dim")
def _broadcast(op: Any, x: Any) -> Any:
    return lax.broadcast_in_dim(x, op.shapes[0], op.attrs["broadcast_dimensions"])


@rule("reshape")
def _reshape(op: Any, x: Any) -> Any:
    return lax.reshape(x, op.shapes[0])


@rule("transpose")
def _transpose(op: Any, x: Any) -> Any:
    return lax.transpose(x, op.attrs["permutation"])


@rule("reverse")
def _reverse(op: Any, x: Any) -> Any:
    return lax.rev(x, op.attrs["dimensions"])


@rule("concatenate")
def _concatenate(op: Any, *operands: Any) -> Any:
    return lax.concatenate(operands, op.attrs["dimension"])


@rule("pad")
def _pad(op: Any, x: Any, value: Any) -> Any:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return lax.pad(x, value, list(zip(*(op.attrs[name] for name in names), strict=True)))


@rule("slice")
def _slice(op: Any, x: Any) -> Any:
    return lax.slice(x, *(op.attrs[name] for name in ("start_indices", "limit_indices", "strides")))


@rule("dynamic_slice")
def _dynamic_slice(op: Any, x: Any, *starts: Any) -> Any:
    return lax.dynamic_slice(x, starts, op.attrs["slice_sizes"])


@rule("dynamic_update_slice")
def _dynamic_update_slice(op: Any, x: Any, update: Any, *starts: Any) -> Any:
    return lax.dynamic_update_slice(x, update, starts)


@rule("gather")
def _gather(op: Any, x: Any, indices: Any) -> Any:
    numbers = op.attrs["dimension_numbers"]
    if numbers.index_vector_dim != indices.ndim - 1:
        raise NoRule
    dimensions = lax.GatherDimensionNumbers(
        offset_dims=tuple(numbers.offset_dims),
        collapsed_slice_dims=tuple(numbers.collapsed_slice_dims),
        start_index_map=tuple(numbers.start_index_map),
        operand_batching_dims=tuple(numbers.operand_batching_dims),
        start_indices_batching_dims=tuple(numbers.start_indices_batching_dims),
    )
    sorted_indices = bool(op.attrs.get("indices_are_sorted", False))
    return lax.gather(
        x,
        indices,
        dimensions,
        op.attrs["slice_sizes"],
        indices_are_sorted=sorted_indices,
        mode=lax.GatherScatterMode.CLIP,
    )


# Sums --------------------------------------------------------------------------------------------


@rule("dot_general")
def _dot_general(op: Any, x: Any, y: Any) -> Any:
    numbers = op.attrs["dot_dimension_numbers"]
    contracted = numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions
    batch = numbers.lhs_batching_dimensions, numbers.rhs_batching_dimensions
    if "algorithm" in op.attrs:
        raise NoRule
    return lax.dot_general(
        x,
        y,
        (tuple(map(tuple, contracted)), tuple(map(tuple, batch))),
        precision=_precision(op),
        preferred_element_type=op.result_dtype,
    )


@rule("convolution")
def _convolution(op: Any, x: Any, kernel: Any) -> Any:
    attrs, numbers = op.attrs, op.attrs["dimension_numbers"]
    spatial = len(numbers.input_spatial_dimensions)
    if any(np.ravel(attrs.get("window_reversal", False))):
        raise NoRule
    dimensions = lax.ConvDimensionNumbers(
        (
            numbers.input_batch_dimension,
            numbers.input_feature_dimension,
            *numbers.input_spatial_dimensions,
        ),
        (
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            *numbers.kernel_spatial_dimensions,
        ),
        (
            numbers.output_batch_dimension,
            numbers.output_feature_dimension,
            *numbers.output_spatial_dimensions,
        ),
    )
    return lax.conv_general_dilated(
        x,
        kernel,
        attrs.get("window_strides") or (1,) * spatial,
        _pairs(attrs.get("padding"), spatial),
        lhs_dilation=attrs.get("lhs_dilation"),
        rhs_dilation=attrs.get("rhs_dilation"),
        dimension_numbers=dimensions,
        feature_group_count=attrs["feature_group_count"],
        batch_group_count=attrs["batch_group_count"],
        precision=_precision(op),
        preferred_element_type=op.result_dtype,
    )


@rule("reduce")
def _reduce(op: Any, *operands: Any) -> Any:
    half = len(operands) // 2
    inits = list(operands[half:])
    combine = _combine(op, inits)
    if half > 1:
        return lax.reduce(list(operands[:half]), inits, combine, op.attrs["dimensions"])
    return lax.reduce(operands[0], inits[0], combine, op.attrs["dimensions"])


@rule("reduce_window")
def _reduce_window(op: Any, *operands: Any) -> Any:
    half, attrs = len(operands) // 2, op.attrs
    window = attrs["window_dimensions"]
    ones = (1,) * len(window)
    arrays, inits = list(operands[:half]), list(operands[half:])
    combine = _combine(op, inits)
    return lax.reduce_window(
        arrays if half > 1 else arrays[0],
        inits if half > 1 else inits[0],
        combine,
        window,
        attrs.get("window_strides") or ones,
        _pairs(attrs.get("padding"), len(window)),
        attrs.get("base_dilations") or ones,
        attrs.get("window_dilations") or ones,
    )


def _combine(op: Any, inits: Sequence[Any]) -> Rule:
    """The region as a function of scalars, or of lists of them, in the dtypes of `inits`."""
    inner = [each.operation.name for each in op.operation.regions[0].blocks[0].operations]
    single = inner[0].removeprefix("stablehlo.") if len(inner) == 2 else ""
    if len(inits) == 1 and single in _MONOIDS:
        is_bool = inits[0].dtype == np.bool_
        return _OF_BOOLS.get(single, _BINARY[single]) if is_bool else _BINARY[single]

    def combine(x: Any, y: Any) -> Any:
        given = (x, y) if len(inits) == 1 else (*x, *y)
        made = op.run_region(0, *given)
        made = [lax.convert_element_type(v, i.dtype) for v, i in zip(made, inits, strict=True)]
        return made[0] if len(inits) == 1 else made

    return combine


def _pairs(padding: Any, rank: int) -> list[tuple[int, int]]:
    if padding is None:
        return [(0, 0)] * rank
    return [(int(low), int(high)) for low, high in np.asarray(padding)]


def _precision(op: Any) -> Any:
    names = op.attrs.get("precision_config") or ()
    found = [str(name).rpartition(" ")[2].rstrip(">") for name in names]
    return tuple(getattr(lax.Precision, name) for name in found) if found else None


@rule("chlo.top_k")
def _top_k(op: Any, x: Any) -> Any:
    return lax.top_k(x, op.shapes[0][-1])


# Control flow ------------------------------------------------------------------------------------


@rule("while")
def _while(op: Any, *operands: Any) -> Any:
    dtypes = [x.dtype for x in operands]

    def body(state: list[Any]) -> list[Any]:
        made = op.run_region(1, *state)
        return [lax.convert_element_type(x, d) for x, d in zip(made, dtypes, strict=True)]

    return lax.while_loop(lambda state: op.run_region(0, *state)[0], body, list(operands))


@rule("case")
def _case(op: Any, index: Any) -> Any:
    branches = [partial(_branch, op, i) for i in range(len(op.operation.regions))]
    # An index out of bounds selects the last branch.
    last = len(branches) - 1
    inside = (index >= 0) & (index <= last)
    return lax.switch(lax.select(inside, index, jnp.full_like(index, last)), branches)


@rule("if")
def _if(op: Any, which: Any) -> Any:
    return lax.cond(which, partial(_branch, op, 0), partial(_branch, op, 1))


def _branch(op: Any, index: int) -> list[Any]:
    made = op.run_region(index)
    return [lax.convert_element_type(x, d) for x, d in zip(made, op.dtypes, strict=True)]
