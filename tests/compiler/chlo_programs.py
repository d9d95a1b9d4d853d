"""Programs of one op of CHLO each, with attributes at unusual values, and what they must give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from scipy import special

Arrays = list[np.ndarray]

_TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f64": np.float64,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "i1": np.bool_,
    "complex<f32>": np.complex64,
}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_INF, _NAN = np.inf, np.nan
SPECIAL = [-_INF, -3e38, -2.5, -1, -0.5, -1e-30, -0.0, 0.0, 0.25, 1, 1.5, 3.75, 20, 90, 3e38]
SPECIAL += [_INF, _NAN]


@dataclass(frozen=True)
class Program:
    """`op` alone in a program of `arguments`; jaxlib itself refuses those without `wanted`."""

    op: str
    label: str
    text: str
    arguments: Arrays
    wanted: Arrays | None
    rtol: float = 0.0
    atol: float = 0.0


def type_of(shape: Sequence[int], kind: str) -> str:
    return "tensor<" + "x".join([*map(str, shape), kind]) + ">"


def _typed(array: Any) -> str:
    return type_of(np.shape(array), _NAMES[np.asarray(array).dtype])


def _program(
    name: str,
    arguments: Sequence[Any],
    wanted: Sequence[Any] | None,
    results: Sequence[str],
    attributes: str = "",
    region: str = "",
    label: str = "",
    **tolerances: float,
) -> Program:
    arrays = [np.asarray(a) for a in arguments]
    types = [_typed(a) for a in arrays]
    letters = [f"%a{i}" for i in range(len(arrays))]
    signature = ", ".join(f"{letter}: {kind}" for letter, kind in zip(letters, types, strict=True))
    made = [f"%0#{i}" for i in range(len(results))] if len(results) > 1 else ["%0"]
    left = f"%0:{len(results)}" if len(results) > 1 else "%0"
    returned = ", ".join(results)
    text = (
        f"func.func @main({signature}) -> ({returned}) {{\n"
        f'{left} = "chlo.{name}"({", ".join(letters)}) {attributes} {region} : '
        f"({', '.join(types)}) -> ({returned})\n"
        f"return {', '.join(made)} : {returned}\n}}"
    )
    values = None if wanted is None else [np.asarray(w) for w in wanted]
    return Program(f"chlo.{name}", label, text, arrays, values, **tolerances)


# One element after the other ---------------------------------------------------------------------


def _mulhi(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    bits = 8 * a.dtype.itemsize
    high = [(int(x) * int(y)) >> bits for x, y in zip(a, b, strict=True)]
    return np.array(high, a.dtype)


def _polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(n == 0, special.digamma(x), special.polygamma(n.astype(int), x))


_UNARY: dict[str, Callable[[Any], Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "bessel_i1e": special.i1e,
    "conj": np.conj,
    "cosh": np.cosh,
    "digamma": lambda x: np.where(x == 0, _NAN, special.digamma(x)),
    "erf": special.erf,
    "erf_inv": special.erfinv,
    "erfc": special.erfc,
    "is_inf": np.isinf,
    "is_neg_inf": np.isneginf,
    "is_pos_inf": np.isposinf,
    "lgamma": special.gammaln,
    "sinh": np.sinh,
    "square": np.square,
    "tan": np.tan,
}
#: Where jaxlib's definition of an op in float32 is right to fewer digits, or not at all.
_RTOL = {"erf_inv": 1e-5, "digamma": 2e-5, "lgamma": 2e-5, "bessel_i1e": 1e-5, "erfc": 2e-6}
_LEFT_OUT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "bessel_i1e": lambda x: np.abs(x) > 1e30,
    "digamma": lambda x: (x < -1e30) | ((x < 0) & (x > -1e-20)),
    "lgamma": lambda x: np.abs(x) > 1e37,
    "tan": lambda x: np.isfinite(x) & (np.abs(x) > 1e30),
}


def _unary(name: str, kind: str) -> Program:
    with np.errstate(all="ignore"):
        x = np.array(SPECIAL).astype(_TYPES[kind])
        if name in _LEFT_OUT:
            x = x[~_LEFT_OUT[name](x.astype(np.float64))]
        wanted = np.asarray(_UNARY[name](x.astype(np.float64)))
        made = wanted if wanted.dtype == bool else wanted.astype(x.dtype)
    rtol = {"f32": _RTOL.get(name, 2e-6), "f16": 2e-3, "bf16": 1e-2, "f64": 1e-12}[kind]
    return _program(name, [x], [made], [_typed(made)], label=kind, rtol=rtol, atol=1e-6)


def _binary(name: str, f: Callable[..., Any], a: Any, b: Any, label: str = "") -> Program:
    with np.errstate(all="ignore"):
        wanted = np.asarray(f(a, b)).astype(np.asarray(a).dtype)
    return _program(name, [a, b], [wanted], [_typed(wanted)], label=label, rtol=2e-5, atol=1e-6)


def elementwise() -> list[Program]:
    made = [_unary(name, kind) for name in _UNARY for kind in ("f32", "bf16")]
    made += [_unary(name, kind) for name in ("acosh", "erf", "sinh") for kind in ("f16", "f64")]
    z = np.array([1 + 2j, complex(-0.0, 0.0), complex(_INF, -_INF)], np.complex64)
    made.append(_program("conj", [z], [np.conj(z)], [_typed(z)], label="complex"))
    z = np.array([0.5 + 0.25j, -2 + 1j], np.complex64)
    angle = np.arcsin(z)  # its real part is atan2(re z, re kernel)
    kernel = abs(z.real / np.tan(angle.real)) + 1j * abs(angle.imag)
    made.append(
        _program("_asin_acos_kernel", [z], [kernel.astype(z.dtype)], [_typed(z)], rtol=1e-6)
    )
    x = np.array([0, -0.0, 1, -1, _INF, 3e38, 1e-45, 2, _NAN, 1], np.float32)
    y = np.array([1, -1, 2, _INF, 0, _INF, 0, 2, 0, _NAN], np.float32)
    made.append(_binary("next_after", np.nextafter, x, y))
    n, q = np.array([0, 1, 2, 5, 9], np.float32), np.array([0.5, 2.5, 7, 30, 1.25], np.float32)
    made.append(_binary("polygamma", _polygamma, n, q))
    s, q = np.array([2, 1.5, 8, 3, 30], np.float32), np.array([1, 0.25, 2.5, 40, 1], np.float32)
    made.append(_binary("zeta", special.zeta, s, q))
    for kind in ("i8", "i32", "ui32", "i64", "ui64"):
        low, high = np.iinfo(_TYPES[kind]).min, np.iinfo(_TYPES[kind]).max
        a = np.array([low, low, high, high, 7, high // 3], _TYPES[kind])
        b = np.array([low, high, high, 2, 9, 12], _TYPES[kind])
        made.append(_binary("mulhi", _mulhi, a, b, kind))
    return made


# Broadcasts and constants ------------------------------------------------------------------------

_INTS = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "shift_right_logical": lambda a, b: (a.view(np.uint32) >> b.view(np.uint32)).view(np.int32),
}
_FLOATS = {
    "add": np.add,
    "atan2": np.arctan2,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "next_after": np.nextafter,
    "polygamma": lambda a, b: _polygamma(np.broadcast_to(a, (3, 4)), b),
    "power": np.power,
    "remainder": np.fmod,
    "subtract": np.subtract,
    "zeta": special.zeta,
}


def broadcasts() -> list[Program]:
    """Operands of unequal ranks, and dimensions of one element."""
    made = []
    wide = np.arange(12, dtype=np.float32).reshape(3, 4) + 2
    for name, f in _FLOATS.items():
        made.append(_binary(f"broadcast_{name}", f, wide, np.float32([1, 2, 3, 0.5]), "right"))
    for name, f in _INTS.items():
        a = np.array([[-9], [5], [1 << 30]], np.int32)
        b = np.array([[1, 2, 3, 31]], np.int32)
        made.append(_binary(f"broadcast_{name}", f, a, b, "both"))
    narrow = np.float32([3, 5, 7, 11])
    compare = "{comparison_direction = #chlo<comparison_direction LT>}"
    lower = [type_of((3, 4), "i1")]
    made.append(
        _program("broadcast_compare", [wide, narrow], [wide < narrow], lower, attributes=compare)
    )
    z = (wide + 1j * narrow).astype(np.complex64)
    made.append(_program("broadcast_complex", [wide, narrow], [z], [_typed(z)]))
    made.append(_program("broadcast_select", [np.bool_(True), wide, narrow], None, [_typed(wide)]))
    filled = np.full((3, 4), 2.5, np.float32)
    value = "{value = 2.5 : f32}"
    made.append(_program("constant_like", [wide], [filled], [_typed(wide)], attributes=value))
    made.append(
        _program("constant", [], [wide[0]], [_typed(wide[0])],
                 attributes="{value = dense<[2.0, 3.0, 4.0, 5.0]> : tensor<4xf32>}")
    )  # fmt: skip
    return made


# Scans -------------------------------------------------------------------------------------------

_BODY = """({
  ^bb0(%x: tensor<2xf32>, %n: tensor<2xi32>, %sum: tensor<2xf32>, %last: tensor<2xi32>):
    %half = stablehlo.constant dense<0.5> : tensor<2xf32>
    %scaled = stablehlo.multiply %sum, %half : tensor<2xf32>
    %next = stablehlo.add %x, %scaled : tensor<2xf32>
    %up = stablehlo.compare GT, %n, %last : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    stablehlo.return %sum, %up, %next, %n : tensor<2xf32>, tensor<2xi1>, tensor<2xf32>, tensor<2xi32>
})"""  # noqa: E501


def _scanned(x: np.ndarray, n: np.ndarray, carry: Arrays, is_reverse: bool) -> Arrays:
    """Exclusive sums that halve, and where n grows, along dimension 1."""
    total, last = carry
    sums, ups = np.empty_like(x), np.empty(n.shape, bool)
    order = range(x.shape[1])
    for i in reversed(order) if is_reverse else order:
        sums[:, i], ups[:, i] = total, n[:, i] > last
        total, last = x[:, i] + total * np.float32(0.5), n[:, i]
    return [sums, ups, total, last]


def _scan(is_reverse: bool) -> Program:
    """Two inputs and two carries along the second dimension; carries start away from zero."""
    x = np.float32([[1, 2, 3, _NAN, 5], [_INF, 2, -1, 0, 4]])
    n = np.int32([[5, 1, 2, 2, 9], [-1, 3, 3, 4, 0]])
    carry = [np.float32([7, -2]), np.int32([2, 1])]
    wanted = _scanned(x, n, carry, is_reverse)
    attributes = (
        f"<{{dimension = 1 : i64, is_reverse = {str(is_reverse).lower()}, operandSegmentSizes = "
        "array<i32: 2, 2>, resultSegmentSizes = array<i32: 2, 2>}>"
    )
    return _program(
        "scan", [x, n, *carry], wanted, [_typed(w) for w in wanted], attributes, _BODY,
        f"reverse {is_reverse}",
    )  # fmt: skip


def _sum_scan(label: str, attributes: str, wanted: Any) -> Program:
    body = """({
      ^bb0(%x: tensor<f32>, %c: tensor<f32>):
        %s = stablehlo.add %x, %c : tensor<f32>
        stablehlo.return %s, %s : tensor<f32>, tensor<f32>
    })"""
    x, zero = np.float32([1, 2, 3, 4]), np.float32(0)
    segments = "operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
    attributes = f"<{{dimension = 0 : i64, {attributes}, {segments}}}>"
    results = [np.float32(wanted), np.float32(10)]
    return _program(
        "scan", [x, zero], results, [_typed(w) for w in results], attributes, body, label
    )


def _edges() -> list[Program]:
    """Only carries, and only inputs."""
    doubling = """({
      ^bb0(%c: tensor<i32>):
        %s = stablehlo.add %c, %c : tensor<i32>
        stablehlo.return %c, %s : tensor<i32>, tensor<i32>
    })"""
    carries = (
        "<{dimension = 0 : i64, scan_dim_size = 4 : i64, is_reverse = true, operandSegmentSizes = "
        "array<i32: 0, 1>, resultSegmentSizes = array<i32: 1, 1>}>"
    )
    powers = [np.int32([56, 28, 14, 7]), np.int32(112)]
    negating = """({
      ^bb0(%x: tensor<2xf32>):
        %s = stablehlo.negate %x : tensor<2xf32>
        stablehlo.return %s : tensor<2xf32>
    })"""
    inputs = (
        "<{dimension = 1 : i64, is_reverse = true, operandSegmentSizes = array<i32: 1, 0>, "
        "resultSegmentSizes = array<i32: 1, 0>}>"
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    return [
        _program("scan", [np.int32(7)], powers, [_typed(w) for w in powers], carries, doubling,
                 "only carries"),
        _program("scan", [x], [-x], [_typed(x)], inputs, negating, "only inputs"),
    ]  # fmt: skip


def scans() -> list[Program]:
    backwards = [10, 9, 7, 4]
    return [
        _scan(False),
        _scan(True),
        _sum_scan("associative", "is_associative = true, is_reverse = true", backwards),
        _sum_scan("not associative", "is_associative = false, is_reverse = true", backwards),
        _sum_scan("forwards", "is_associative = true", [1, 3, 6, 10]),
        *_edges(),
    ]


# top_k and ragged products -----------------------------------------------------------------------


def _top_k(values: Any, kind: str, k: int) -> Program:
    """NaN above infinity, 0 above -0; of equal numbers the first one first."""
    x = np.array(values).astype(_TYPES[kind])
    if x.dtype.kind in "iu":
        key = x.astype(object)
    else:
        wide = x.astype(np.float64)
        bits = wide.view(np.int64)
        key = np.where(bits < 0, np.iinfo(np.int64).max ^ bits, bits)
    order = np.array([sorted(range(len(row)), key=lambda i: -int(row[i]))[:k] for row in key])
    order = order.reshape(len(x), k).astype(np.int32)
    wanted = [np.take_along_axis(x, order, -1), order]
    attributes = f"<{{k = {k} : i64}}>"
    return _program(
        "top_k", [x], wanted, [_typed(w) for w in wanted], attributes, label=f"{kind} k={k}"
    )


def top_ks() -> list[Program]:
    floats = [[1, _NAN, -_INF, 1, 0.0, -0.0, _INF], [-0.0, 0.0, -1, -1, 5, -5, -_INF]]
    ints = [[3, 100, 3, 0, 7, 7, 1], [0, 0, 0, 127, 1, 2, 3]]
    made = [_top_k(floats, "f32", k) for k in (0, 1, 3, 7)]
    made += [_top_k(floats, kind, 4) for kind in ("f16", "bf16", "f64")]
    return made + [_top_k(ints, kind, 4) for kind in ("i8", "ui8", "i32", "ui32", "i64")]


def _ragged(label: str, numbers: Sequence[Sequence[int]], wanted: str, *arrays: Any) -> Program:
    names = ("lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting", "lhs_ragged")
    rows = [f"{n}_dimensions = {list(d)}" for n, d in zip(names, numbers, strict=False)]
    rows.append(f"rhs_group_dimensions = {list(numbers[5])}")
    attributes = f"{{ragged_dot_dimension_numbers = #chlo.ragged_dot<{', '.join(rows)}>}}"
    lhs, rhs, sizes = arrays
    ends = np.cumsum(sizes, -1)
    count = lhs.shape[numbers[4][0]]
    place = np.arange(count)
    member = (place < ends[..., None]) & (place >= (ends - sizes)[..., None])
    result = np.einsum(wanted, lhs, rhs, member.astype(np.float32)).astype(np.float32)
    return _program(
        "ragged_dot", arrays, [result], [_typed(result)], attributes, label=label, rtol=1e-5
    )


def ragged_dots() -> list[Program]:
    """Each of its three modes, with and without batches; empty groups, and rows of no group."""
    random = np.random.default_rng(0)
    make = lambda *shape: random.standard_normal(shape).astype(np.float32)  # noqa: E731
    sizes, long = np.int32([2, 0, 3]), np.int64([0, 6, 0])
    two = np.int32([[2, 0, 3], [1, 5, 0]])
    rows = ((), (), [1], [1], [0], [0])
    batched = ([0], [1], [2], [2], [1], [0])
    return [
        _ragged("rows", rows, "mk,gkn,gm->mn", make(6, 4), make(3, 4, 5), sizes),
        _ragged("rows of one group", rows, "mk,gkn,gm->mn", make(6, 4), make(3, 4, 5), long),
        _ragged("batched", batched, "bmk,gbkn,bgm->bmn", make(2, 6, 4), make(3, 2, 4, 5), two),
        _ragged("contracted", ((), (), [1], [0], [1], ()), "mk,kn,gk->gmn",
                make(4, 6), make(6, 5), sizes),
        _ragged("contracted batches", ([0], [0], [2], [1], [2], ()), "bmk,bkn,bgk->gbmn",
                make(2, 4, 6), make(2, 6, 5), two),
        _ragged("batch", ([0], [0], [2], [1], [0], ()), "bmk,bkn,gb->bmn",
                make(6, 4, 5), make(6, 5, 2), np.int32([2, 1, 3])),
    ]  # fmt: skip


PROGRAMS = [*elementwise(), *broadcasts(), *scans(), *top_ks(), *ragged_dots()]
