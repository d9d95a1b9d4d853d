"""What a generator of calls returns, and the table of generators."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

Function = Callable[..., Any]
Numbers = np.random.Generator

DTYPES = {"float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
#: Sizes of dimensions; 0 is drawn rarely.
SIZES = (1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 16)


@dataclass(frozen=True)
class Case:
    """One call of one function.

    Attributes:
        function: of arrays; what it returns is a pytree of arrays.
        reference: the same in float64, of other code; JAX can differentiate it.
        draw: operands, other ones each time it is called, of the same shapes and dtypes.
        smooth: operands that it is differentiated by.
        order: how often.
        compiled: whether jit takes the reference; else it sees the integers as NumPy arrays.
        factor: of the error that is allowed.
        text: the arguments, to be read.
    """

    function: Function
    reference: Function
    draw: Callable[[Numbers], tuple[Any, ...]]
    smooth: tuple[int, ...] = (0,)
    order: int = 2
    compiled: bool = True
    factor: float = 1.0
    text: str = ""


class Draw:
    """Random choices of one case."""

    def __init__(self, seed: str):
        self.rng = random.Random(seed)

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def integer(self, low: int, high: int) -> int:
        """Both ends are drawn, too."""
        return self.rng.randint(low, high)

    def dtype(self, *names: str) -> Any:
        """Half of them float32."""
        names = names or tuple(DTYPES)
        return DTYPES["float32" if self.chance(0.5) else self.rng.choice(names)]

    def shape(self, least: int, most: int, limit: int = 600, empty: float = 0.03) -> tuple:
        """A shape with a rank from least to most and at most `limit` elements."""
        shape: list[int] = []
        for _ in range(self.integer(least, most)):
            size = self.rng.choice(SIZES)
            shape.append(size if math.prod([*shape, size]) <= limit else 1)
        if shape and self.chance(empty):
            shape[self.rng.randrange(len(shape))] = 0
        return tuple(shape)

    def numbers(self) -> Numbers:
        return np.random.default_rng(self.rng.getrandbits(64))


#: "nn.gelu" -> its generator
GENERATORS: dict[str, Callable[[Draw], Case]] = {}


def generator(*names: str) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Registers a generator; one of several functions also gets the name."""

    def register(make: Callable[..., Case]) -> Callable[..., Case]:
        for name in names:
            assert name not in GENERATORS, name
            several = len(names) > 1
            GENERATORS[name] = (lambda d, n=name: make(d, n)) if several else make
        return make

    return register


def normal(numbers: Numbers, shape: Sequence[int], dtype: Any, scale: float = 1.0) -> np.ndarray:
    return (scale * numbers.standard_normal(tuple(shape))).astype(dtype)
