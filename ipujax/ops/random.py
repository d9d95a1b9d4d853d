"""Random arrays from the generator of the tiles: `random_uniform`, `random_normal` and others.

On IPUs the numbers are poprand's, elsewhere those of `jax.random`: the distributions are equal, the
numbers are not. A seed always gives the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import dtype_name, real_number, whole_number
from ipujax.api.configure.seeds import seed_words
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op

_FLOATS = ("float32", "float16", "bfloat16")


def _key(words: jax.Array) -> jax.Array:
    return jax.random.wrap_key_data(words, impl="threefry2x32")


def _plain_uniform(
    seed: jax.Array, *, shape: Any, dtype: str, low: float, high: float
) -> jax.Array:
    if dtype == "int32":
        bits = jax.random.bits(_key(seed), tuple(shape), jnp.uint32)
        count = int(high) - int(low) + 1
        drawn = bits if count == 2**32 else bits % jnp.uint32(count)
        return (drawn + jnp.uint32(int(low) % 2**32)).astype(jnp.int32)
    return jax.random.uniform(_key(seed), tuple(shape), jnp.float32, low, high).astype(dtype)


def _plain_normal(
    seed: jax.Array, *, shape: Any, dtype: str, mean: float, deviation: float
) -> jax.Array:
    drawn = jax.random.normal(_key(seed), tuple(shape), jnp.float32)
    return (mean + deviation * drawn).astype(dtype)


def _plain_truncated(
    seed: jax.Array, *, shape: Any, dtype: str, mean: float, deviation: float, alpha: float
) -> jax.Array:
    drawn = jax.random.truncated_normal(_key(seed), -alpha, alpha, tuple(shape), jnp.float32)
    return (mean + deviation * drawn).astype(dtype)


def _plain_bernoulli(seed: jax.Array, *, shape: Any, dtype: str, probability: float) -> jax.Array:
    return jax.random.bernoulli(_key(seed), probability, tuple(shape)).astype(dtype)


def _op(name: str, plain: Callable[..., jax.Array]) -> Op:
    """One draw for each seed under vmap, in a loop."""

    def batch(size: int, operands: Any, dims: Any, **parameters: Any) -> Any:
        seeds = jnp.moveaxis(operands[0], dims[0], 0)
        return [lax.map(lambda seed: op(seed, **parameters), seeds)], [0]

    op = Op(f"random_{name}", plain, batch=batch)
    return op


_UNIFORM = _op("uniform", _plain_uniform)
_NORMAL = _op("normal", _plain_normal)
_TRUNCATED = _op("truncated_normal", _plain_truncated)
_BERNOULLI = _op("bernoulli", _plain_bernoulli)


def random_uniform(
    shape: Sequence[int],
    dtype: Any = jnp.float32,
    low: float = 0.0,
    high: float = 1.0,
    seed: Any = None,
) -> jax.Array:
    """Uniform numbers from low to high.

    Args:
        shape: of the result.
        dtype: float32, float16, bfloat16 or int32.
        low, high: numbers; for int32 both are included.
        seed: a JAX key, an integer or two integers; None: the next seed after `ipu.reset_seed`.
    Returns:
        an array of the shape and dtype.
    Raises:
        ConfigError: an invalid dtype or seed, or high below low.

    Source: `poprand::uniform`.

    Example:
        >>> drawn = ipu.ops.random_uniform((100,), jnp.int32, 1, 6, seed=jax.random.key(0))
        >>> sorted(set(drawn.tolist()))
        [1, 2, 3, 4, 5, 6]
    """
    where = "random_uniform"
    first, last = real_number(low), real_number(high)
    if not (math.isfinite(first) and math.isfinite(last) and first <= last):
        raise ConfigError(
            f"[ipu.ops.{where}] needs finite numbers low <= high; got {low} and {high}. Swap them."
        )
    name = _dtype(where, dtype, (*_FLOATS, "int32"))
    if name == "int32" and not -(2**31) <= first <= last < 2**31:
        raise ConfigError(
            f"[ipu.ops.{where}] needs bounds that are int32; got {low} and {high}. Narrow them."
        )
    return _drawn(_UNIFORM, where, seed, shape, name, low=first, high=last)


def random_normal(
    shape: Sequence[int],
    dtype: Any = jnp.float32,
    mean: float = 0.0,
    stddev: float = 1.0,
    seed: Any = None,
) -> jax.Array:
    """Normally distributed numbers.

    Args:
        shape: of the result.
        dtype: float32, float16 or bfloat16.
        mean, stddev: numbers; the standard deviation is not negative.
        seed: a JAX key, an integer or two integers; None: the next seed after `ipu.reset_seed`.
    Returns:
        an array of the shape and dtype.
    Raises:
        ConfigError: an invalid dtype or seed, or a negative deviation.

    Source: `poprand::normal`.

    Example:
        >>> drawn = ipu.ops.random_normal((1000,), mean=3.0, seed=1)
        >>> bool(abs(drawn.mean() - 3) < 0.2)
        True
    """
    where = "random_normal"
    _check_deviation(where, mean, stddev)
    name = _dtype(where, dtype, _FLOATS)
    return _drawn(_NORMAL, where, seed, shape, name, mean=mean, deviation=stddev)


def random_truncated_normal(
    shape: Sequence[int],
    dtype: Any = jnp.float32,
    mean: float = 0.0,
    stddev: float = 1.0,
    alpha: float = 2.0,
    seed: Any = None,
) -> jax.Array:
    """Normally distributed numbers within alpha standard deviations of the mean.

    Args:
        shape: of the result.
        dtype: float32, float16 or bfloat16.
        mean, stddev: numbers; the standard deviation is not negative.
        alpha: greater than 0.
        seed: a JAX key, an integer or two integers; None: the next seed after `ipu.reset_seed`.
    Returns:
        an array of the shape and dtype.
    Raises:
        ConfigError: an invalid dtype or seed, a negative deviation, or alpha of 0 or less.

    Source: `poprand::truncatedNormal`.

    Example:
        >>> drawn = ipu.ops.random_truncated_normal((1000,), alpha=1.0, seed=1)
        >>> bool(abs(drawn).max() <= 1)
        True
    """
    where = "random_truncated_normal"
    _check_deviation(where, mean, stddev)
    if not 0 < real_number(alpha) < math.inf:
        raise ConfigError(
            f"[ipu.ops.{where}] needs alpha greater than 0; got {alpha}. Use 2, as TensorFlow does."
        )
    name = _dtype(where, dtype, _FLOATS)
    values = {"mean": mean, "deviation": stddev, "alpha": alpha}
    return _drawn(_TRUNCATED, where, seed, shape, name, **values)


def random_bernoulli(
    shape: Sequence[int], dtype: Any = jnp.float32, probability: float = 0.5, seed: Any = None
) -> jax.Array:
    """1 with the given probability, else 0.

    Args:
        shape: of the result.
        dtype: float32, float16, bfloat16 or int32.
        probability: 0 to 1.
        seed: a JAX key, an integer or two integers; None: the next seed after `ipu.reset_seed`.
    Returns:
        an array of the shape and dtype.
    Raises:
        ConfigError: an invalid dtype or seed, or a probability outside 0 to 1.

    Source: `poprand::bernoulli`.

    Example:
        >>> ipu.ops.random_bernoulli((3,), jnp.int32, 1.0).tolist()
        [1, 1, 1]
    """
    where = "random_bernoulli"
    if not 0 <= real_number(probability) <= 1:
        raise ConfigError(
            f"[ipu.ops.{where}] needs a probability from 0 to 1; got {probability}. Divide it."
        )
    name = _dtype(where, dtype, (*_FLOATS, "int32"))
    return _drawn(_BERNOULLI, where, seed, shape, name, probability=probability)


def _dtype(where: str, dtype: Any, allowed: Sequence[str]) -> str:
    name = dtype_name(dtype)
    if name not in allowed:
        raise ConfigError(
            f"[ipu.ops.{where}] needs a dtype of {', '.join(allowed)}; got {name}. Cast the result."
        )
    return name


def _check_deviation(where: str, mean: float, stddev: float) -> None:
    if not (math.isfinite(real_number(mean)) and 0 <= real_number(stddev) < math.inf):
        raise ConfigError(
            f"[ipu.ops.{where}] needs a finite mean and a deviation of 0 or more; got {mean} and "
            f"{stddev}. Pass numbers; scale the result by arrays."
        )


def _drawn(
    op: Op, where: str, seed: Any, shape: Sequence[int], dtype: str, **values: float
) -> jax.Array:
    given = shape
    sizes = list(map(whole_number, given)) if isinstance(given, Iterable) else [None]
    shape = tuple(size for size in sizes if size is not None and size >= 0)
    if len(shape) < len(sizes):
        raise ConfigError(
            f"[ipu.ops.{where}] needs a shape with sizes of 0 or more; got {given!r}. Pass a tuple."
        )
    if 0 in shape:
        return jnp.zeros(shape, dtype)
    numbers = {name: float(value) for name, value in values.items()}
    draw = partial(op, shape=shape, dtype=dtype, **numbers)
    return draw(seed_words(f"ipu.ops.{where}", seed))
