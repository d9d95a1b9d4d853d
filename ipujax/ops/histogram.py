"""`histogram`, `histogram_update` and `fixed_width_bins`: counts of values between levels."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.arguments import LARGEST_INT32, array, flag, whole_number
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op


def _plain(x: jax.Array, levels: jax.Array, *, absolute: bool) -> jax.Array:
    """A NaN is above all levels."""
    found = jnp.searchsorted(levels, jnp.abs(x) if absolute else x, side="right")
    return jnp.zeros(levels.size + 1, jnp.float32).at[found].add(1.0)


_HISTOGRAM = Op("histogram", _plain, dimensions="n, L -> M")


def fixed_width_bins(inputs: Any, n_bins: int) -> jax.Array:
    """Evenly spaced levels from the smallest to the largest input, for `histogram`.

    Args:
        inputs: [n] of a floating-point dtype, n at least 1.
        n_bins: number of levels, at least 1.
    Returns:
        [n_bins] of the dtype of inputs.
    Raises:
        ConfigError: no levels, or inputs of a wrong rank or dtype.

    Source: `statistics_ops.fixed_width_bins` of Graphcore's TensorFlow.

    Example:
        >>> print(ipu.ops.fixed_width_bins(jnp.array([3.0, 1.0, 2.0]), 5))
        [1.  1.5 2.  2.5 3. ]
    """
    where = "fixed_width_bins"
    x = _vector(where, "inputs", inputs)
    num_levels = whole_number(n_bins)
    if num_levels is None or not 1 <= num_levels <= LARGEST_INT32 or not x.size:
        raise ConfigError(
            f"[ipu.ops.{where}] needs inputs of at least 1 element and n_bins of at least 1, at "
            f"most 2**31 - 1; got {x.size} and {n_bins!r}. Pass such values."
        )
    return jnp.linspace(jnp.min(x), jnp.max(x), num_levels, dtype=x.dtype)


def histogram(inputs: Any, levels: Any, absolute_of_input: bool = False) -> jax.Array:
    """Counts the inputs between levels.

    Entry 0 counts inputs below levels[0], entry i those of at least levels[i - 1] and below
    levels[i], the last entry those of at least the last level, and NaN.

    Args:
        inputs: [n] of a floating-point dtype.
        levels: [m] of the dtype of inputs, ascending, m at least 1. If levels known only at run
            time do not ascend, the counts are meaningless.
        absolute_of_input: whether to count the absolute values of the inputs.
    Returns:
        float32 [m + 1]; exact up to 2**24 in one entry. Its derivatives are zero.
    Raises:
        ConfigError: wrong ranks or dtypes; known levels that do not ascend, or that are NaN.

    Source: `statistics_ops.histogram` of Graphcore's TensorFlow, `popops::histogram`.

    Example:
        >>> print(ipu.ops.histogram(jnp.array([-1.0, 0.5, 2.0, 7.0]), jnp.array([0.0, 2.0])))
        [1. 1. 2.]
    """
    x, edges = _operands("histogram", inputs, levels)
    absolute = flag("ipu.ops.histogram", "absolute_of_input", absolute_of_input)
    return _HISTOGRAM(x, edges, absolute=absolute)


def histogram_update(
    hist: Any, inputs: Any, levels: Any, absolute_of_input: bool = False
) -> jax.Array:
    """A histogram with more inputs counted.

    Args:
        hist: float32 [m + 1], what `histogram` returned for the same levels.
        inputs, levels, absolute_of_input: as for `histogram`.
    Returns:
        float32 [m + 1].
    Raises:
        ConfigError: wrong ranks or dtypes.

    Source: `statistics_ops.histogram_update` of Graphcore's TensorFlow, `popops::histogram`.

    Example:
        >>> counts = ipu.ops.histogram(jnp.array([1.0, 3.0]), jnp.array([2.0]))
        >>> print(ipu.ops.histogram_update(counts, jnp.array([-5.0]), jnp.array([2.0]), True))
        [1. 2.]
    """
    where = "histogram_update"
    x, edges = _operands(where, inputs, levels)
    counts = array(f"ipu.ops.{where}", "hist", hist)
    if counts.shape != (edges.size + 1,) or counts.dtype != jnp.float32:
        raise ConfigError(
            f"[ipu.ops.{where}] needs hist of float32 [{edges.size + 1}], one entry more than "
            f"levels; got {counts.dtype} {list(counts.shape)}. Pass a result of ipu.ops.histogram."
        )
    absolute = flag(f"ipu.ops.{where}", "absolute_of_input", absolute_of_input)
    return counts + _HISTOGRAM(x, edges, absolute=absolute)


def _operands(where: str, inputs: Any, levels: Any) -> tuple[jax.Array, jax.Array]:
    x, edges = _vector(where, "inputs", inputs), _vector(where, "levels", levels)
    if x.dtype != edges.dtype or not edges.size:
        raise ConfigError(
            f"[ipu.ops.{where}] needs at least one level, of the dtype of inputs; got {edges.size} "
            f"of {edges.dtype} for inputs of {x.dtype}. Cast the levels."
        )
    if not isinstance(edges, jax.core.Tracer):
        known = np.asarray(edges).astype(np.float64)
        if np.isnan(known).any() or (known[1:] < known[:-1]).any():
            raise ConfigError(
                f"[ipu.ops.{where}] needs levels that ascend; got {known.tolist()}. Sort them."
            )
    return x, edges


def _vector(where: str, name: str, value: Any) -> jax.Array:
    vector = array(f"ipu.ops.{where}", name, value)
    if vector.ndim != 1 or not jnp.issubdtype(vector.dtype, jnp.floating):
        raise ConfigError(
            f"[ipu.ops.{where}] needs {name} [n] of a floating-point dtype; got {vector.dtype} "
            f"{list(vector.shape)}. Use jnp.ravel or astype."
        )
    return vector
