"""`trace` and `summary`: what a program does, seen from inside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.errors import ConfigError


@contextmanager
def trace(name: str) -> Iterator[None]:
    """A span of this name in traces of `jax.profiler.trace`.

    The host's work inside is an event of its thread. Ops traced inside have the name in theirs, as
    with `jax.named_scope`.

    Args:
        name: without slashes.
    Raises:
        ConfigError: the name is empty or has a slash.

    Example:
        >>> with ipu.trace("load"):
        ...     x = jnp.ones(4)
    """
    _check_name("trace", name)
    with jax.profiler.TraceAnnotation(name), jax.named_scope(name):
        yield


@dataclass(frozen=True)
class Summary:
    """What a tensor held in one run.

    Attributes:
        name: the name passed to `summary`.
        shape: of the tensor; under `jax.vmap`, of one example.
        dtype: of the tensor.
        num_finite: elements that are neither infinite nor NaN. The statistics below are over these.
        min: the least; NaN if there are none, like the next three.
        max: the greatest.
        mean: in float32.
        std: standard deviation in float32, with a divisor of `num_finite`.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    num_finite: int
    min: float
    max: float
    mean: float
    std: float


#: The lists of the `summaries` that are open.
_open: list[list[Summary]] = []


@contextmanager
def summaries() -> Iterator[list[Summary]]:
    """Collects what `summary` finds in programs that run inside.

    Returns:
        A list that is complete, in the order of arrival, when the context ends.

    Example:
        >>> with ipu.summaries() as found:
        ...     y = jax.jit(lambda x: ipu.summary("x", x) * 2)(jnp.arange(4.0))
        >>> found[0].name, found[0].max, found[0].mean
        ('x', 3.0, 1.5)
    """
    found: list[Summary] = []
    jax.effects_barrier()  # summaries of earlier programs arrive before
    _open.append(found)
    try:
        yield found
        jax.effects_barrier()
    finally:
        # Compared by identity, as lists of equal summaries are equal.
        _open[:] = [other for other in _open if other is not found]


def summary(name: str, x: Any) -> Any:
    """Returns `x`, and reports what it holds to the `summaries` open when the program runs.

    Under `jax.grad` and `jax.vmap` it is the identity, too; each example, each iteration of a loop
    and each recomputation by `jax.checkpoint` is summarised separately. The statistics are computed
    on the device; a callback, whose time is counted, brings 20 bytes to the host.

    Args:
        name: without slashes.
        x: an array of floats or integers, of any shape but an empty one.
    Returns:
        `x`.
    Raises:
        ConfigError: the name is empty or has a slash, or `x` is not such an array.

    Example:
        >>> with ipu.summaries() as found:
        ...     slope = jax.jit(jax.grad(lambda x: ipu.summary("x", x) ** 2))(3.0)
        >>> float(slope), found[0].num_finite
        (6.0, 1)
    """
    _check_name("summary", name)
    array = jnp.asarray(x)
    if not jnp.issubdtype(array.dtype, jnp.number) or jnp.iscomplexobj(array) or array.size == 0:
        raise ConfigError(
            f"[summary] needs real numbers; got {array.dtype}{list(array.shape)} for {name!r}. "
            "Convert it, or leave the summary out."
        )
    with jax.named_scope(name):
        values = jax.lax.stop_gradient(array).astype(jnp.float32)
        finite = jnp.isfinite(values)
        count = jnp.sum(finite, dtype=jnp.int32)
        kept = jnp.where(finite, values, 0)
        mean = jnp.sum(kept) / count
        variance = jnp.sum(jnp.where(finite, (values - mean) ** 2, 0)) / count
        least = jnp.min(jnp.where(finite, values, jnp.inf))
        greatest = jnp.max(jnp.where(finite, values, -jnp.inf))
    deliver = partial(_deliver, name, array.shape, str(array.dtype))
    jax.debug.callback(deliver, count, least, greatest, mean, jnp.sqrt(variance))
    return x


def _deliver(name: str, shape: tuple[int, ...], dtype: str, count: Any, *figures: Any) -> None:
    num_finite = int(count)
    least, greatest, mean, std = (
        float(figure) if num_finite else float(np.nan) for figure in figures
    )
    for found in _open:
        found.append(Summary(name, shape, dtype, num_finite, least, greatest, mean, std))


def _check_name(what: str, name: Any) -> None:
    if not isinstance(name, str) or not name or "/" in name:
        raise ConfigError(
            f"[{what}] needs a name without slashes; got {name!r}. Pass a text such as 'load'."
        )
