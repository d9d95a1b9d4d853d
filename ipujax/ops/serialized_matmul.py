"""`serialized_matmul`: a matrix product as a loop over parts of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import array, flag, whole_number, wide_dtype
from ipujax.errors import ConfigError
from ipujax.types import SerializationDimension

_WHERE = "ipu.ops.serialized_matmul"
#: TensorFlow's and PopTorch's names: which dimension of [m, k] x [k, n] is split.
_DIMENSIONS = {
    "a_columns": "m",
    "a_rows_b_columns": "k",
    "b_rows": "n",
    "input_channels": "m",
    "reducing_dim": "k",
    "output_channels": "n",
}


def serialized_matmul(
    a: Any,
    b: Any,
    serialization_factor: int,
    serialization_dimension: SerializationDimension,
    transpose_a: bool = False,
    transpose_b: bool = False,
    keep_precision: bool = False,
) -> jax.Array:
    """Computes a @ b as a loop over smaller products: less memory and code, but more time.

    Its gradients are loops over the same parts.

    Args:
        a: [..., m, k]; [..., k, m] with `transpose_a`.
        b: [..., k, n] of a's dtype, with the same leading dimensions; [..., n, k] with
            `transpose_b`.
        serialization_factor: number of parts; divides the dimension that is split.
        serialization_dimension: "a_columns" or "input_channels": m is split; "b_rows" or
            "output_channels": n; "a_rows_b_columns" or "reducing_dim": k, and the products of the
            parts are added up.
        keep_precision: add up float16 products over parts of k in float32.
    Returns:
        [..., m, n], of a's dtype.
    Raises:
        ConfigError: wrong shapes or dtypes, a factor that does not divide the dimension, or an
            unknown dimension.

    Source: `serialized_matmul` of Graphcore's TensorFlow, `poptorch.serializedMatMul`.

    Example:
        >>> a, b = jnp.ones((4, 6)), jnp.ones((6, 2))
        >>> ipu.ops.serialized_matmul(a, b, 3, "a_rows_b_columns")[0].tolist()
        [6.0, 6.0]
    """
    a, b = array(_WHERE, "a", a), array(_WHERE, "b", b)
    transpose_a = flag(_WHERE, "transpose_a", transpose_a)
    transpose_b = flag(_WHERE, "transpose_b", transpose_b)
    keep_precision = flag(_WHERE, "keep_precision", keep_precision)
    _check_arrays(a, b, transpose_a, transpose_b)
    a = a.mT if transpose_a else a
    b = b.mT if transpose_b else b
    known = isinstance(serialization_dimension, str)
    dimension = _DIMENSIONS.get(serialization_dimension) if known else None
    if dimension is None:
        raise ConfigError(
            f"[{_WHERE}] needs a serialization_dimension of "
            f"{', '.join(_DIMENSIONS)}; got {serialization_dimension!r}. Use one of these names."
        )
    size = {"m": a.shape[-2], "k": a.shape[-1], "n": b.shape[-1]}[dimension]
    factor = whole_number(serialization_factor)
    if factor is None or factor < 1 or size % factor:
        raise ConfigError(
            f"[{_WHERE}] needs a serialization_factor that divides {size}, the "
            f"size of {dimension} in [m, k] x [k, n]; got {serialization_factor!r}. Use a divisor."
        )
    if factor == 1:
        return a @ b
    if dimension == "m":
        return _joined(lax.map(lambda part: part @ b, _parts(a, -2, factor)), -2)
    if dimension == "n":
        return _joined(lax.map(lambda part: a @ part, _parts(b, -1, factor)), -1)
    return _summed(_parts(a, -1, factor), _parts(b, -2, factor), keep_precision)


def _check_arrays(a: jax.Array, b: jax.Array, transpose_a: bool, transpose_b: bool) -> None:
    fits = a.ndim >= 2 and b.ndim == a.ndim and a.dtype == b.dtype and a.shape[:-2] == b.shape[:-2]
    if fits:
        fits = a.shape[-2 if transpose_a else -1] == b.shape[-1 if transpose_b else -2]
    if not fits:
        raise ConfigError(
            "[ipu.ops.serialized_matmul] needs a [..., m, k] and b [..., k, n] of one dtype; got "
            f"{a.dtype} {list(a.shape)}{' transposed' * transpose_a} and {b.dtype} "
            f"{list(b.shape)}{' transposed' * transpose_b}. Reshape or cast them."
        )


def _parts(x: jax.Array, axis: int, factor: int) -> jax.Array:
    """[..., factor * size, ...] -> [factor, ..., size, ...]."""
    axis += x.ndim
    split = x.reshape(*x.shape[:axis], factor, x.shape[axis] // factor, *x.shape[axis + 1 :])
    return jnp.moveaxis(split, axis, 0)


def _joined(parts: jax.Array, axis: int) -> jax.Array:
    """The inverse of `_parts`."""
    axis += parts.ndim - 1
    moved = jnp.moveaxis(parts, 0, axis)
    return moved.reshape(
        *moved.shape[:axis], moved.shape[axis] * moved.shape[axis + 1], *moved.shape[axis + 2 :]
    )


def _summed(a: jax.Array, b: jax.Array, keep_precision: bool) -> jax.Array:
    is_float = jnp.issubdtype(a.dtype, jnp.inexact)
    wide = wide_dtype(a.dtype) if keep_precision and is_float else a.dtype

    def add(total: jax.Array, parts: Any) -> tuple[jax.Array, None]:
        return total + jnp.matmul(*parts, preferred_element_type=wide), None

    shape = jax.eval_shape(jnp.matmul, a[0], b[0]).shape
    total, _ = lax.scan(add, jax_compat.varying_like(jnp.zeros(shape, wide), a, b), (a, b))
    return total.astype(a.dtype)
