"""Values of a program: their names in the source, types, and how exact they are."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tests.fuzz.values import EXACT_LIMIT, FLOATS, INTEGERS

#: Floats are held below this before they are used again, far from any overflow.
LARGEST = {"float32": 2.0**20, "float16": 2.0**9, "bfloat16": 2.0**20, "complex64": 2.0**16}
#: Complex numbers are exact where both of their float32 parts are.
_LIMITS = {**EXACT_LIMIT, "complex64": EXACT_LIMIT["float32"]}
_FINEST = 2.0**-9


@dataclass(frozen=True)
class Facts:
    """What holds for all elements.

    Attributes:
        bound: of their magnitude; infinite for integers that may wrap around.
        grid: floats are whole multiples of it, exact in every order of evaluation; 0: rounded.
    """

    bound: float = math.inf
    grid: float = 1.0

    def union(self, *others: Facts) -> Facts:
        """Of elements each of which comes from one of these."""
        both = (self, *others)
        return Facts(max(f.bound for f in both), min(f.grid for f in both))

    def plus(self, other: Facts) -> Facts:
        return Facts(self.bound + other.bound, min(self.grid, other.grid))

    def times(self, other: Facts) -> Facts:
        if 0.0 in (self.bound, other.bound):
            return Facts(0.0, self.grid * other.grid)
        return Facts(self.bound * other.bound, self.grid * other.grid)

    def repeated(self, count: int) -> Facts:
        """Of a sum of `count` such values."""
        return Facts(self.bound * max(1, count), self.grid)

    def rounded(self) -> Facts:
        return Facts(self.bound, 0.0)

    def stored(self, dtype: str) -> Facts:
        """As a value of this dtype: rounded where its mantissa is too short."""
        if dtype not in _LIMITS:
            return Facts(self.bound)
        fits = self.grid >= _FINEST and self.bound / self.grid <= _LIMITS[dtype]
        return self if fits else self.rounded()


@dataclass(frozen=True)
class Value:
    """A value that a program has named.

    Attributes:
        maker: the op that it came from, or "argument", "carry", "slice", "counter".
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    facts: Facts
    maker: str = "argument"

    def __str__(self) -> str:
        return self.name

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_integer(self) -> bool:
        return self.dtype in INTEGERS

    @property
    def is_bool(self) -> bool:
        return self.dtype == "bool"

    @property
    def is_complex(self) -> bool:
        return self.dtype == "complex64"

    @property
    def exact(self) -> bool:
        return self.facts.grid > 0

    @property
    def bound(self) -> float:
        return self.facts.bound
