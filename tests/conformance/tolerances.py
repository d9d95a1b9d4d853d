"""How close two backends must be: the tolerances of JAX's own tests.

The largest of three sources applies: the default bound of each dtype in jax
`_src/public_test_util.py`; the bound for convolutions in jax
`tests/export_harnesses_multi_platform_test.py`; and the bounds for the CPU by primitive and dtype
in jax `experimental/jax2tf/tests/jax2tf_limitations.py`, which is made for these harnesses.
"""

from __future__ import annotations

from collections.abc import Sequence

#: jax `_src/public_test_util.py`; integers and booleans are compared exactly
DEFAULT = {
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float8": 1e-1,
}
_ALL: tuple[str, ...] = ("float32", "float16", "bfloat16", "complex64")
_SINGLE = ("float32", "complex64")
_SHORT = ("float16", "bfloat16")

#: group -> rows of (dtypes, bound); jax `jax2tf_limitations.py`, as it stood when jax2tf was in jax
BY_GROUP: dict[str, tuple[tuple[Sequence[str], float], ...]] = {
    "acos": ((("complex64",), 1e-4),),
    "acosh": ((("complex64",), 1e-3),),
    "asin": ((("complex64",), 1e-4),),
    "asinh": ((("complex64",), 1e-3),),
    "atan": ((("complex64",), 1e-5),),
    "atanh": ((("complex64",), 1e-3),),
    "cholesky": ((_SINGLE, 1e-2), (_SHORT, 5e-2)),
    # JAX's row names float32 only; a complex64 sum is four float32 sums of the same length.
    "conv_general_dilated": ((_SINGLE, 1e-4),),
    "cumlogsumexp": ((_SHORT, 5e-1),),
    "cumprod": ((_SHORT, 5e-1),),
    "cumsum": ((_SHORT, 5e-1),),
    "custom_linear_solve": ((_ALL, 1e-3),),
    "digamma": ((("float32",), 1e-3),),
    "dot_general": ((("float16",), 1e-2),),
    "erf_inv": ((("float32",), 1e-4),),
    "fft": ((_ALL, 1e-3),),
    "igamma": ((("float32",), 1e-5),),
    "integer_pow": ((("bfloat16",), 2e-2), (_SINGLE, 1e-3)),
    "lgamma": ((("float32",), 1e-3),),
    "log1p": ((("float32",), 1e-3),),
    "lu": ((_SINGLE, 1e-5),),
    "pow": ((_SINGLE, 1e-3),),
    "qr": ((_SINGLE, 1e-4),),
    "reduce_window_add": ((("float32",), 1e-5), (("float16",), 5e-3), (("bfloat16",), 5e-1)),
    "svd": ((_SINGLE, 1e-4),),
    # jax `_src/internal_test_util/lax_test_util.py` and `jax2tf_limitations.py`
    "tan": ((("float32",), 3e-5), (("complex64",), 1e-3)),
    "tanh": ((("complex64",), 1e-4),),
    "triangular_solve": ((("float32",), 5e-3),),
}


def bound(group: str, harness_dtype: str, result_dtype: str) -> float:
    """The bound, absolute and relative, for results of a dtype; zero means equal.

    A row holds for operands and for results: products of float16 that are summed in float32 differ
    by the order of the sum as those of float32 do.
    """
    name = "float8" if result_dtype.startswith("float8") else result_dtype
    widest = DEFAULT.get(name, 0.0)
    if widest == 0.0:
        return 0.0
    for dtypes, value in BY_GROUP.get(group, ()):
        if harness_dtype in dtypes or result_dtype in dtypes:
            widest = max(widest, value)
    return widest
