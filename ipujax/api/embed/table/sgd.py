"""`HostEmbeddingSGD`: how gradients change the rows of a table in the host's memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ipujax.api.arguments import LARGEST_INT32, whole_number
from ipujax.errors import CallbackError, ConfigError

#: Runs of equal ids up to this length are added up together, longer ones one by one.
_MOST_PASSES = 8

#: Ids of rows [n], and the float32 values [n, columns] to subtract from them.
Change = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class HostEmbeddingSGD:
    """Stochastic gradient descent for `ipujax.HostEmbedding`, with or without accumulation.

    A row becomes row - learning_rate * sum of its gradients. Sums are float32; a row of float16 or
    bfloat16 is rounded once per update.

    Args:
        learning_rate: a number of at least 0, or a function on the host that takes the number of
            updates so far and returns one. `HostEmbedding.update` can override it.
        accumulation_factor: the gradients of this many steps are added up and applied together. A
            step lasts from one token of lookups to the next: all micro-batches of a pipeline and
            all replicas are one step.
    Raises:
        ConfigError: a learning rate that is negative, NaN or infinite, or a factor below 1.

    Source: `HostEmbeddingOptimizerSpec` and `HostEmbeddingSGDGAOptimizerSpec` of Graphcore's
    TensorFlow.

    Example:
        >>> ipu.HostEmbeddingSGD(0.1, accumulation_factor=4).accumulation_factor
        4
    """

    learning_rate: float | Callable[[int], float]
    accumulation_factor: int = 1

    def __post_init__(self) -> None:
        if not callable(self.learning_rate):
            reason = _wrong(self.learning_rate)
            if reason:
                raise ConfigError(reason)
        factor = whole_number(self.accumulation_factor)
        if factor is None or not 1 <= factor <= LARGEST_INT32:
            raise ConfigError(
                "[HostEmbeddingSGD] needs an accumulation_factor of at least 1; got "
                f"{self.accumulation_factor!r}. Pass a number of steps."
            )
        object.__setattr__(self, "accumulation_factor", factor)

    def rate(self, num_updates: int) -> float:
        """The learning rate of the next update."""
        rate = self.learning_rate(num_updates) if callable(self.learning_rate) else None
        return checked_rate(self.learning_rate if rate is None else rate)


def checked_rate(rate: object) -> float:
    """The learning rate as a number; a CallbackError if it is invalid."""
    reason = _wrong(rate)
    if reason:
        raise CallbackError(reason)
    return float(rate)  # type: ignore[arg-type]


def _wrong(rate: object) -> str:
    try:
        number = float(rate)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if math.isfinite(number) and number >= 0 and not isinstance(rate, (bool, str)):
        return ""
    return (
        f"[HostEmbeddingSGD] needs a learning rate of at least 0; got {rate!r}. Pass a finite "
        "number."
    )


def combine(changes: Sequence[Change]) -> Change:
    """Joins changes into one that has each row once, with sorted ids, in float32."""
    ids, values = changes[0]
    if len(changes) > 1:
        ids = np.concatenate([ids for ids, _ in changes])
        values = np.concatenate([values for _, values in changes])
    order = np.argsort(ids, kind="stable")
    in_order = np.take(ids, order)
    is_first = np.ones(len(ids), bool)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    begins = np.flatnonzero(is_first)
    return np.take(in_order, begins), _sums(values, order, begins)


def _sums(values: np.ndarray, order: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """For each run order[begin:next begin], the sum of its values, in order."""
    lengths = np.diff(begins, append=len(order))
    sums = np.take(values, np.take(order, begins), axis=0)
    longer = np.flatnonzero(lengths > 1)
    for place in range(1, _MOST_PASSES):
        if not len(longer):
            return sums
        sums[longer] += np.take(values, np.take(order, begins[longer] + place), axis=0)
        longer = longer[lengths[longer] > place + 1]
    for run in longer:
        rest = order[begins[run] + _MOST_PASSES : begins[run] + lengths[run]]
        sums[run] += np.take(values, rest, axis=0).sum(axis=0)
    return sums


def subtract(rows: np.ndarray, change: Change) -> np.ndarray:
    """The new values of rows[ids], in the table's dtype; `rows` is not changed."""
    ids, values = change
    return (np.take(rows, ids, axis=0).astype(np.float32) - values).astype(rows.dtype)
