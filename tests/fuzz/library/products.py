"""Products, convolutions and floats of 8 bits."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal


@generator("ops.serialized_matmul")
def serialized_matmul(d: Draw) -> Case:
    leading, dtype = d.shape(0, 2, 6), d.dtype()
    factor = d.integer(1, 4)
    names = {"m": ("a_columns", "input_channels"), "k": ("a_rows_b_columns", "reducing_dim")}
    names["n"] = ("b_rows", "output_channels")
    cut = d.one(*names)
    sizes = {each: d.integer(1, 6) * (factor if each == cut else 1) for each in "mkn"}
    m, k, n = sizes.values()
    turned = d.chance(0.3), d.chance(0.3)
    keep, name = d.chance(0.3), d.one(*names[cut])

    def draw(numbers: Numbers) -> Any:
        a = normal(numbers, (*leading, *((k, m) if turned[0] else (m, k))), dtype)
        return a, normal(numbers, (*leading, *((n, k) if turned[1] else (k, n))), dtype)

    def reference(a: Any, b: Any) -> Any:
        left = "...km" if turned[0] else "...mk"
        return jnp.einsum(f"{left},{'...nk' if turned[1] else '...kn'}->...mn", a, b)

    return Case(
        lambda a, b: ipu.ops.serialized_matmul(a, b, factor, name, *turned, keep),
        reference,
        draw,
        smooth=(0, 1),
        factor=3,
        text=f"factor={factor}, {name}, transposed={turned}, keep_precision={keep}",
    )


def _convolved(x: Any, w: Any, strides: Any, pads: Any, steps: Any, groups: int) -> Any:
    """[batch, channels, field...] with [out, in, kernel...]: a sum over the kernel's elements."""
    x = jnp.pad(x, ((0, 0), (0, 0), *pads))
    outs, ins = w.shape[:2]
    sizes = [
        (n - (k - 1) * step - 1) // stride + 1
        for n, k, step, stride in zip(x.shape[2:], w.shape[2:], steps, strides, strict=True)
    ]
    total = jnp.zeros((x.shape[0], outs, *sizes))
    for at in np.ndindex(*w.shape[2:]):
        window = tuple(
            slice(k * step, k * step + (size - 1) * stride + 1, stride)
            for k, step, size, stride in zip(at, steps, sizes, strides, strict=True)
        )
        part = x[(slice(None), slice(None), *window)]
        parts = []
        for g in range(groups):
            chosen = w[(slice(g * outs // groups, (g + 1) * outs // groups), slice(None), *at)]
            parts.append(jnp.einsum("bc...,oc->bo...", part[:, g * ins : (g + 1) * ins], chosen))
        total = total + jnp.concatenate(parts, 1)
    return total


@generator("ops.multi_conv")
def multi_conv(d: Draw) -> Case:
    convs = []
    for _ in range(d.integer(1, 3)):
        rank, groups = d.integer(1, 2), d.one(1, 1, 2)
        kernel = [d.integer(1, 3) for _ in range(rank)]
        steps, strides = ([d.integer(1, 2) for _ in range(rank)] for _ in range(2))
        field = [(k - 1) * s + d.integer(1, 4) for k, s in zip(kernel, steps, strict=True)]
        pads = [(d.integer(0, 2), d.integer(0, 2)) for _ in range(rank)]
        ins, outs = d.integer(1, 3), groups * d.integer(1, 3)
        x_shape, w_shape = (d.integer(1, 3), groups * ins, *field), (outs, ins, *kernel)
        convs.append((x_shape, w_shape, strides, pads, steps, groups))
    dtype = d.dtype("float32", "float16")

    def draw(numbers: Numbers) -> Any:
        return tuple(normal(numbers, shape, dtype) for conv in convs for shape in conv[:2])

    def pairs(operands: Any) -> Any:
        return zip(operands[::2], operands[1::2], convs, strict=True)

    def function(*operands: Any) -> Any:
        return ipu.ops.multi_conv(
            [
                ipu.ops.Conv(
                    x,
                    w,
                    window_strides=strides,
                    padding=pads,
                    rhs_dilation=steps,
                    feature_group_count=groups,
                )
                for x, w, (_, _, strides, pads, steps, groups) in pairs(operands)
            ]
        )

    return Case(
        function,
        lambda *operands: tuple(_convolved(x, w, *conv[2:]) for x, w, conv in pairs(operands)),
        draw,
        smooth=tuple(range(2 * len(convs))),
        factor=4,
        text=f"{convs}",
    )


EIGHT_BITS = {
    "F143": (ml_dtypes.float8_e4m3fnuz, 240.0),
    "F152": (ml_dtypes.float8_e5m2fnuz, 57344.0),
}


def _rounded(x: Any, name: str, scale: int) -> np.ndarray:
    dtype, most = EIGHT_BITS[name]
    x = np.asarray(x, np.float64)
    wide = np.where(np.isfinite(x), np.clip(x / 2.0**scale, -most, most), np.nan)
    return wide.astype(np.float32).astype(dtype).astype(np.float64) * 2.0**scale


@generator("ops.cast_to_float8", "ops.cast_from_float8", "ops.float8_matmul")
def float8(d: Draw, name: str) -> Case:
    names = [d.one(*EIGHT_BITS) for _ in range(2)]
    scales = [d.integer(-3, 3) for _ in range(2)]
    dtype = d.dtype("float32", "float16")
    shape = d.shape(0, 3)
    product = name == "ops.float8_matmul"
    leading, (m, k, n) = d.shape(0, 1, 3), (d.integer(1, 6) for _ in range(3))

    def draw(numbers: Numbers) -> Any:
        shapes = [(*leading, m, k), (*leading, k, n)] if product else [shape]
        arrays = [normal(numbers, each, dtype, 4) for each in shapes]
        if not product and arrays[0].size > 2:
            arrays[0].flat[:3] = [np.nan, np.inf, 6e4]
        return tuple(arrays)

    def function(*operands: Any) -> Any:
        cast = [
            ipu.ops.cast_to_float8(*each) for each in zip(operands, names, scales, strict=False)
        ]
        if product:
            return ipu.ops.float8_matmul(*cast, np.float32, emulate=True)
        return ipu.ops.cast_from_float8(cast[0])

    def reference(*operands: Any) -> Any:
        wide = [_rounded(*each) for each in zip(operands, names, scales, strict=False)]
        return wide[0] @ wide[1] if product else wide[0]

    text = f"{names}, {scales}"
    return Case(function, reference, draw, smooth=(), order=0, compiled=False, text=text)
