"""`sequence_slice`, `sequence_slice_pack`, `sequence_slice_unpack`: copies of runs of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.arguments import array, count, flag
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op


def _plain(
    dst: jax.Array,
    src: jax.Array,
    num: jax.Array,
    src_offsets: jax.Array,
    dst_offsets: jax.Array,
    *,
    zero_unused: bool,
) -> jax.Array:
    """Where several runs write one row, the row that is last in src stays."""
    row = jnp.arange(dst.shape[0], dtype=jnp.uint32)
    in_run = row - dst_offsets[:, None]  # wraps where the row is before the run
    source = jnp.where(in_run < num[:, None], in_run + src_offsets[:, None] + 1, 0)
    source = jnp.max(source, axis=0, initial=0)
    found = src[jnp.maximum(source, 1) - 1]
    is_covered = (source > 0).reshape(-1, *[1] * (dst.ndim - 1))
    return jnp.where(is_covered, found, jnp.zeros_like(dst) if zero_unused else dst)


def _vjp(operands: Any, results: Any, cotangents: Any, *, zero_unused: bool) -> Sequence[Any]:
    """Finds the rows of src that were copied by slicing their numbers in the same way."""
    dst, src, *runs = operands
    (ct,) = cotangents
    numbers = jnp.arange(1, src.shape[0] + 1, dtype=jnp.uint32)[:, None]
    source = _SLICE(jnp.zeros((dst.shape[0], 1), jnp.uint32), numbers, *runs, zero_unused=True)
    is_kept = (source == 0).reshape(-1, *[1] * (dst.ndim - 1))
    kept = None if zero_unused else jnp.where(is_kept, ct, 0)
    at = (source[:, 0] - 1).astype(jnp.uint32)  # out of range where no run was
    moved = jnp.zeros_like(src).at[at].add(ct, mode="drop")
    return [kept, moved, None, None, None]


_SLICE: Op = Op("sequence_slice", _plain, dimensions="D..., S..., N, N, N -> D...", vjp=_vjp)


def sequence_slice(
    dst: Any, src: Any, num_elems: Any, src_offsets: Any, dst_offsets: Any, zero_unused: bool
) -> jax.Array:
    """Copies runs of src's rows into dst.

    Run i copies num_elems[i] rows that begin at src_offsets[i] to rows that begin at
    dst_offsets[i]. Runs are cut at the end of src and of dst. Where runs meet in dst, the row that
    is last in src stays. Differentiable in dst and src.

    Args:
        dst: [rows, ...], of rank 2 or more.
        src: [other rows, ...], with rows of the shape and dtype of dst's.
        num_elems, src_offsets, dst_offsets: [n] integers, not negative. A run whose number or
            offset is negative only at run time is not copied.
        zero_unused: rows of dst that no run covers become zero.
    Returns:
        an array like dst.
    Raises:
        ConfigError: wrong shapes or dtypes, or known numbers that are negative.

    Source: `slicing_ops.sequence_slice` of Graphcore's TensorFlow, `popops::sequenceSlice`.

    Example:
        >>> src = jnp.arange(6.0)[:, None]
        >>> moved = ipu.ops.sequence_slice(jnp.zeros((6, 1)), src, [2, 2], [2, 1], [0, 4], False)
        >>> moved[:, 0].tolist()
        [2.0, 3.0, 0.0, 0.0, 1.0, 2.0]
    """
    return _call("sequence_slice", dst, src, num_elems, src_offsets, dst_offsets, zero_unused)


def sequence_slice_pack(
    dst: Any, src: Any, num_elems: Any, dst_offsets: Any, zero_unused: bool
) -> jax.Array:
    """`sequence_slice` of runs that lie in src one after the other.

    Args:
        dst: [rows, ...], of rank 2 or more.
        src: [other rows, ...], with rows of the shape and dtype of dst's.
        num_elems, dst_offsets: [n] integers, not negative.
        zero_unused: rows of dst that no run covers become zero.
    Returns:
        an array like dst.
    Raises:
        ConfigError: wrong shapes or dtypes, or known numbers that are negative.

    Source: `slicing_ops.sequence_slice_pack` of Graphcore's TensorFlow.

    Example:
        >>> src = jnp.array([[2.0], [3.0], [1.0]])
        >>> packed = ipu.ops.sequence_slice_pack(jnp.zeros((4, 1)), src, [2, 1], [2, 0], False)
        >>> packed[:, 0].tolist()
        [1.0, 0.0, 2.0, 3.0]
    """
    where = "sequence_slice_pack"
    return _call(where, dst, src, num_elems, _ends(where, num_elems), dst_offsets, zero_unused)


def sequence_slice_unpack(
    src: Any, num_elems: Any, src_offsets: Any, total_elements: int
) -> jax.Array:
    """Runs of src's rows, one after the other; rows after the last run are zero.

    Args:
        src: [rows, ...], of rank 2 or more.
        num_elems, src_offsets: [n] integers, not negative.
        total_elements: rows of the result.
    Returns:
        [total_elements, ...], of src's dtype.
    Raises:
        ConfigError: wrong shapes or dtypes, or known numbers that are negative.

    Source: `slicing_ops.sequence_slice_unpack` of Graphcore's TensorFlow.

    Example:
        >>> src = jnp.arange(6.0)[:, None]
        >>> ipu.ops.sequence_slice_unpack(src, [2, 2], [2, 1], 4)[:, 0].tolist()
        [2.0, 3.0, 1.0, 2.0]
    """
    where = "sequence_slice_unpack"
    src = array(f"ipu.ops.{where}", "src", src)
    total = count(f"ipu.ops.{where}", "total_elements", total_elements, 0)
    dst = jnp.zeros((total, *src.shape[1:]), src.dtype)
    return _call(where, dst, src, num_elems, src_offsets, _ends(where, num_elems), True)


def _numbers(where: str, name: str, value: Any) -> jax.Array:
    is_empty = isinstance(value, list | tuple) and not value
    numbers = jnp.zeros(0, jnp.int32) if is_empty else array(f"ipu.ops.{where}", name, value)
    if numbers.ndim != 1 or not jnp.issubdtype(numbers.dtype, jnp.integer):
        raise ConfigError(
            f"[ipu.ops.{where}] needs {name} of shape [n], integers; got {numbers.dtype} "
            f"{list(numbers.shape)}. Pass a list of row numbers."
        )
    is_known = not isinstance(numbers, jax.core.Tracer)
    if is_known and np.asarray(numbers).min(initial=0) < 0:
        raise ConfigError(
            f"[ipu.ops.{where}] needs {name} that are not negative; got "
            f"{np.asarray(numbers).min()}. Pass row numbers from 0 on."
        )
    if name == "num_elems":
        numbers = jnp.maximum(numbers, 0)
    return numbers.astype(jnp.uint32)  # negative offsets become ones beyond all rows


def _ends(where: str, num_elems: Any) -> jax.Array:
    """Where each run begins if they lie one after the other."""
    num = _numbers(where, "num_elems", num_elems)
    return jnp.cumsum(num, dtype=jnp.uint32) - num


def _call(
    where: str, dst: Any, src: Any, num: Any, src_offsets: Any, dst_offsets: Any, zero_unused: bool
) -> jax.Array:
    dst, src = array(f"ipu.ops.{where}", "dst", dst), array(f"ipu.ops.{where}", "src", src)
    num = _numbers(where, "num_elems", num)
    src_offsets = _numbers(where, "src_offsets", src_offsets)
    dst_offsets = _numbers(where, "dst_offsets", dst_offsets)
    if src.ndim < 2 or dst.shape[1:] != src.shape[1:] or dst.dtype != src.dtype:
        raise ConfigError(
            f"[ipu.ops.{where}] needs dst and src of rank 2 or more with equal rows; got "
            f"{dst.dtype} {list(dst.shape)} and {src.dtype} {list(src.shape)}. Reshape or cast "
            "them."
        )
    zero_unused = flag(f"ipu.ops.{where}", "zero_unused", zero_unused)
    if not num.shape == src_offsets.shape == dst_offsets.shape:
        raise ConfigError(
            f"[ipu.ops.{where}] needs one number and offset for each run; got {num.shape[0]}, "
            f"{src_offsets.shape[0]} and {dst_offsets.shape[0]}. Pass arrays of one length."
        )
    if 0 in src.shape or 0 in dst.shape or num.shape[0] == 0:
        return jnp.zeros_like(dst) if zero_unused else dst
    if zero_unused and dst.dtype == jnp.float8_e8m0fnu:  # has no zero: JAX's zeros are NaN
        dst, zero_unused = jnp.zeros_like(dst), False
    rows = jnp.uint32(src.shape[0])
    num = jnp.minimum(num, rows - jnp.minimum(src_offsets, rows))
    num = jnp.where(dst_offsets >= jnp.uint32(2**31), 0, num)  # offsets that were negative
    return _SLICE(dst, src, num, src_offsets, dst_offsets, zero_unused=zero_unused)
