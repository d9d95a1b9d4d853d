"""Elementwise ops: rows of a table, built into the expression of one fused map."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.elements import first
from ipujax.compiler.ir import Block, Op, Shape, Value, declare
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder, broadcast_to
from ipujax.compiler.rules.registry import rule
from ipujax.compiler.rules.rounding_keys import stream_of

declare("map", partition="elementwise")
declare("fused", replicated="the compiler makes it after partitioning")

Build: TypeAlias = "Callable[[Op, Sequence[ipu.Expr]], ipu.Expr]"


class Row:
    """How one op is built, and its traits in addition to those that all of these ops have.

    exact: on bfloat16 operands the result needs no rounding.
    """

    def __init__(self, build: Build, exact: bool = False, **traits: Any):
        self.build = build
        self.exact = exact
        self.traits = traits


@functools.cache
def _expression(name: str) -> Any:
    """The expression class of that name in popops, else in popx."""
    return getattr(ipu.popops.expr, name, None) or getattr(ipu.popx.expr, name)


def _call(name: str) -> Build:
    return lambda op, args: _expression(name)(*args)


def _by_kind(**names: str) -> Build:
    """An expression for each kind of the first operand: `b` bool, `f` float, `i` or `u` integer."""
    builds = {kind: _call(name) for kind, name in names.items()}

    def build(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
        kind = DTYPES[op.operands[0].dtype].kind
        chosen = builds.get(kind, builds.get("other"))
        if chosen is None:
            raise AssertionError(f"{op.name} of {op.operands[0]!r}")
        return chosen(op, args)

    return build


def poplar_type(dtype: str) -> ipu.Type:
    """The Poplar type in which elements are computed."""
    return getattr(ipu.poplar, DTYPES[dtype].poplar)


def typed_constant(value: Value) -> ipu.Expr:
    """A splat constant as an expression of its own type."""
    assert value.const is not None
    scalar = first(value.const)[0]
    plain = float(scalar) if DTYPES[value.dtype].kind == "f" else int(scalar)
    return ipu.popops.expr.Const(poplar_type(value.dtype), plain)


def _convert(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    (x,) = args
    source, target = op.operands[0].dtype, op.results[0].dtype
    if target == "i1":
        return ipu.popops.expr.NotEqual(x, ipu.popops.expr.Const(poplar_type(source), 0))
    if poplar_type(source) != poplar_type(target):
        x = ipu.popops.expr.Cast(x, poplar_type(target))
    if target == "bf16" and source not in ("bf16", "i8", "ui8", "i1"):
        x = ipu.popx.expr.RoundToBFloat16(x)
    return x


_COMPARE = {"EQ": "Equal", "NE": "NotEqual", "LT": "Lt", "LE": "Lte", "GT": "Gt", "GE": "Gte"}
#: The integer type of equal size, and how far its sign bit is from the right.
_BITS = {"f64": ("LONGLONG", 63), "f32": ("INT", 31), "bf16": ("INT", 31), "f16": ("SHORT", 15)}


def _compare(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    if op.attrs.get("compare_type") == "TOTALORDER":
        args = [_total_order(op.operands[0].dtype, x) for x in args]
    return _expression(_COMPARE[op.attrs["comparison_direction"]])(*args)


def _total_order(dtype: str, x: ipu.Expr) -> ipu.Expr:
    """An integer that orders as the float does: -NaN < -inf < ... < -0 < 0 < ... < NaN."""
    if dtype not in _BITS:
        return x
    name, shift = _BITS[dtype]
    integer = getattr(ipu.poplar, name)
    const = ipu.popops.expr.Const
    bits = ipu.popx.expr.Bitcast(x, integer)
    sign = ipu.popops.expr.ShrSE(bits, const(integer, shift))
    flip = ipu.popops.expr.BitwiseAnd(sign, const(integer, (1 << shift) - 1))
    return ipu.popops.expr.BitwiseXor(bits, flip)


def _select(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    predicate, on_true, on_false = args
    return ipu.popops.expr.Select(on_true, on_false, predicate)


def _clamp(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    low, x, high = args
    if op.results[0].dtype == "i1":
        return ipu.popops.expr.And(ipu.popops.expr.Or(x, low), high)
    return ipu.popops.expr.Clamp(x, low, high)


def _reduce_precision(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    return ipu.popx.expr.ReducePrecision(
        args[0], op.attrs["exponent_bits"], op.attrs["mantissa_bits"]
    )


def _multiply_wide(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    """A float16 or bfloat16 times a float32, rounded once to the first one's dtype."""
    wide, dtype = ipu.poplar.FLOAT, poplar_type(op.results[0].dtype)
    product = ipu.popops.expr.Mul(ipu.popops.expr.Cast(args[0], wide), args[1])
    return ipu.popops.expr.Cast(product, dtype)


def _bitcast(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    source, target = op.operands[0].dtype, op.results[0].dtype
    (x,) = args
    if source == "bf16":
        x = ipu.popx.expr.ToBFloat16(x)
    if target == "bf16":
        if source not in ("bf16", "ui16"):
            x = ipu.popx.expr.Bitcast(x, ipu.poplar.UNSIGNED_SHORT)
        return ipu.popx.expr.FromBFloat16(x)
    if source == "bf16" and target == "ui16":
        return x
    return ipu.popx.expr.Bitcast(x, poplar_type(target))


#: Every op that is computed element by element: name -> row.
ELEMENTWISE: dict[str, Row] = {
    # Conversions.
    "bitcast": Row(_bitcast, exact=True),  # a bitcast_convert between types of one size
    "convert": Row(_convert, exact=True, integers64=True),
    "reduce_precision": Row(_reduce_precision),
    # One operand.
    "abs": Row(_call("Abs"), exact=True),
    "cbrt": Row(_call("Cbrt")),
    "ceil": Row(_call("Ceil"), exact=True),
    "cosine": Row(_call("Cos")),
    "count_leading_zeros": Row(_call("Clz"), sees_bits=True),
    "exponential": Row(_call("Exp")),
    "exponential_minus_one": Row(_call("Expm1")),
    "floor": Row(_call("Floor"), exact=True),
    "is_finite": Row(_call("IsFinite"), exact=True),
    "log": Row(_call("Log")),
    "log_plus_one": Row(_call("Log1p")),
    "logistic": Row(_call("Sigmoid")),
    "negate": Row(_call("Neg"), exact=True),
    "not": Row(_by_kind(b="Not", other="BitwiseNot")),
    "popcnt": Row(_call("Popcount"), sees_bits=True),
    "round_nearest_afz": Row(_call("Round"), exact=True),
    "round_nearest_even": Row(_call("NearbyInt"), exact=True),
    "rsqrt": Row(_call("Rsqrt")),
    "sign": Row(_call("Signum"), exact=True),
    "sine": Row(_call("Sin")),
    "sqrt": Row(_call("Sqrt")),
    "tan": Row(_call("Tan")),
    "tanh": Row(_call("Tanh")),
    # One operand, arriving as composites.
    "chlo.acos": Row(_call("Acos")),
    "chlo.acosh": Row(_call("Acosh")),
    "chlo.asin": Row(_call("Asin")),
    "chlo.asinh": Row(_call("Asinh")),
    "chlo.atanh": Row(_call("Atanh")),
    "chlo.cosh": Row(_call("Cosh")),
    "chlo.erf": Row(_call("Erf")),
    "chlo.erfc": Row(_call("Erfc")),
    "chlo.sinh": Row(_call("Sinh")),
    # Made by the compiler (passes/activations.py): of x; of x and the result's gradient.
    "gelu": Row(_call("Gelu")),
    "gelu_erf": Row(_call("GeluErf")),
    "gelu_erf_gradient": Row(_call("GeluErfGradient")),
    "gelu_gradient": Row(_call("GeluGradient")),
    "multiply_wide": Row(_multiply_wide),  # simplifiers/arithmetic.py makes it
    # Two operands.
    "add": Row(_by_kind(b="Or", other="Add"), identity="zero"),
    "and": Row(_by_kind(b="And", other="BitwiseAnd"), identity="ones"),
    "atan2": Row(_call("Atan2")),
    "compare": Row(_compare, exact=True),
    "divide": Row(_call("Divide")),
    "maximum": Row(_by_kind(b="Or", other="Max"), exact=True, chooses=True, identity="lowest"),
    "minimum": Row(_by_kind(b="And", other="Min"), exact=True, chooses=True, identity="highest"),
    "multiply": Row(_by_kind(b="And", other="Mul"), identity="one"),
    "or": Row(_by_kind(b="Or", other="BitwiseOr"), identity="zero"),
    "power": Row(_call("Pow")),
    "remainder": Row(_call("Rem"), exact=True),
    "shift_left": Row(_call("Shl")),
    "shift_right_arithmetic": Row(_call("ShrSE")),
    "shift_right_logical": Row(_call("Shr")),
    "subtract": Row(_call("Sub")),
    "xor": Row(_by_kind(b="NotEqual", other="BitwiseXor")),
    # Three operands.
    "clamp": Row(_clamp, exact=True, chooses=True, scalars=True),
    "select": Row(_select, exact=True, moves=True, scalars=True, complex="parts"),
}


def build(op: Op, args: Sequence[ipu.Expr]) -> ipu.Expr:
    """The op's expression over its operands' expressions, rounded to the result's precision."""
    row = ELEMENTWISE[op.name]
    expression = row.build(op, args)
    if op.results[0].dtype == "bf16" and not row.exact:
        expression = ipu.popx.expr.RoundToBFloat16(expression)
    stream = stream_of(op)
    return expression if stream is None else ipu.popx.expr.Rounded(expression, stream)


def build_all(ops: Sequence[Op], known: dict[Value, ipu.Expr]) -> None:
    """Adds the ops' expressions, in order; `known` holds those of their inputs."""
    for op in ops:
        args = []
        for value in op.operands:
            expression = known.get(value)
            if expression is None:
                expression = known[value] = typed_constant(value)
            args.append(expression)
        known[op.results[0]] = build(op, args)


def body_expressions(block: Block) -> list[ipu.Expr]:
    """A region over single elements (of a reduction, a sort, a scatter) as expressions.

    Placeholder n is the block's n-th argument. `body_refusals` says which regions this holds for.
    """
    place = ipu.popops.expr.PlaceHolder
    return body_of(block, [place(i + 1) for i in range(len(block.args))])


def body_of(block: Block, arguments: Sequence[ipu.Expr]) -> list[ipu.Expr]:
    """The same region over other expressions."""
    known = dict(zip(block.args, arguments, strict=True))
    build_all(block.ops, known)
    return [known[value] if value in known else typed_constant(value) for value in block.results]


def body_refusals(block: Block, op: Op) -> list[tuple[str, str, str]]:
    """Ops of a region that are not arithmetic on its arguments: (op, reason, source line)."""
    own = set(block.args)
    found = []
    for inner in block.ops:
        line = inner.source.line or op.source.line
        if not inner.traits.elementwise:
            reason = f"the body of {op.name} may only compute on its elements"
            found.append((inner.name, reason, line))
        if any(value not in own and not value.is_splat for value in inner.operands):
            reason = "it uses an array of outside; pass it as an operand"
            found.append((f"body of {op.name}", reason, line))
        own.update(inner.results)
    return found


def _lower_fused(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    body: list[Op] = op.attrs["body"]
    shape = body[0].results[0].shape
    place = ipu.popops.expr.PlaceHolder
    known: dict[Value, ipu.Expr] = {}
    tensors = []
    inputs = op.operands or [_splat_of(shape, body)]
    for value in inputs:
        tensors.append(builder.tensor(value))  # map broadcasts scalars
        known[value] = place(len(tensors))
    # Converting between types with one representation gives the operand itself.
    operands = {
        id(known[value]): tensor
        for value, tensor in zip(inputs, tensors, strict=True)
        if value.shape == shape
    }
    if all(tuple(tensor.shape) != shape for tensor in tensors):
        # A map takes its shape from a tensor; here all are scalars, such as a select's predicate.
        tensors[0] = broadcast_to(tensors[0].reshape([1] * len(shape)), shape)
    build_all(body, known)
    expressions = [known[value] for value in op.results]
    computed = [each for each in expressions if id(each) not in operands]
    results = iter(builder.map(computed, tensors, builder.debug(op)) if computed else ())
    return [operands[id(each)] if id(each) in operands else next(results) for each in expressions]


def _splat_of(shape: Shape, body: list[Op]) -> Value:
    """An operand for a body that only works on constants: a map takes its shape from one."""
    return next(v for op in body for v in op.operands if v.shape == shape)


def _lower_single(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """An op that was not fused: lowered as a fused op of one."""
    operands = list(dict.fromkeys(value for value in op.operands if not value.is_splat))
    single = Op("fused", operands, {"body": [op]}, op.source)
    single.results = op.results
    return _lower_fused(builder, single)


@rule("map")
def map_elements(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Applies the body, a function of single elements, to all elements of the operands."""
    tensors, debug = builder.operands(op), builder.debug(op)
    return builder.map(body_expressions(op.regions[0]), tensors, debug)


for _name, _row in ELEMENTWISE.items():
    declare(_name, elementwise=True, partition="elementwise", **_row.traits)
rule(*ELEMENTWISE)(_lower_single)
rule("fused")(_lower_fused)
