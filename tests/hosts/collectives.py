"""Random chains of collectives in shard_map: dtypes, groups of axes, sizes, loops around them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

AXES = ("a", "b", "c")
MESHES = ((8,), (2, 4), (4, 2), (2, 2, 2))
DTYPES = (jnp.float32, jnp.float16, jnp.bfloat16, jnp.int32)
#: Small ones are sent to all, large ones in parts.
SIZES = (8, 64, 1000, 8 * 1024, 40_000)

Body = Callable[[jax.Array], jax.Array]


def _step(rng: random.Random, mesh: Mesh) -> Body:
    """A function of a block that keeps its shape and dtype."""
    names = tuple(rng.sample(mesh.axis_names, rng.randint(1, len(mesh.axis_names))))
    count = math.prod(mesh.shape[name] for name in names)
    name = names[0]
    size = mesh.shape[name]
    to = rng.sample(range(size), size)

    def mean(x: jax.Array) -> jax.Array:
        return (lax.psum(x, names) / count).astype(x.dtype)

    def scattered(x: jax.Array) -> jax.Array:
        part = lax.psum_scatter(x, name, tiled=True)
        return lax.all_gather(part, name, tiled=True)

    def gathered(x: jax.Array) -> jax.Array:
        whole = lax.all_gather(x, names)
        return whole[lax.axis_index(names)] + whole[0]

    def exchanged(x: jax.Array) -> jax.Array:
        return lax.all_to_all(x.reshape(size, -1), name, 0, 0).reshape(x.shape)

    steps: list[Body] = [
        mean,
        scattered,
        gathered,
        exchanged,
        lambda x: lax.pmax(x, names) - lax.pmin(x, names),
        lambda x: lax.ppermute(x, name, list(enumerate(to))) + x,
        lambda x: x * jnp.asarray(lax.axis_index(names) % 3 + 1, x.dtype),
    ]
    return rng.choice(steps)


def _looped(rng: random.Random, body: Body, mesh: Mesh) -> Body:
    """The body alone, in a loop of known length, or until a condition that all share."""
    kind = rng.choice(("alone", "alone", "fori", "while"))
    turns = rng.randint(1, 4)

    def until(x: jax.Array) -> jax.Array:
        def goes_on(state: Any) -> jax.Array:
            return (state[0] < turns) & (lax.psum(state[0] + 1, mesh.axis_names) > 0)

        return lax.while_loop(goes_on, lambda s: (s[0] + 1, body(s[1])), (0, x))[1]

    if kind == "fori":
        return lambda x: lax.fori_loop(0, turns, lambda _, y: body(y), x)
    return until if kind == "while" else body


def results(seed: int) -> list[jax.Array]:
    rng = random.Random(f"collectives {seed}")
    shape = rng.choice(MESHES)
    order = rng.choice((range(8), rng.sample(range(8), 8)))
    devices = np.array([jax.devices("ipu")[k] for k in order]).reshape(shape)
    mesh = Mesh(devices, AXES[: len(shape)])
    size, dtype = rng.choice(SIZES), rng.choice(DTYPES)
    bodies = [_looped(rng, _step(rng, mesh), mesh) for _ in range(rng.randint(1, 4))]

    def whole(x: jax.Array) -> jax.Array:
        for body in bodies:
            x = body(x)
        return x

    values = np.random.default_rng(seed).standard_normal((8 * size,)) * 4
    spec = P(mesh.axis_names)
    x = jax.device_put(np.asarray(values, dtype), NamedSharding(mesh, spec))
    f = jax.shard_map(whole, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
    return [jax.jit(f)(x)]
