"""Arrays without elements: sharded nowhere, as the CPU backend reports them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "slice": lambda a: a[:, 100:116],
    "chain": lambda a: jnp.sin(a[:0]).T * 2,
    "no rows": lambda a: a[:0].sum(1),
    "reduce": lambda a: a[:, :0].sum(1),
    "product": lambda a: (a[:, :0] * 2) @ jnp.ones((0, 3)),
    "complex product": lambda a: (a[:, :0] * 2j) @ jnp.ones((0, 3), jnp.complex64),
    "integer product": lambda a: a[:, :0].astype(jnp.int32) @ jnp.ones((0, 3), jnp.int32),
    "maximum": lambda a: lax.reduce(a[:, :0], 7.0, lax.max, (1,)),
    "pair": lambda a: lax.sort([a[:0], a[:0] * 2], dimension=1),
    "scan": lambda a: lax.scan(lambda c, x: (c + x[:0].sum(), x[:0] * 2), 0.0, a),
    "beside others": lambda a: (a[:0], a * 2, jnp.concatenate([a[:0], a])),
    "small floats": lambda a: a[:0].astype(jnp.float8_e8m0fnu),
    "random": lambda a: jax.random.normal(jax.random.key(0), (0, 4)),
}


def described(platform: str, function: Callable[..., Any], explicit: bool = False) -> Any:
    kind = AxisType.Explicit if explicit else AxisType.Auto
    devices = np.array(jax.devices(platform)[:4]).reshape(2, 2)
    mesh = Mesh(devices, ("x", "y"), axis_types=(kind, kind))
    with jax.set_mesh(mesh):
        given = jnp.asarray(np.arange(32, dtype=np.float32).reshape(8, 4))
        results = jax.jit(function)(jax.device_put(given, NamedSharding(mesh, P("x", "y"))))
    return [
        (str(x.sharding.spec), x.dtype, x.shape, np.asarray(x).tolist())
        for x in jax.tree.leaves(results)
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_those_of_the_cpu(name: str) -> None:
    assert described("ipu", FUNCTIONS[name]) == described("cpu", FUNCTIONS[name])


def test_explicit_shardings_are_kept() -> None:
    def function(a: Any) -> Any:
        return jnp.sin(jnp.zeros((0, 4), out_sharding=P(None, "y"))), a * 2

    found = described("ipu", function, explicit=True)
    assert found == described("cpu", function, explicit=True)
    assert "y" in found[0][0]


def test_effects_are_kept() -> None:
    """A callback runs, though it gets nothing."""
    seen: list[tuple[int, ...]] = []

    def function(a: Any) -> Any:
        jax.debug.callback(lambda x: seen.append(x.shape), a[:0])
        return a

    described("ipu", function)
    jax.effects_barrier()
    assert seen == [(0, 4)]
