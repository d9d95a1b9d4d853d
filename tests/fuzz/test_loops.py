"""Random loops of few elements, bit for bit equal to their iterations run one by one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

WIDTHS = (1, 2, 3, 5, 8, 16, 17, 31, 64, 100, 300)
COUNTS = (0, 1, 2, 3, 7, 15, 16, 17, 31, 64, 65, 100, 200, 333)
KINDS = ("fori", "dynamic fori", "while", "scan")

#: None of these makes its operand larger.
UNARY: tuple[Callable[[Any], Any], ...] = (
    jnp.sin,
    jnp.cos,
    jnp.tanh,
    jnp.negative,
    lambda x: x * 0.5,
    lambda x: jnp.abs(x) - 0.3,
    lambda x: jnp.maximum(x, 0.1),
    lambda x: jnp.sqrt(jnp.abs(x) + 1) - 1,
    lambda x: jnp.exp(-jnp.abs(x)),
    lambda x: jnp.where(x > 0.2, x - 0.4, x + 0.1),
    lambda x: x.astype(jnp.float16).astype(x.dtype),
    lambda x: 1 / (1 + x * x),
)
BINARY: tuple[Callable[[Any, Any], Any], ...] = (
    lambda x, y: x * 0.5 + y * 0.25,
    lambda x, y: jnp.tanh(x * y),
    jnp.minimum,
    lambda x, y: jnp.where(x < y, x, y * 0.5),
    lambda x, y: (x - y) * 0.5,
)


@dataclass
class RandomLoop:
    """What is carried, and how each of it changes; equal seeds make equal loops."""

    seed: int

    def __post_init__(self) -> None:
        self.rng = rng = random.Random(self.seed)
        self.width = rng.choice(WIDTHS)
        numbers = np.random.default_rng(self.seed)
        self.carry = [self._array(numbers) for _ in range(rng.randint(1, 3))]
        self.changes = [
            [self._change() for _ in range(rng.randint(1, 4))] for _ in range(len(self.carry))
        ]
        self.count = rng.choice(COUNTS)
        self.rows = numbers.normal(size=(self.count, self.width)).astype(np.float32)

    def _array(self, numbers: np.random.Generator) -> np.ndarray:
        shape = self.rng.choice([(), (self.width,), (self.width,)])
        dtype = self.rng.choice([np.float32, np.float32, np.float32, np.float16, np.int32])
        if dtype is np.int32:
            return numbers.integers(-50, 50, shape).astype(dtype)
        return numbers.normal(size=shape).astype(dtype)

    def _change(self) -> tuple[Any, int | None, bool]:
        """An op, the number of its other operand, and whether the count is added."""
        adds = self.rng.random() < 0.2
        if self.rng.random() < 0.5:
            return self.rng.choice(UNARY), None, adds
        return self.rng.choice(BINARY), self.rng.randrange(len(self.carry)), adds

    def body(self, i: Any, carry: Sequence[Any]) -> list[Any]:
        return [self._changed(i, carry, k) for k in range(len(carry))]

    def _changed(self, i: Any, carry: Sequence[Any], k: int) -> Any:
        value, dtype = carry[k], carry[k].dtype
        for op, other, adds in self.changes[k]:
            if dtype == jnp.int32:
                value = value * 3 + i if adds else (value ^ (value >> 3)) + 1
                continue
            if other is None:
                value = op(value).astype(dtype)
            else:
                second = carry[other] if carry[other].ndim <= value.ndim else 0.3
                value = op(value, jnp.asarray(second).astype(dtype))
            if adds:
                value = value + (i % 7).astype(dtype) * jnp.asarray(0.01, dtype)
        return value

    def row(self, carry: Sequence[Any], x: Any) -> Any:
        return x * 2 + carry[0].astype(jnp.float32)

    def whole(self, kind: str) -> list[Any]:
        def fori(count: Any, carry: Any) -> Any:
            return lax.fori_loop(0, count, self.body, carry)

        def counted(count: Any, carry: Any) -> Any:
            return lax.while_loop(
                lambda state: state[0] < count,
                lambda state: (state[0] + 1, self.body(*state)),
                (jnp.int32(0), carry),
            )[1]

        def step(state: Any, x: Any) -> Any:
            i, carry = state
            carry = self.body(i, carry)
            return (i + 1, carry), (carry[0], self.row(carry, x))

        if kind == "scan":
            (_, carry), stacked = jax.jit(lambda s, x: lax.scan(step, s, x))(
                (jnp.int32(0), self.carry), self.rows
            )
            return [*carry, *stacked]
        if kind == "fori":
            return jax.jit(lambda carry: fori(self.count, carry))(self.carry)
        return jax.jit(fori if kind == "dynamic fori" else counted)(self.count, self.carry)

    def one_by_one(self, kind: str) -> list[Any]:
        body, row = jax.jit(self.body), jax.jit(self.row)
        carry, firsts, rows = self.carry, [], []
        for i in range(self.count):
            carry = body(jnp.int32(i), carry)
            if kind == "scan":
                firsts.append(np.asarray(carry[0]))
                rows.append(np.asarray(row(carry, self.rows[i])))
        return [*carry, np.stack(firsts), np.stack(rows)] if rows else list(carry)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", range(0, 40, 10))
def test_iterations_are_those_that_run_alone(first: int, kind: str):
    for seed in range(first, first + 10):
        loop = RandomLoop(seed)
        for got, want in zip(loop.whole(kind), loop.one_by_one(kind), strict=False):
            np.testing.assert_array_equal(got, want, err_msg=f"seed {seed}")
