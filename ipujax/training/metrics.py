"""Metrics that are reduced on the device: over the steps of a call, and over calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from ipujax.errors import ConfigError, check_choice

MEAN, SUM, LAST, MAX, MIN = "mean", "sum", "last", "max", "min"
REDUCTIONS = (MEAN, SUM, LAST, MAX, MIN)
_START = {MEAN: 0, SUM: 0, LAST: 0, MAX: -jnp.inf, MIN: jnp.inf}

#: One reduction for all, or one for each name ("mean" for the others).
Choice = str | Mapping[str, str]


def check(choice: Choice) -> None:
    for kind in [choice] if isinstance(choice, str) else choice.values():
        check_choice("training", "metrics", kind, REDUCTIONS, ConfigError)


def kind_of(choice: Choice, name: str) -> str:
    return choice if isinstance(choice, str) else choice.get(name, MEAN)


def named(metrics: Any) -> dict[str, jax.Array]:
    """Metrics of one step: a mapping of names, or one array, which is called "loss".

    Raises:
        ConfigError: a metric that is not a single number.
    """
    found = metrics if isinstance(metrics, Mapping) else {"loss": metrics}
    arrays = {str(name): jnp.asarray(x) for name, x in found.items()}
    for name, x in arrays.items():
        if x.shape != ():
            raise ConfigError(
                f"[training] needs a number for each metric; got shape {x.shape} for {name!r}. "
                "Reduce it in the step."
            )
    return arrays


def first(choice: Choice, like: Mapping[str, Any]) -> dict[str, jax.Array]:
    """Values before the first step, in float32."""
    return {name: jnp.float32(_START[kind_of(choice, name)]) for name in like}


def add(
    choice: Choice, held: Mapping[str, jax.Array], new: Mapping[str, jax.Array]
) -> dict[str, jax.Array]:
    """Values after one more step."""
    return {
        name: _combine(kind_of(choice, name), held[name], new[name].astype(jnp.float32))
        for name in held
    }


def _combine(kind: str, held: Any, new: Any) -> Any:
    if kind in (MEAN, SUM):
        return held + new
    if kind == MAX:
        return jnp.maximum(held, new)
    return jnp.minimum(held, new) if kind == MIN else new


class Total:
    """Reduces metrics over calls, on the host."""

    def __init__(self, choice: Choice):
        self._choice = choice
        self._held: dict[str, float] = {}
        self.steps = 0

    def add(self, held: Mapping[str, Any], steps: int) -> None:
        """Adds what the device held after a call of this number of steps."""
        if steps == 0:
            return
        for name, value in held.items():
            new, old = float(value), self._held.get(name)
            kind = kind_of(self._choice, name)
            if old is not None and kind in (MEAN, SUM):
                new += old
            elif old is not None and kind in (MAX, MIN):
                new = (max if kind == MAX else min)(old, new)
            self._held[name] = new
        self.steps += steps

    def values(self) -> dict[str, float]:
        return {
            name: value / self.steps if kind_of(self._choice, name) == MEAN else value
            for name, value in self._held.items()
        }
