"""Elementwise ops over dtypes, with the values that go wrong first."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.cases.case import (
    ALL_RUNS,
    FLOATS,
    INTEGERS,
    SIGNED,
    UNSIGNED,
    Case,
    array,
    dtype_of,
)

#: function, lowest and highest argument; all are differentiable there.
_FLOAT_UNARY = {
    "abs": (lax.abs, 0.3, 3),
    "acos": (lax.acos, -0.9, 0.9),
    "acosh": (lax.acosh, 1.1, 4),
    "asin": (lax.asin, -0.9, 0.9),
    "asinh": (lax.asinh, -3, 3),
    "atan": (lax.atan, -3, 3),
    "atanh": (lax.atanh, -0.8, 0.8),
    "cbrt": (lax.cbrt, 0.2, 8),
    "ceil": (lax.ceil, -3, 3),
    "cos": (lax.cos, -6, 6),
    "cosh": (lax.cosh, -2, 2),
    "erf": (lax.erf, -2.5, 2.5),
    "erfc": (lax.erfc, -1.5, 1.5),
    "erf_inv": (lax.erf_inv, -0.8, 0.8),
    "exp": (lax.exp, -4, 4),
    "exp2": (lax.exp2, -4, 4),
    "expm1": (lax.expm1, -3, 3),
    "floor": (lax.floor, -3, 3),
    "lgamma": (lax.lgamma, 0.6, 6),
    "log": (lax.log, 0.1, 9),
    "log1p": (lax.log1p, -0.7, 5),
    "logistic": (lax.logistic, -6, 6),
    "neg": (lax.neg, -3, 3),
    "rsqrt": (lax.rsqrt, 0.2, 6),
    "round": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), -3, 3),
    "round_away": (lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), -3, 3),
    "sign": (lax.sign, -3, 3),
    "sin": (lax.sin, -6, 6),
    "sinh": (lax.sinh, -2, 2),
    "sqrt": (lax.sqrt, 0.2, 6),
    "square": (lax.square, -3, 3),
    "tan": (lax.tan, -1, 1),
    "tanh": (lax.tanh, -3, 3),
    "gelu": (jax.nn.gelu, -3, 3),
    "gelu_erf": (lambda x: jax.nn.gelu(x, approximate=False), -3, 3),
    "relu": (jax.nn.relu, 0.3, 3),
    "silu": (jax.nn.silu, -3, 3),
    "softplus": (jax.nn.softplus, -3, 3),
    "integer_pow": (lambda x: x**3, -2, 2),
    "is_finite": (lambda x: lax.is_finite(x), -2, 2),
}
#: Where steep functions meet the coarse dtypes, one unit in the argument is many in the result.
_STEEP = {"tan": 2e-2, "exp": 8e-3, "exp2": 8e-3, "acosh": 1e-2, "lgamma": 2e-2, "erf_inv": 1e-2}

_FLOAT_BINARY = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "max": lax.max,
    "min": lax.min,
    "atan2": lax.atan2,
    "rem": lax.rem,
    "logaddexp": jnp.logaddexp,
}
_COMPARISONS = {
    "eq": lax.eq,
    "ne": lax.ne,
    "lt": lax.lt,
    "le": lax.le,
    "gt": lax.gt,
    "ge": lax.ge,
}
_INTEGER_BINARY = {
    "add": lax.add,
    "sub": lax.sub,
    "mul": lax.mul,
    "div": lax.div,
    "rem": lax.rem,
    "max": lax.max,
    "min": lax.min,
    "and": lax.bitwise_and,
    "or": lax.bitwise_or,
    "xor": lax.bitwise_xor,
    "shift_left": lax.shift_left,
    "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
}


def _edges(dtype: str) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.array([0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1], dtype)


def _pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left, right = np.meshgrid(values, values, indexing="ij")
    return left.copy(), right.copy()


def _float_cases() -> list[Case]:
    cases = []
    for name, (f, low, high) in _FLOAT_UNARY.items():
        for dtype in FLOATS:
            runs = ALL_RUNS if dtype == "float32" and name != "is_finite" else ("jit",)
            loose = _STEEP.get(name)
            rtol = (
                loose
                if dtype == "float16"
                else 8 * loose
                if loose and dtype == "bfloat16"
                else None
            )
            args = (array((4, 9), dtype, low, high),)
            cases.append(Case(f"{name}-{dtype}", f, args, runs, rtol=rtol))
    for name, f in _FLOAT_BINARY.items():
        for dtype in FLOATS:
            runs = ALL_RUNS if dtype == "float32" else ("jit",)
            args = (array((3, 7), dtype, -3, 3), array((3, 7), dtype, 0.5, 2))
            cases.append(Case(f"{name}-{dtype}", f, args, runs))
    for dtype in FLOATS:
        # Its divisor is repeated: narrow dtypes multiply by the reciprocal.
        cases.append(Case(f"softmax-{dtype}", jax.nn.softmax, (array((5, 24), dtype, -3, 3),)))
    cases.append(
        Case("pow-float32", lax.pow, (array((3, 7), high=3, low=0.2), array((3, 7))), ALL_RUNS)
    )
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 6e4, -2.5])
    for dtype in FLOATS:
        left, right = _pairs(special.astype(dtype_of(dtype)))
        for name in ("add", "sub", "mul", "div", "max", "min", "rem"):
            cases.append(
                Case(f"{name}-special-{dtype}", _FLOAT_BINARY[name], (left, right), ("jit",))
            )
        for name, f in _COMPARISONS.items():
            cases.append(Case(f"{name}-special-{dtype}", f, (left, right), ("eager", "jit")))
        one = special.astype(dtype_of(dtype))
        for name in (
            "abs",
            "ceil",
            "exp",
            "floor",
            "is_finite",
            "log",
            "neg",
            "round",
            "sign",
            "sqrt",
            "tanh",
            "rsqrt",
            "expm1",
            "log1p",
            "erf",
            "logistic",
        ):
            cases.append(Case(f"{name}-special-{dtype}", _FLOAT_UNARY[name][0], (one,), ("jit",)))
    return cases


def _integer_cases() -> list[Case]:
    cases = []
    for dtype in INTEGERS:
        left, right = _pairs(_edges(dtype))
        for name, f in {**_INTEGER_BINARY, **_COMPARISONS}.items():
            runs = ("eager", "jit", "vmap") if dtype == "int32" else ("jit",)
            cases.append(Case(f"{name}-{dtype}", f, (left, right), runs))
        for name, f in (
            ("not", lax.bitwise_not),
            ("clz", lax.clz),
            ("popcount", lax.population_count),
        ):
            cases.append(Case(f"{name}-{dtype}", f, (_edges(dtype),), ("jit",)))
    for dtype in SIGNED:
        for name, f in (("abs", lax.abs), ("neg", lax.neg), ("sign", lax.sign)):
            cases.append(Case(f"{name}-{dtype}", f, (_edges(dtype),), ("jit",)))
    for dtype in ("int32", "uint32"):
        cases.append(Case(f"pow-{dtype}", lambda x: x**5, (_edges(dtype),), ("jit",)))
    flags = _pairs(np.array([False, True]))
    for name, f in (
        ("and", lax.bitwise_and),
        ("or", lax.bitwise_or),
        ("xor", lax.bitwise_xor),
        ("max", lax.max),
        ("min", lax.min),
        ("eq", lax.eq),
        ("ne", lax.ne),
        ("lt", lax.lt),
    ):
        cases.append(Case(f"{name}-bool", f, flags))
    cases.append(Case("not-bool", lax.bitwise_not, (flags[0],)))
    return cases


def _conversion_cases() -> list[Case]:
    cases = []
    dtypes = (*FLOATS, *INTEGERS, "bool")
    for source in dtypes:
        low = 0 if source in UNSIGNED else -100
        values = array((5, 8), source, low, 100)
        for target in dtypes:
            if source in FLOATS and target in UNSIGNED:
                values = np.abs(values)
            convert = lambda x, target=target: lax.convert_element_type(x, dtype_of(target))  # noqa: E731
            cases.append(Case(f"convert-{source}-{target}", convert, (values,), ("jit",)))
    out_of_range = np.array([np.nan, np.inf, -np.inf, 3e9, -3e9, 1e20, 300, -300, 2.9, -2.9], "f4")
    for target in ("int32", "int8", "uint8"):
        convert = lambda x, target=target: lax.convert_element_type(x, target)  # noqa: E731
        cases.append(Case(f"convert-saturates-{target}", convert, (out_of_range,), ("jit",)))
    bits = array((4, 6), "float32", -9, 9)
    for source, target in (
        ("float32", "int32"),
        ("float32", "uint32"),
        ("float16", "int16"),
        ("float16", "uint16"),
        ("bfloat16", "uint16"),
        ("bfloat16", "int16"),
        ("int8", "uint8"),
        ("float32", "uint8"),
        ("float32", "uint16"),
        ("bfloat16", "uint8"),
    ):
        cast = lambda x, target=target: lax.bitcast_convert_type(x, dtype_of(target))  # noqa: E731
        there = bits.astype(dtype_of(source))
        cases.append(Case(f"bitcast-{source}-{target}", cast, (there,), ("jit",)))
        with jax.default_device(jax.devices("cpu")[0]):
            wide = np.asarray(cast(there))
        back = lambda x, source=source: lax.bitcast_convert_type(x, dtype_of(source))  # noqa: E731
        cases.append(Case(f"bitcast-{target}-{source}", back, (wide,), ("jit",)))
    for exponent, mantissa in ((5, 10), (8, 7), (4, 3)):
        cases.append(
            Case(
                f"reduce_precision-{exponent}-{mantissa}",
                lambda x, e=exponent, m=mantissa: lax.reduce_precision(x, e, m),
                (array((4, 8), "float32", -300, 300),),
                ("jit", "grad"),
                rtol=0,
                atol=0,
            )
        )
    return cases


def _scalar_of_constants(s):
    """The predicate, a scalar, is the only operand."""
    return s * jnp.where(s > 0, jnp.ones((7, 2)), jnp.zeros((7, 2)))


def _scalar_of_arrays(s):
    up = np.arange(6, dtype=np.float32)
    return jnp.where(s > 0, up, up[::-1]) * s


def _choice_cases() -> list[Case]:
    x, y = array((3, 5)), array((3, 5), low=-3, high=3)
    flags = array((3, 5), "bool")
    return [
        Case("select", jnp.where, (flags, x, y), ALL_RUNS),
        Case("select-scalar-predicate", lambda p, x, y: lax.select(p, x, y), (flags[0, 0], x, y)),
        Case("select-scalar-of-constants", _scalar_of_constants, (np.float32(2),), ALL_RUNS),
        Case("select-scalar-of-arrays", _scalar_of_arrays, (np.float32(-1),), ALL_RUNS),
        Case("clamp-of-constants", lambda s: lax.clamp(s, np.ones((2, 3), "f4"), s), (x[0, 0],)),
        Case("select-constants", lambda p: jnp.where(p, 1.5, -2.0), (flags,)),
        Case("select_n", lambda i, x, y: lax.select_n(i, x, y, x * y), (flags.astype("i4"), x, y)),
        Case("clamp", lambda x: lax.clamp(np.float32(-1), x, np.float32(1)), (x,), ALL_RUNS),
        Case("clamp-scalars", lax.clamp, (np.float32(-1), x, np.float32(1))),
        Case("clamp-arrays", lax.clamp, (x - 1, y, x + 1), ALL_RUNS),
        Case("clamp-int", lax.clamp, (np.int32(-1), array((9,), "int32", -5, 5), np.int32(2))),
        Case("clip-nan", lambda x: jnp.clip(x, -1, 1), (np.array([np.nan, 2, -3], "f4"),)),
        Case("nan_to_num", jnp.nan_to_num, (np.array([np.nan, np.inf, -np.inf, 1], "f4"),)),
        Case("scalar", lambda x: jnp.sin(x) * 2 + 1, (np.float32(0.7),), ALL_RUNS),
        # Compiled and loaded on jaxlib's threads, which flush subnormal numbers to zero.
        Case("subnormal-half-constant", lambda x: x * np.float16(5e-5), (x.astype("f2") * 1000,)),
        Case(
            "subnormal-half-folded",
            lambda x: x + np.full(3, 3e-5, "f2") * np.float16(0.5),
            (x.astype("f2")[0, 0] * 0,),
            atol=0.0,
        ),
        Case("empty", lambda x: x * 2 + 1, (np.zeros((0, 3), "f4"),), ("eager", "jit")),
        Case(
            "shared-subexpressions",
            lambda x: sum(jnp.exp(x) * k for k in range(1, 5)) / jnp.exp(x),
            (x,),
            ALL_RUNS,
        ),
    ]


CASES = _float_cases() + _integer_cases() + _conversion_cases() + _choice_cases()
