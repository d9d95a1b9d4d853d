"""Makes one random program while JAX traces it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.fuzz.values import DTYPES, FLOATS, TAME, Node, dtype_of, tame

Step = Callable[["Generator"], Sequence[Node]]

#: All steps by name; a step appends one op (or a few) to the program and returns its results.
STEPS: dict[str, tuple[Step, float]] = {}

MAX_ELEMENTS = 600


def step(weight: float = 1.0) -> Callable[[Step], Step]:
    """Registers a step that is taken with a frequency proportional to `weight`."""

    def register(function: Step) -> Step:
        assert function.__name__ not in STEPS
        STEPS[function.__name__] = (function, weight)
        return function

    return register


class NotApplicableError(Exception):
    """The step found no value that it can work on."""


@dataclass
class Generator:
    """A program under construction: what was drawn, and the values so far.

    Args:
        rng: every choice comes from it.
        depth: how many control flow ops are around.
    """

    rng: random.Random
    depth: int = 0
    nodes: list[Node] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def integer(self, low: int, high: int) -> int:
        """From low to high, both possible."""
        return self.rng.randint(low, high)

    def choice(self, items: Sequence[Any]) -> Any:
        return items[self.integer(0, len(items) - 1)]

    def shuffled(self, items: Sequence[Any]) -> list[Any]:
        items = list(items)
        self.rng.shuffle(items)
        return items

    def subset(self, items: Sequence[Any]) -> list[Any]:
        """Some of the items, in order; perhaps none."""
        return [item for item in items if self.chance(0.5)]

    def shape(self, max_rank: int = 4, max_elements: int = MAX_ELEMENTS) -> tuple[int, ...]:
        rank = self.integer(0, max_rank) if self.chance(0.9) else self.integer(0, 6)
        dims: list[int] = []
        for _ in range(rank):
            room = max_elements // max(1, math.prod(dims))
            dim = self.choice((0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 33, 130))
            if dim == 0 and self.chance(0.7):
                dim = 1
            dims.append(min(dim, max(1, room)))
        return tuple(self.shuffled(dims))

    def pick(self, wanted: Callable[[Node], bool] = lambda node: True) -> Node:
        """One of the values so far, later ones more often.

        Raises:
            NotApplicableError: there is none.
        """
        found = [node for node in self.nodes if wanted(node)]
        if not found:
            raise NotApplicableError
        if self.chance(0.5):
            found = found[-4:]
        return self.choice(found)

    def pick_float(self, exact: bool = False, special: bool = True) -> Node:
        """A float value, held small."""
        node = self.pick(
            lambda n: n.is_float and (n.exact or not exact) and (special or not n.special)
        )
        return tame(node)

    def array(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Random elements of the kind that inputs have: floats are small whole numbers."""
        rng = np.random.default_rng(self.rng.getrandbits(32))
        return random_array(rng, tuple(shape), dtype)

    def constant(self, shape: Sequence[int], dtype: str) -> Node:
        return known(self.array(shape, dtype))

    def partner(self, node: Node, exact: bool = False) -> Node:
        """Another value of the node's shape and dtype: an earlier one, or a constant."""
        found = [
            n
            for n in self.nodes
            if n.shape == node.shape and n.dtype == node.dtype and (n.exact or not exact)
        ]
        if found and self.chance(0.8):
            return tame(self.choice(found))
        if self.chance(0.3):
            one = self.constant((), node.dtype)
            return one.like(jnp.broadcast_to(one.value, node.shape))
        return self.constant(node.shape, node.dtype)

    def grow(self, num_steps: int) -> None:
        """Appends steps; those that do not apply are drawn again."""
        names = list(STEPS)
        weights = [STEPS[name][1] for name in names]
        taken = tries = 0
        while taken < num_steps and tries < 10 * num_steps:
            tries += 1
            name = self.rng.choices(names, weights)[0]
            try:
                results = STEPS[name][0](self)
            except NotApplicableError:
                continue
            self.nodes += [n for n in results if n.size <= 8 * MAX_ELEMENTS and n.rank <= 6]
            self.names.append(name)
            taken += 1


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        limit = min(8, int(TAME[dtype]))
        values = rng.integers(-limit, limit + 1, shape)
    else:
        info = np.iinfo(dtype)
        near = rng.integers(max(-9, info.min), 10, shape)
        far = rng.integers(info.min, info.max, shape, endpoint=True)
        values = np.where(rng.random(shape) < 0.7, near, far)
    return np.asarray(values).astype(dtype_of(dtype))


def known(array: np.ndarray) -> Node:
    """A node of a constant: floats with the bounds of its finite elements."""
    value = jnp.asarray(array)
    if str(value.dtype) not in FLOATS:
        return Node(value)
    wide = array.astype(np.float64)
    inside = wide[np.isfinite(wide)]
    low, high = (inside.min(), inside.max()) if inside.size else (0.0, 0.0)
    return Node(value, float(low), float(high), special=inside.size < wide.size)


@dataclass
class RandomProgram:
    """A program with its arguments, and the allowed differences of its results.

    Attributes:
        code: StableHLO bytecode, as JAX lowers it for the IPU.
        errors: for each result the absolute difference that is allowed.
    """

    seed: int
    code: bytes
    text: str
    arguments: list[np.ndarray]
    errors: list[float]
    names: list[str]


def make_arguments(g: Generator) -> list[np.ndarray]:
    arguments = []
    for _ in range(g.integer(1, 4)):
        dtype = g.choice((*FLOATS, *DTYPES))
        array = g.array(g.shape(), dtype)
        if dtype in FLOATS and array.size and g.chance(0.1):
            places = g.array(array.shape, "int32") % 5
            for k, odd in enumerate((np.nan, np.inf, -np.inf)):
                array = np.where(places == k, array.dtype.type(odd), array)
        arguments.append(np.asarray(array, array.dtype))
    return arguments


def outputs(g: Generator, num_arguments: int) -> list[Node]:
    """The last value and some more; all of them in one of three programs."""
    made = g.nodes[num_arguments:]
    if not made or g.chance(0.33):
        return made or g.nodes
    return [*[node for node in made[:-1] if g.chance(0.25)], made[-1]]


def make_program(rng: random.Random, seed: int = 0) -> RandomProgram:
    """Draws one program. Equal random numbers make equal programs."""
    from tests.fuzz import lowering, steps  # noqa: F401 (importing them registers all steps)

    g = Generator(rng)
    arguments = make_arguments(g)
    num_steps = g.integer(3, 14)
    kept: list[Node] = []

    def program(*values: Any) -> tuple[Any, ...]:
        for value, array in zip(values, arguments, strict=True):
            g.nodes.append(known(array).like(value))
        g.grow(num_steps)
        kept[:] = outputs(g, len(arguments))
        return tuple(node.value for node in kept)

    code, text = lowering.lower(program, arguments)
    return RandomProgram(seed, code, text, arguments, [n.error for n in kept], g.names)


def from_seed(seed: int) -> RandomProgram:
    return make_program(random.Random(seed), seed)
