"""The account of tile memory over random programs: parts, mechanisms, batches."""

from __future__ import annotations

import itertools
import random
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from ipujax.api.cost.cost import PARTS, lower, of_compiled
from tests.fuzz.programs.program import from_seed

LOG = {"ipu_out_of_memory": "log"}
ALL_TILES = LOG | {"ipu_engine_without": "tiles"}


def _layers(seed: int, batch: int) -> tuple[Any, list[Any]]:
    """A training step of layers of random widths, nonlinearities and residuals."""
    rng = random.Random(seed)
    widths = [rng.choice((24, 64, 100, 256)) for _ in range(rng.randint(2, 6))]
    dtype = rng.choice((jnp.float32, jnp.float16))
    functions = [rng.choice((jnp.tanh, jax.nn.gelu, jax.nn.relu, jax.nn.softmax)) for _ in widths]

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for weight, function in zip(weights, functions, strict=False):
            y = function(x @ weight)
            x = x + y if x.shape == y.shape else y
        return jnp.mean(x**2)

    weights = [jax.ShapeDtypeStruct((a, b), dtype) for a, b in itertools.pairwise(widths)]
    x = jax.ShapeDtypeStruct((batch, widths[0]), dtype)
    return jax.value_and_grad(loss), [weights, x]


def _parts(lowered: Any, options: dict[str, str]) -> dict[str, int]:
    found = of_compiled(lowered.compile(options))
    assert tuple(found.parts) == PARTS
    assert sum(found.parts.values()) == found.fullest_tile_bytes
    return dict(found.parts)


@pytest.mark.parametrize("seed", range(12))
def test_tiles_of_equal_history_are_counted_once(seed: int) -> None:
    """Each tile on its own has the same fullest one."""
    fun, args = _layers(seed, random.Random(seed).choice((8, 100, 1500)))
    lowered = lower("test", fun, tuple(args))
    assert _parts(lowered, LOG) == _parts(lowered, ALL_TILES)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_parts_of_random_programs(seed: int) -> None:
    program = from_seed(seed)
    lowered = lower("test", program.function, tuple(program.arguments))
    parts = _parts(lowered, LOG)
    assert parts == _parts(lowered, ALL_TILES)
    assert parts["stack"] > 0
    assert parts["padding"] >= 0


@pytest.mark.parametrize("seed", range(6))
def test_a_larger_batch_never_needs_less(seed: int) -> None:
    """Within 3 % of a tile: products are planned anew, for time and not for memory, and operands
    that lie in different memory elements may leave up to 16 KiB between them."""
    needed = []
    for batch in (16, 128, 1024, 4096):
        fun, args = _layers(seed, batch)
        needed.append(sum(_parts(lower("test", fun, tuple(args)), LOG).values()))
    assert all(b > a - 0.03 * 638_976 for a, b in itertools.pairwise(needed))


def test_products_have_rearrangement_and_exchange_buffers() -> None:
    x = jax.ShapeDtypeStruct((512, 512), jnp.float16)
    parts = _parts(lower("test", lambda a, b: a.T @ b, (x, x)), LOG)
    assert parts["exchange buffers"] > 0
    assert parts["rearrangement"] > 0
