"""64-bit integers that fit 32 bits are computed in them, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ipujax.compiler import compile as compiler
from ipujax.compiler.ir import Program, walk_ops
from ipujax.compiler.passes.narrow_integers import narrow_integers
from ipujax.compiler.place import place

LARGE = np.arange(12).reshape(3, 4) + 2**40
SMALL = np.arange(-2, 3, dtype=np.int16)
#: Programs, their arguments, and names of ops that stay in 64 bits.
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], set[str]]] = {
    "scan": (lambda x: jax.lax.scan(lambda c, row: (row, c), x[0], x), (LARGE,), set()),
    "two counters": (
        lambda x: jax.lax.scan(lambda c, row: (c + 1, (c, row)), np.int64(5), x),
        (LARGE,),
        set(),
    ),
    "nested": (
        lambda n: jax.lax.fori_loop(
            0, 3, lambda i, c: jax.lax.fori_loop(0, 2, lambda j, d: d + n[i] * j, c), np.float32(0)
        ),
        (np.arange(3, dtype=np.float32),),
        set(),
    ),
    "arithmetic": (
        lambda n: (n.astype(np.int64) * 3 - 7, jnp.where(n > 0, n.astype(np.int64), 2) + 1),
        (SMALL,),
        set(),
    ),
    "numbers": (lambda: jnp.arange(5) * 3 - 4, (), set()),
    "unsigned": (lambda n: n.astype(np.uint64) * 3 + 5, (np.arange(3, dtype=np.uint8),), set()),
    "wraps below zero": (
        lambda n: np.uint64(1) - n.astype(np.uint64),
        (np.arange(3, dtype=np.uint8),),
        {"subtract"},
    ),
    "too large": (
        lambda n: n.astype(np.int64) * 2**20 * 2**20,
        (np.arange(3, dtype=np.int16),),
        {"multiply"},
    ),
    "not known": (lambda x: x + 1, (LARGE,), {"add"}),
    "a counter that grows too large": (
        lambda x: jax.lax.scan(lambda c, row: (c + 1, c), np.int64(2**31 - 2), x),
        (LARGE,),
        {"add"},
    ),
}
#: What PopLibs has of 64-bit integers.
MOVES = {"convert", "while", "slice", "reshape", "dynamic_slice", "dynamic_update_slice", "iota"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arguments, stay = PROGRAMS[name]
    left: set[str] = set()

    def run(program: Program) -> Program:
        program = narrow_integers(program)
        for op in walk_ops(program.main):
            dtypes = {value.dtype for value in (*op.operands, *op.results)}
            if dtypes & {"i64", "ui64"}:
                left.add(op.name)
        return program

    monkeypatch.setattr(compiler, "place", lambda program, request: place(run(program), request))
    with jax.enable_x64(True):
        found = jax.jit(function)(*arguments)
        with jax.default_device(jax.devices("cpu")[0]):
            wanted = jax.jit(function)(*arguments)
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    assert left - MOVES == stay
