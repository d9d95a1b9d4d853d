"""Checksums that the device computes of the batches that arrived (cpp/runtime/Checksum.hpp)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax.api.feed.ports import Specs
from ipujax.errors import FeedError


def widths(specs: Specs) -> list[int]:
    """Word size in bytes for reading each array.

    Raises:
        FeedError: a dtype of less than a byte, whose bytes differ between host and device.
    """
    for spec in specs:
        if jnp.issubdtype(spec.dtype, jnp.integer) and jnp.iinfo(spec.dtype).bits < 8:
            raise FeedError(
                f"[infeed] needs elements of whole bytes to verify them; got {spec.dtype}. Pass "
                "int8 and cast it on the device, or verify=False."
            )
    return [min(np.dtype(spec.dtype).itemsize, 4) for spec in specs]


def of_arrays(arrays: Sequence[jax.Array]) -> jax.Array:
    """uint32[arrays, 2]: each array's sum of words, and sum of words times positions from 1."""
    return jnp.stack([_of(x) for x in arrays])


def _of(x: jax.Array) -> jax.Array:
    words = _words(x).astype(jnp.uint32).ravel()
    positions = lax.iota(jnp.uint32, words.size) + 1
    return jnp.stack([words.sum(dtype=jnp.uint32), (words * positions).sum(dtype=jnp.uint32)])


def _words(x: jax.Array) -> jax.Array:
    """Its bits as unsigned integers; several for each wide element, in memory order."""
    if x.dtype == bool:
        return x.astype(jnp.uint8)
    if jnp.iscomplexobj(x):
        x = jnp.stack([x.real, x.imag], axis=-1)
    width = min(x.dtype.itemsize, 4)
    return lax.bitcast_convert_type(x, jnp.dtype(f"uint{8 * width}"))
