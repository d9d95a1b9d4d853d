"""Lookups, runs of rows, and counts: row by row, element by element."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal


@generator("ops.embedding_lookup")
def embedding_lookup(d: Draw) -> Case:
    parts, size = d.one(1, 1, 2, 3), d.integer(1, 6)
    shape, dtype = (parts * size, *d.shape(0, 2, 40)), d.dtype()
    ids_shapes = [d.shape(0, 2, 30) for _ in range(d.integer(1, 3))]
    update = d.one("add", "sorted", "combined")
    id_dtype = d.one(np.int32, np.int32, np.uint8, np.int16)

    def draw(numbers: Numbers) -> Any:
        ids = [numbers.integers(0, shape[0], s).astype(id_dtype) for s in ids_shapes]
        return (normal(numbers, shape, dtype), *ids)

    def function(table: Any, *ids: Any) -> Any:
        return ipu.ops.embedding_lookup(table, ids, parts, update=update)

    def reference(table: Any, *ids: Any) -> Any:
        hot = [
            jnp.clip(each.astype(jnp.int64), 0, shape[0] - 1)[..., None] == jnp.arange(shape[0])
            for each in ids
        ]
        return tuple(jnp.tensordot(each.astype(table.dtype), table, 1) for each in hot)

    return Case(function, reference, draw, factor=2, text=f"factor={parts}, update={update}")


def _sliced(dst: Any, src: Any, num: Any, begins: Any, ends: Any, zero_unused: bool) -> Any:
    """Rows in the order of src, so that the last one stays."""
    rows = [jnp.zeros_like(row) if zero_unused else row for row in dst]
    for row in range(src.shape[0]):
        for run in range(len(num)):
            at = int(ends[run]) + row - int(begins[run])
            inside = begins[run] <= row < int(begins[run]) + int(num[run])
            if inside and at < len(rows):
                rows[at] = src[row]
    return jnp.stack(rows) if rows else dst


@generator("ops.sequence_slice", "ops.sequence_slice_pack", "ops.sequence_slice_unpack")
def sequence_slice(d: Draw, name: str) -> Case:
    row, dtype = d.shape(1, 2, 12), d.dtype()
    num_src, num_dst, runs = d.integer(1, 8), d.integer(1, 8), d.integer(0, 4)
    zero_unused = d.chance(0.5) or name.endswith("unpack")

    def draw(numbers: Numbers) -> Any:
        integers = [
            numbers.integers(0, top + 1, runs).astype(np.int32) for top in (4, num_src, num_dst)
        ]
        src = normal(numbers, (num_src, *row), dtype)
        dst = normal(numbers, (num_dst, *row), dtype)
        if name.endswith("unpack"):
            return src, integers[0], integers[1]
        if name.endswith("pack"):
            return dst, src, integers[0], integers[2]
        return dst, src, *integers

    def function(*operands: Any) -> Any:
        if name.endswith("unpack"):
            return ipu.ops.sequence_slice_unpack(*operands, num_dst)
        return getattr(ipu.ops, name.removeprefix("ops."))(*operands, zero_unused)

    def reference(*operands: Any) -> Any:
        if name.endswith("unpack"):
            src, num, begins = operands
            dst, ends = jnp.zeros((num_dst, *row)), np.cumsum(num) - np.asarray(num)
        elif name.endswith("pack"):
            dst, src, num, ends = operands
            begins = np.cumsum(num) - np.asarray(num)
        else:
            dst, src, num, begins, ends = operands
        num, begins, ends = (np.asarray(each, np.int64) for each in (num, begins, ends))
        return _sliced(dst, src, num, begins, ends, zero_unused)

    return Case(
        function,
        reference,
        draw,
        smooth=(0,) if name.endswith("unpack") else (0, 1),
        compiled=False,
        text=f"zero_unused={zero_unused}",
    )


@generator("ops.histogram", "ops.histogram_update")
def histogram(d: Draw, name: str) -> Case:
    size, levels, dtype = d.one(0, 1, 2, 7, 40), d.integer(1, 6), d.dtype()
    absolute = d.chance(0.5)

    def draw(numbers: Numbers) -> Any:
        edges = np.sort(normal(numbers, (levels,), dtype))
        x = normal(numbers, (size,), dtype)
        if size > 2:
            x[0], x[1] = edges[0], np.nan
        counts = numbers.integers(0, 9, levels + 1).astype(np.float32)
        return (x, edges) if name == "ops.histogram" else (counts, x, edges)

    def function(*operands: Any) -> Any:
        return getattr(ipu.ops, name.removeprefix("ops."))(*operands, absolute)

    def reference(*operands: Any) -> Any:
        x, edges = operands[-2:]
        x = jnp.abs(x) if absolute else x
        below = jnp.sum(x[:, None] < edges, 0)  # a NaN is below no level
        ends = jnp.concatenate([jnp.zeros(1), below, jnp.full(1, x.size)])
        counts = ends[1:] - ends[:-1]
        return counts if name == "ops.histogram" else operands[0] + counts

    smooth = (0,)
    return Case(function, reference, draw, smooth=smooth, order=1, text=f"absolute={absolute}")


@generator("ops.fixed_width_bins")
def fixed_width_bins(d: Draw) -> Case:
    size, bins, dtype = d.integer(1, 30), d.integer(1, 9), d.dtype()

    def reference(x: Any) -> Any:
        low, high = jnp.min(x), jnp.max(x)
        return low + (high - low) * jnp.arange(bins) / max(bins - 1, 1)

    return Case(
        lambda x: ipu.ops.fixed_width_bins(x, bins),
        reference,
        lambda numbers: (normal(numbers, (size,), dtype),),
        order=1,
        text=f"n_bins={bins}",
    )


@generator("ops.normalise_image")
def normalise_image(d: Draw) -> Case:
    shape = (*d.shape(0, 3, 100), 3)
    dtype = d.one(np.uint8, np.float16, np.float32)
    scale = d.one(1.0, 1 / 255, 0.5)

    def draw(numbers: Numbers) -> Any:
        image = numbers.integers(0, 256, shape).astype(dtype)
        made = np.float16 if dtype == np.uint8 else dtype
        return image, numbers.random(3).astype(made), (0.5 + numbers.random(3)).astype(made)

    def reference(image: Any, offsets: Any, scales: Any) -> Any:
        y = (image * scale - offsets) * scales
        return jnp.concatenate([y, jnp.zeros((*shape[:-1], 1))], -1)

    # Squares of up to 255 ** 2 are beyond float16.
    order = 2 if dtype == np.float32 else 0
    return Case(
        lambda *operands: ipu.ops.normalise_image(*operands, scale),
        reference,
        draw,
        smooth=(0, 1, 2),
        order=order,
        factor=2,
        text=f"scale={scale}",
    )
