"""dot_general and convolution of integers of every type, against NumPy's wrapping 64-bit sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from numpy.lib.stride_tricks import sliding_window_view

NARROW = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
WIDE = [*NARROW, "int64", "uint64"]
SIZES = [0, 1, 2, 3, 5, 8, 13, 16, 17, 31]


def _random(rng, shape, dtype) -> np.ndarray:
    """Numbers of the whole range, its ends among them."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    ends = rng.choice(np.array([info.min, info.max], dtype), shape)
    return np.where(rng.random(shape) < 0.3, ends, values)


def _types(rng, dtypes) -> tuple[str, str, str]:
    """Both operands' and the result's, which holds at least as many bits as JAX asks for."""
    a = rng.choice(dtypes)
    b = a if rng.random() < 0.6 else rng.choice(dtypes)
    widest = max(a, b, key=lambda name: np.dtype(name).itemsize)
    wider = [
        name
        for name in dtypes
        if np.dtype(name).itemsize > np.dtype(widest).itemsize or name == widest == a == b
    ]
    return str(a), str(b), str(rng.choice(wider or [widest]))


def _int64(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64)


def _check_dot(rng, dtypes, options=None) -> None:
    batch = list(rng.choice(SIZES[1:4], rng.integers(0, 3)))
    inner = list(rng.choice(SIZES, rng.integers(0, 3)))
    left, right = (list(rng.choice(SIZES, rng.integers(0, 3))) for _ in range(2))
    letters = iter("abcdefgh")
    names = [[next(letters) for _ in dims] for dims in (batch, inner, left, right)]
    each = [name for group in names for name in group]
    sizes = dict(zip(each, map(int, batch + inner + left + right), strict=True))
    a_axes = rng.permutation(names[0] + names[1] + names[2]).tolist()
    b_axes = rng.permutation(names[0] + names[1] + names[3]).tolist()
    a_type, b_type, out = _types(rng, dtypes)
    a = _random(rng, [sizes[x] for x in a_axes], a_type)
    b = _random(rng, [sizes[x] for x in b_axes], b_type)
    numbers = (
        ([a_axes.index(x) for x in names[1]], [b_axes.index(x) for x in names[1]]),
        ([a_axes.index(x) for x in names[0]], [b_axes.index(x) for x in names[0]]),
    )

    def product(a, b):
        return lax.dot_general(a, b, numbers, preferred_element_type=out)

    got = np.asarray(jax.jit(product, compiler_options=options)(a, b))
    free = [x for x in a_axes + b_axes if x in names[2] + names[3]]
    result = "".join(names[0] + free)
    spec = f"{''.join(a_axes)},{''.join(b_axes)}->{result}"
    want = np.einsum(spec, _int64(a), _int64(b)).astype(out)
    assert got.dtype == want.dtype
    np.testing.assert_array_equal(got, want, err_msg=f"{spec} {sizes} {a_type} {b_type}")


@pytest.mark.parametrize("seed", range(80))
def test_dot_general_wraps(seed):
    _check_dot(np.random.default_rng(seed), NARROW)


@pytest.mark.parametrize("seed", range(40))
def test_emulated_dot_general_wraps(seed):
    with jax.enable_x64(True):
        _check_dot(np.random.default_rng(seed), WIDE, {"ipu_x64": "emulate"})


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    "shape", [(70, 300, 90), (1, 517, 200), (200, 517, 1), (8, 8, 8), (300, 3, 17), (3, 1031, 5)]
)
def test_matmul_of_several_blocks_wraps(dtype, shape):
    rng = np.random.default_rng(0)
    m, k, n = shape
    a, b = _random(rng, (m, k), dtype), _random(rng, (k, n), dtype)
    out = "uint32" if dtype.startswith("u") else "int32"
    for preferred in (dtype, out):
        got = jax.jit(lambda a, b, p=preferred: jnp.matmul(a, b, preferred_element_type=p))(a, b)
        np.testing.assert_array_equal(got, (_int64(a) @ _int64(b)).astype(preferred))


def _dilated(x: np.ndarray, steps: list[int], first: int) -> np.ndarray:
    """Zeros between the elements of the axes from `first` on."""
    shape = list(x.shape)
    for axis, step in enumerate(steps, first):
        shape[axis] = max(0, (shape[axis] - 1) * step + 1)
    out = np.zeros(shape, x.dtype)
    out[(slice(None),) * first + tuple(slice(None, None, step) for step in steps)] = x
    return out


def _convolved(x, w, strides, padding, x_dilation, w_dilation, groups, batch_groups) -> np.ndarray:
    """x [n, c, ...], w [o, i, ...] -> [n, o, ...] in 64 bits."""
    rank = len(strides)
    x, w = _dilated(_int64(x), x_dilation, 2), _dilated(_int64(w), w_dilation, 2)
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    windows = sliding_window_view(x, w.shape[2:], axis=tuple(range(2, 2 + rank)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in strides))]
    batch, channels = windows.shape[0] // batch_groups, windows.shape[1] // groups
    outs = w.shape[0] // (groups * batch_groups)
    kernel, taps = tuple(range(2, 2 + rank)), tuple(range(2 + rank, 2 + 2 * rank))
    parts = []
    for g in range(groups * batch_groups):
        rows = slice(g * batch, (g + 1) * batch) if batch_groups > 1 else slice(None)
        cols = slice(g * channels, (g + 1) * channels) if groups > 1 else slice(None)
        part = np.tensordot(
            windows[rows, cols], w[g * outs : (g + 1) * outs], ((1, *taps), (1, *kernel))
        )
        parts.append(np.moveaxis(part, -1, 1))
    return np.concatenate(parts, 1)


def _check_convolution(rng, dtypes, options=None) -> None:
    rank = int(rng.integers(1, 4))
    groups, batch_groups = [(1, 1), (1, 1), (3, 1), (8, 1), (1, 2)][rng.integers(5)]
    out_channels = int(rng.choice([1, 3, 20])) * groups * batch_groups
    in_channels = int(rng.choice([1, 2, 3, 9, 16]))
    small = 7 if rank == 3 else 12
    field = [int(rng.integers(1, small)) for _ in range(rank)]
    window = [int(rng.integers(1, 4)) for _ in range(rank)]
    x_dilation, w_dilation, strides = ([int(rng.integers(1, 3)) for _ in field] for _ in range(3))
    padding = []
    for length, width, dx, dw in zip(field, window, x_dilation, w_dilation, strict=True):
        missing = (width - 1) * dw - (length - 1) * dx
        padding.append((int(rng.integers(0, 3)) + max(0, missing), int(rng.integers(0, 3))))
    x_type = str(rng.choice(dtypes))  # JAX convolves operands of one type and one sign
    size, kind = np.dtype(x_type).itemsize, np.dtype(x_type).kind
    wider = [name for name in dtypes if np.dtype(name).kind == kind]
    out = str(rng.choice([name for name in wider if np.dtype(name).itemsize >= size]))
    batch = batch_groups * int(rng.choice([1, 2, 5]))
    x = _random(rng, [batch, in_channels * groups, *field], x_type)
    w = _random(rng, [out_channels, in_channels, *window], x_type)
    specs = [tuple(rng.permutation(rank + 2).tolist()) for _ in range(3)]

    def convolve(x, w):
        return lax.conv_general_dilated(
            x.transpose(np.argsort(specs[0])),
            w.transpose(np.argsort(specs[1])),
            strides,
            padding,
            x_dilation,
            w_dilation,
            lax.ConvDimensionNumbers(*specs),
            groups,
            batch_groups,
            preferred_element_type=out,
        ).transpose(specs[2])

    got = np.asarray(jax.jit(convolve, compiler_options=options)(x, w))
    want = _convolved(x, w, strides, padding, x_dilation, w_dilation, groups, batch_groups)
    np.testing.assert_array_equal(got, want.astype(out), err_msg=f"{x.shape} {w.shape} {x_type}")


@pytest.mark.parametrize("seed", range(80))
def test_convolution_wraps(seed):
    _check_convolution(np.random.default_rng(seed), NARROW)


@pytest.mark.parametrize("seed", range(20))
def test_emulated_convolution_wraps(seed):
    with jax.enable_x64(True):
        _check_convolution(np.random.default_rng(seed), WIDE, {"ipu_x64": "emulate"})


def test_narrow_operands_cost_their_cast():
    """A product in 32 bits of 8-bit operands costs what it costs with both casts written out."""
    a, b = np.ones((64, 96), np.int8), np.ones((96, 80), np.int8)

    def cycles(f) -> float:
        return jax.jit(f).lower(a, b).compile().cost_analysis()["cycles"]

    direct = cycles(lambda a, b: jnp.matmul(a, b, preferred_element_type=np.int32))
    cast = cycles(lambda a, b: a.astype(np.int32) @ b.astype(np.int32))
    assert direct == cast > cycles(lambda a, b: a @ b)
