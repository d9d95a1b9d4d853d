"""Writes a random program line by line, each line traced at once to learn its result's type."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.fuzz.generator import NotApplicableError
from tests.fuzz.programs.values import LARGEST, Facts, Value

Op = Callable[["Writer"], object]

#: All ops by name: the function that writes one, and how often it is drawn.
OPS: dict[str, tuple[Op, float]] = {}

#: Elements that one value may have.
MAX_ELEMENTS = 40_000
NAMES = {"jax": jax, "jnp": jnp, "np": np, "lax": lax}
_NAME = re.compile(r"\b[a-z]+\d+\b")


def op(weight: float = 1.0) -> Callable[[Op], Op]:
    """Registers an op that is drawn with a frequency proportional to `weight`."""

    def register(function: Op) -> Op:
        assert function.__name__ not in OPS
        OPS[function.__name__] = (function, weight)
        return function

    return register


@dataclass
class Shared:
    """What all blocks of one program have in common.

    Attributes:
        dims: the few dimensions that shapes are made of, so that shapes meet.
        pairs: how often a (producer, consumer, context) was written.
        names: everything that the source may name: modules, arguments, values so far.
        types: shape and dtype of each value.
        rejected: by op, how often JAX refused what was written (a fault of the op's).
        reverse: whether the program must have a gradient by reverse differentiation.
    """

    rng: random.Random
    dims: tuple[int, ...] = (3, 4)
    dtypes: tuple[str, ...] = ("float32",)
    max_size: int = 600
    reverse: bool = False
    pairs: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    names: dict[str, Any] = field(default_factory=lambda: dict(NAMES))
    types: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    counter: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass
class Writer:
    """A block of a program under construction.

    Attributes:
        values: what its lines may use: its own values and those of the blocks around it.
        context: the control flow and transforms around it, outermost first.
        op: the op that is being written.
    """

    shared: Shared
    values: list[Value] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    context: tuple[str, ...] = ()
    op: str = ""

    # What is drawn.

    @property
    def rng(self) -> random.Random:
        return self.shared.rng

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def integer(self, low: int, high: int) -> int:
        """From low to high, both possible."""
        return self.rng.randint(low, high)

    def choice(self, items: Sequence[Any]) -> Any:
        return self.rng.choice(items)

    def dim(self) -> int:
        return self.choice(self.shared.dims)

    def shape(self, rank: int | None = None, most: int | None = None) -> tuple[int, ...]:
        rank = self.choice((0, 1, 1, 2, 2, 2, 3)) if rank is None else rank
        dims: list[int] = []
        room = most or self.shared.max_size
        for _ in range(rank):
            dims.append(self.choice([d for d in self.shared.dims if d <= max(1, room)] or [1]))
            room //= max(1, dims[-1])
        return tuple(dims)

    def axis(self, value: Value) -> int:
        if not value.rank:
            raise NotApplicableError
        return self.integer(0, value.rank - 1)

    def pick(self, wanted: Callable[[Value], bool] = lambda value: True) -> Value:
        """One of the values so far, later ones more often.

        Raises:
            NotApplicableError: there is none.
        """
        found = [v for v in self.values if wanted(v)]
        if not found:
            raise NotApplicableError
        return self.choice(found[-4:] if self.chance(0.6) else found)

    def number(self, wanted: Callable[[Value], bool] = lambda value: True) -> Value:
        """A value that is not a bool."""
        return self.pick(lambda v: not v.is_bool and wanted(v))

    def real(self, wanted: Callable[[Value], bool] = lambda value: True) -> Value:
        """A float value, mostly; or an integer."""
        return self.pick(lambda v: (v.is_float or v.is_integer) and wanted(v))

    def floating(self, wanted: Callable[[Value], bool] = lambda value: True) -> Value:
        return self.pick(lambda v: v.is_float and wanted(v))

    # What is written.

    def fresh(self, letter: str) -> str:
        self.shared.counter += 1
        return f"{letter}{self.shared.counter}"

    def put(self, source: str, facts: Facts, small: bool = True) -> Value:
        """Appends `name = source`, held small unless that is not wanted.

        Raises:
            NotApplicableError: the result is too large.
        """
        value = self._assign(source, facts)
        limit = LARGEST.get(value.dtype)
        if small and limit is not None and value.bound > limit:
            return self._held(value, limit)
        self.values.append(value)
        return value

    def _assign(self, source: str, facts: Facts) -> Value:
        return self.bind(eval(source, self.shared.names), source, facts)

    def bind(self, result: Any, source: str, facts: Facts) -> Value:
        """A line for a result that was computed: not yet among the values."""
        name = self.fresh("v")
        value = self.declare(name, result, facts, self.op)
        if value.size > MAX_ELEMENTS or value.rank > 5:
            raise NotApplicableError
        self.lines.append(f"{name} = {source}")
        self.uses(source)
        return value

    def declare(self, name: str, result: Any, facts: Facts, maker: str) -> Value:
        """Makes a tracer known under its name."""
        shape, dtype = jnp.shape(result), str(jnp.result_type(result))
        self.shared.names[name] = result
        self.shared.types[name] = (shape, dtype)
        return Value(name, shape, dtype, facts.stored(dtype), maker)

    def uses(self, source: str, consumer: str = "") -> None:
        """Counts who consumes what in a piece of source."""
        makers = {v.name: v.maker for v in self.values}
        around = "/".join(self.context)
        for name in set(_NAME.findall(source)) & makers.keys():
            self.shared.pairs[makers[name], consumer or self.op, around] += 1

    def _held(self, value: Value, limit: float) -> Value:
        """A line more that makes the value small, as people scale or clip."""
        bound = self.choice((4, 8))
        if value.is_complex or (value.bound < 2**30 and self.chance(0.3)):
            shift = 2.0 ** -int(np.ceil(np.log2(value.bound / bound)))
            facts = Facts(value.bound * shift, value.facts.grid * shift)
            source = f"{value} * {shift!r}"
        else:
            facts = Facts(bound, min(value.facts.grid, 1.0))
            source = f"jnp.clip({value}, -{bound}, {bound})"
        held = self._assign(source, facts)
        self.values.append(held)
        return held

    def block(self, kind: str) -> Writer:
        """A block inside of this one; it sees this one's values."""
        return Writer(self.shared, list(self.values), [], (*self.context, kind))

    def nest(self, head: str, block: Writer, result: str) -> None:
        """Appends a function of a block's lines."""
        self.lines.append(f"def {head}:")
        self.lines += [f"    {line}" for line in (*block.lines, f"return {result}")]

    def define(self, first_line: int) -> None:
        """Runs the lines from this one on, which hold the definition of a function."""
        exec("\n".join(self.lines[first_line:]), self.shared.names)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Undoes everything if the op turns out not to apply."""
        values, lines, pairs = list(self.values), list(self.lines), self.shared.pairs.copy()
        try:
            yield
        except BaseException:
            self.values, self.lines, self.shared.pairs = values, lines, pairs
            raise

    def grow(self, num_ops: int) -> None:
        """Appends the given number of ops; those that do not apply are drawn again."""
        names = list(OPS)
        weights = [OPS[name][1] for name in names]
        taken = tries = 0
        while taken < num_ops and tries < 8 * num_ops:
            tries += 1
            name = self.rng.choices(names, weights)[0]
            taken += self.write(name)

    def write(self, name: str) -> bool:
        """Writes this op if it applies."""
        self.op = name
        try:
            with self.attempt():
                OPS[name][0](self)
        except NotApplicableError:
            return False
        except (TypeError, ValueError, IndexError, ZeroDivisionError) as error:
            self.shared.rejected[f"{name}: {str(error)[:300]}"] += 1
            return False
        return True
