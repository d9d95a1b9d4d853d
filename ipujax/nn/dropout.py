"""Dropout by poprand; its gradient regenerates the mask from the seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import floats, real_number, whole_number
from ipujax.api.configure.seeds import seed_words
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op


def _plain(
    x: jax.Array, seed: jax.Array, *, rate: float, noise_shape: tuple[int, ...]
) -> jax.Array:
    key = jax.random.wrap_key_data(seed, impl="threefry2x32")
    kept = jax.random.bernoulli(key, 1 - rate, noise_shape)
    return jnp.where(kept, x * jnp.asarray(1 / (1 - rate), x.dtype), 0).astype(x.dtype)


def _batch(
    size: int, operands: Any, dims: Any, *, rate: float, noise_shape: tuple[int, ...]
) -> Any:
    """Examples that share a seed share a mask; those with seeds of their own run one by one."""
    (x, seed), (dim, seed_dim) = operands, dims
    if dim is not None:
        x = jnp.moveaxis(x, dim, 0)
    if seed_dim is None:
        made = DROPOUT.bind((x, seed), {"rate": rate, "noise_shape": (1, *noise_shape)})
        return made, [0]

    def one(row: Any) -> jax.Array:
        return DROPOUT(row[0] if dim is not None else x, row[1], rate=rate, noise_shape=noise_shape)

    seeds = jnp.moveaxis(seed, seed_dim, 0)
    return [lax.map(one, (x if dim is not None else jnp.zeros(size), seeds))], [0]


DROPOUT: Op = Op(
    "dropout",
    _plain,
    dimensions="..., Z -> ...",
    block_starts=True,
    linear=True,
    vjp=lambda operands, results, cotangents, **parameters: (
        DROPOUT(cotangents[0], operands[1], **parameters),
        None,
    ),
    batch=_batch,
)


def dropout(
    x: Any, seed: Any = None, *, rate: float = 0.5, noise_shape: Sequence[int] | None = None
) -> jax.Array:
    """Sets each element of x to 0 with probability `rate`, else to x / (1 - rate).

    Equal seeds, rates and shapes give equal masks. The gradient regenerates the mask from the seed,
    so only the seed is kept for it. On IPUs the mask comes from the hardware's generator (Philox on
    the IPU Model), elsewhere from `jax.random.bernoulli`, so masks differ between platforms. In a
    program that jit shards, each device makes its part of the one mask; in `ipu.pmap` and
    `shard_map` each replica makes its own from the seed that it gets.

    Args:
        x: of a float dtype.
        seed: a key of `jax.random`, an integer or two integers; None: the next seed after
            `ipu.reset_seed`, a different one in each run.
        rate: at least 0, less than 1.
        noise_shape: the shape of the mask, which broadcasts to that of x: each size is that of x,
            or 1 if all elements along the dimension share a decision. None: the shape of x.
    Returns:
        an array of the shape and dtype of x.
    Raises:
        ConfigError: an argument is invalid.

    Source: `poprand::dropout` and `shapedDropout` of PopLibs; `rand_ops.dropout` of Graphcore's
    TensorFlow.

    Example:
        >>> y = ipu.nn.dropout(jnp.ones((4, 8)), jax.random.key(1), rate=0.5, noise_shape=(4, 1))
        >>> sorted({*y.ravel().tolist()}) in ([0.0, 2.0], [0.0], [2.0])
        True
    """
    x = floats("nn.dropout", "x", x)
    shape = _check(x, rate, noise_shape)
    words = None if seed is None else seed_words("nn.dropout", seed)
    if rate == 0 or x.size == 0:
        return x
    words = seed_words("nn.dropout", None) if words is None else words
    made: jax.Array = DROPOUT(x, words, rate=float(rate), noise_shape=shape)
    return made


def _check(x: jax.Array, rate: Any, noise_shape: Any) -> tuple[int, ...]:
    """The mask's shape."""
    if not 0 <= real_number(rate) < 1:
        raise ConfigError(
            f"[nn.dropout] needs a rate from 0 up to, but not including, 1; got rate={rate}. "
            "Use 0.5, for example."
        )
    if noise_shape is None:
        return x.shape
    shape = tuple(noise_shape) if isinstance(noise_shape, Iterable) else (noise_shape,)
    fits = len(shape) == x.ndim and all(
        whole_number(a) in (1, b) for a, b in zip(shape, x.shape, strict=True)
    )
    if not fits:
        raise ConfigError(
            f"[nn.dropout] needs a noise_shape of sizes that are 1 or those of x {x.shape}; got "
            f"noise_shape={noise_shape}. Pass one size for each dimension."
        )
    return tuple(map(int, shape))
