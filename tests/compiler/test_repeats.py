"""Which stretches of a text repeat, and which of a program's ops are worth a function."""

from __future__ import annotations

import random

import jax.numpy as jnp
import numpy as np
import pytest

from ipujax.compiler.repeats import _repeated, repeats
from ipujax.compiler.structure import Structures
from tests.compiler.programs import normal

X = np.ones((8, 8), np.float32)


def longest_repeats(text: list[int]) -> set[tuple[tuple[int, ...], int]]:
    """By definition: all occurrences of each stretch, where more letters mean fewer of them."""
    found = set()
    for start in range(len(text)):
        for length in range(1, len(text) - start + 1):
            stretch = text[start : start + length]
            places = [i for i in range(len(text)) if text[i : i + length] == stretch]
            following = {tuple(text[i : i + length + 1]) for i in places}
            if len(places) > 1 and len(following) > 1:
                found.add((tuple(places), length))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_all_longest_repeats_are_found(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(50):
        text = [draw.randrange(3) for _ in range(draw.randint(1, 30))]
        found = list(_repeated(np.asarray(text)))
        as_set = {(tuple(sorted(starts.tolist())), length) for starts, length in found}
        assert as_set == longest_repeats(text)
        assert len(found) == len(as_set)


def layers(count: int):
    def f(weights, x):
        for w in weights:
            x = jnp.cos(jnp.tanh(x @ w) @ w.T)
        return x

    return normal(f, [np.ones((8, 16), np.float32)] * count, X)


@pytest.mark.parametrize(("threshold", "count"), [(0, 6), (10**6, 0)])
def test_unrolled_layers_repeat(threshold: int, count: int) -> None:
    program = layers(6)
    parts = [p for p in repeats(program.blocks_run(), Structures(), threshold, 1472) if p]
    assert [len(equal) for equal in parts] == ([count] if count else [])
    for equal in parts:
        ops = [op for part in equal for op in part.ops]
        assert len(ops) == len(set(ops))
        assert len({part.key for part in equal}) == 1


def test_values_that_go_another_way_make_other_parts() -> None:
    def f(weights, x):
        for i, w in enumerate(weights):
            a, b = jnp.tanh(x @ w), jnp.tanh(w @ x)
            x = a @ b if i % 2 else b @ a
        return x

    program = normal(f, [X] * 4, X)
    for equal in repeats(program.blocks_run(), Structures(), 0, 1472):
        assert len({part.key for part in equal}) == 1
