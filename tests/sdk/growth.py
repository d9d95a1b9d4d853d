"""Prints, as JSON, by how many bytes 1,000 calls of programs make a process larger."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.bench.memory import resident_bytes

SMALL = np.ones(4, np.float32)
LARGE = np.ones((64, 64), np.float32)


def same_arguments() -> Callable[[], Any]:
    f, x = jax.jit(lambda x, y: x @ y), jax.device_put(LARGE)
    return lambda: f(x, x)


def new_arguments() -> Callable[[], Any]:
    f = jax.jit(lambda x: x + 1)
    return lambda: f(LARGE)


def donated() -> Callable[[], Any]:
    f, state = jax.jit(lambda x: x * 0.5, donate_argnums=0), [jax.device_put(LARGE)]

    def run() -> Any:
        state[0] = f(state[0])
        return state[0]

    return run


def by_turns() -> Callable[[], Any]:
    """Each call loads its program, as another was loaded last."""
    f, g, x = jax.jit(lambda x: x + 1), jax.jit(lambda x: x * 2), jax.device_put(LARGE)
    return lambda: g(f(x))


def callback() -> Callable[[], Any]:
    same = jax.ShapeDtypeStruct(SMALL.shape, SMALL.dtype)
    f = jax.jit(lambda x: jax.pure_callback(lambda v: np.asarray(v) * 2, same, x))
    return lambda: f(SMALL)


def replicas() -> Callable[[], Any]:
    f, x = jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i"), jnp.ones((2, 64, 8))
    return lambda: f(x)


def main() -> None:
    cases = (same_arguments, new_arguments, donated, by_turns, callback, replicas)
    print(json.dumps({case.__name__: _growth(case()) for case in cases}))


def _growth(run: Callable[[], Any]) -> int:
    def several(count: int) -> None:
        for _ in range(count):
            jax.block_until_ready(run())

    several(300)
    before = resident_bytes()
    several(1000)
    return resident_bytes() - before


if __name__ == "__main__":
    main()
