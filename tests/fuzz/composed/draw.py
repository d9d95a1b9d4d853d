"""What one layer or one transform of a composition is made with."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

T = TypeVar("T")

#: (weights, x) -> y, where x and y are float32 [ROWS, COLUMNS].
Function = Callable[[Any, Any], Any]
ROWS, COLUMNS = 3, 4


class Draw:
    """The choices of one step; those of the program and of its oracle are equal.

    Attributes:
        name: of the step, unlike that of any other.
        platform: of the devices that the program runs on.
        is_ours: whether the step is made of ipujax; the oracle's is plain.
        is_like_ours: whether a plain step is made of the transform of JAX that is most like it.
    """

    def __init__(
        self, seed: int, name: str, platform: str, is_ours: bool, is_like_ours: bool = False
    ):
        self._seed = seed
        self._rng = random.Random(f"composed {seed} {name}")
        self.name = name
        self.platform = platform
        self.is_ours = is_ours
        self.is_like_ours = is_like_ours

    def again(self) -> Draw:
        """The same choices once more."""
        return Draw(self._seed, self.name, self.platform, self.is_ours, self.is_like_ours)

    def choice(self, options: Sequence[T]) -> T:
        return self._rng.choice(options)

    def chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def devices(self) -> list[jax.Device]:
        return jax.devices(self.platform)[:2]


def direction() -> jax.Array:
    """A cotangent or a tangent that no symmetry hides."""
    return jnp.cos(jnp.arange(ROWS * COLUMNS, dtype=jnp.float32)).reshape(ROWS, COLUMNS)


def doubled(x: Any) -> Any:
    """Two different examples, micro-batches or shards: a new first dimension."""
    return jax.tree.map(lambda leaf: jnp.stack([leaf, leaf * 0.5]), x)


def merged(y: Any) -> Any:
    """One result of two."""
    return y[0] + 0.5 * y[1]
