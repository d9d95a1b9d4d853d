"""Attributes of ops that few programs set: each as a row."""

from __future__ import annotations

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.cases.case import ALL_RUNS, Case, array, dtype_of

X = array((4, 6))
Y = array((6, 5), low=-1)
IMAGE = array((2, 5, 4, 3))
KERNEL = array((2, 3, 3, 4), low=-1, high=1)
LOW = np.float32(-np.inf)
NHWC = ("NHWC", "HWIO", "NHWC")
#: Algorithms that multiply float32, and what they lose.
ALGORITHMS = {
    "F32_F32_F32": 1e-5,
    "BF16_BF16_F32": 2e-2,
    "BF16_BF16_F32_X3": 1e-4,
    "BF16_BF16_F32_X6": 1e-5,
    "F16_F16_F16": 1e-2,
}


def _dot_cases() -> list[Case]:
    rows = [
        Case(
            f"algorithm-{name}",
            lambda a, b, name=name: lax.dot(a, b, precision=lax.DotAlgorithmPreset[name]),
            (X, Y),
            ("jit",),
            rtol=tolerance,
            atol=tolerance,
        )
        for name, tolerance in ALGORITHMS.items()
    ]
    for name in ("default", "high", "highest"):
        dot = functools.partial(lax.dot, precision=name)
        rows.append(Case(f"precision-{name}", dot, (X, Y), ALL_RUNS))
    for dtype, preferred in (("float32", "int32"), ("int8", "float32"), ("bool", "int32")):
        operands = (array((4, 6), dtype, -4, 4), array((6, 5), dtype, -3, 5))
        rows.append(
            Case(
                f"preferred-{dtype}-{preferred}",
                lambda a, b, t=preferred: lax.dot(a, b, preferred_element_type=t),
                operands,
                ("jit",),
            )
        )
    return rows


def _convolution_cases() -> list[Case]:
    def conv(strides=(1, 1), padding="SAME", preferred=None, **options):
        return lambda x, k: lax.conv_general_dilated(
            x,
            k,
            strides,
            padding,
            dimension_numbers=NHWC,
            preferred_element_type=preferred,
            **options,
        )

    def of(dtype):
        return array((2, 5, 4, 3), dtype, -5, 5), array((2, 3, 3, 4), dtype, -5, 5)

    dot_like = (array((1, 1, 4, 3)), array((1, 2, 3, 4)))
    return [
        Case("conv-cut-and-padded", conv(padding=((4, -2), (0, 0))), dot_like, ALL_RUNS),
        Case(
            "conv-cut-and-padded-dilated",
            conv(padding=((5, -2), (-1, 4)), lhs_dilation=(3, 2)),
            dot_like,
            ("jit",),
        ),
        Case("conv-int8-float32", conv(preferred="float32"), of("int8"), ("jit",)),
        Case("conv-int16-int32", conv(preferred="int32"), of("int16"), ("jit",)),
        Case("conv-uint8", conv(), of("uint8"), ("jit",)),
        Case("conv-highest", conv(precision="highest"), (IMAGE, KERNEL), ("jit",), atol=1e-5),
        Case(
            "conv-mixed",
            conv(padding=((1, -1), (2, 0)), lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
            (IMAGE, KERNEL),
            ALL_RUNS,
            atol=1e-5,
        ),
    ]


def _other_cases() -> list[Case]:
    flags = array((7,), "bool")
    halves = array((3, 40)).astype(dtype_of("float16"))

    def pool_gradient(window, strides):
        return lambda x: lax.reduce_window(x, LOW, lax.max, window, strides, "VALID")

    return [
        Case("clamp-bool", lax.clamp, (flags, ~flags, flags)),
        Case("max_pool-step-1", pool_gradient((2, 2, 2), (1, 1, 1)), (array((2, 4, 6)),), ALL_RUNS),
        Case("max_pool-step-3", pool_gradient((2, 2, 1), (3, 3, 1)), (array((8, 9, 2)),), ALL_RUNS),
        Case("approx_max_k", lambda x: lax.approx_max_k(x, 3), (X,)),
        Case("approx_min_k", lambda x: lax.approx_min_k(x, 2, reduction_dimension=0), (X,)),
        Case("approx_max_k-half", lambda x: lax.approx_max_k(x, 5)[0], (halves,), ("jit",)),
        Case("approx_max_k-grad", lambda x: lax.approx_max_k(x, 2)[0], (X,), ALL_RUNS),
        Case("sort-5", lambda x: lax.sort((x, x + 1, -x, x > 0, x.astype("i4")), num_keys=5), (X,)),
        Case("isnan-total-order", lambda x: jnp.sort(jnp.where(x > 1, jnp.nan, x)), (X,)),
    ]


CASES = _dot_cases() + _convolution_cases() + _other_cases()
