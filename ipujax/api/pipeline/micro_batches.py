"""Batches as micro-batches, for loops and pipelines over them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import whole_number
from ipujax.errors import PipelineError


def divide_batch(batch: Any, micro_batches: int) -> Any:
    """Divides a batch into micro-batches, as `ipu.pipeline` and `ipu.accumulate` take them.

    Of n micro-batches the first has the samples 0, n, 2n ..., the second 1, n + 1 and so on. So if
    samples are sharded over devices, each device divides its own and none moves, unlike with
    `x.reshape(n, -1, *x.shape[1:])`. Sums and means over the batch are the same as for any other
    division. For results y of single samples, stacked by micro-batch, `y.swapaxes(0, 1).reshape(-1,
    *y.shape[2:])` restores the order of the batch.

    Args:
        batch: pytree of arrays [samples, ...].
        micro_batches: number of micro-batches, a divisor of the number of samples.
    Returns:
        A pytree of arrays [micro_batches, samples / micro_batches, ...].
    Raises:
        PipelineError: the number does not divide the first dimension of some array.

    Example:
        >>> print(ipu.divide_batch(jnp.arange(6), 2))
        [[0 2 4]
         [1 3 5]]
    """
    count = whole_number(micro_batches)
    if count is None or count < 1:
        raise PipelineError(
            f"[divide_batch] needs 1 micro-batch or more; got {micro_batches!r}. Pass a number."
        )
    return jax.tree.map(lambda x: _divided(x, count), batch)


def _divided(x: Any, count: int) -> jax.Array:
    shape = jnp.shape(x)
    if not shape or shape[0] % count:
        raise PipelineError(
            f"[divide_batch] needs samples along the first axis, a multiple of the {count} "
            f"micro-batches; got shape {shape}. Drop or pad samples, or choose a divisor."
        )
    return jnp.reshape(x, (shape[0] // count, count, *shape[1:])).swapaxes(0, 1)
