"""Random programs over several devices, against one device.

Arguments are sharded at random, evenly as JAX asks; some values on the way are resharded, evenly or
not.

Whether one device is right is what the other random programs tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.fuzz import steps  # noqa: F401 (importing it registers all steps)
from tests.fuzz.check import unequal
from tests.fuzz.generator import Generator, known, make_arguments, outputs

MESHES = ((2,), (4,), (8,), (3,), (2, 2), (4, 2), (2, 4), (2, 2, 2))
AXES = ("a", "b", "c")


@dataclass
class ShardedProgram:
    """A function of arrays, and how each argument is sharded over a mesh.

    Attributes:
        f: of the mesh, or None for one device, and the arrays.
        errors: filled by tracing: what each result may differ by.
    """

    seed: int
    f: Callable[..., Any]
    arguments: list[np.ndarray]
    mesh_shape: tuple[int, ...]
    specs: list[PartitionSpec]
    errors: list[float]

    def run(self, devices: Sequence[jax.Device]) -> list[np.ndarray]:
        size = int(np.prod(self.mesh_shape))
        order = random.Random(self.seed).sample(range(len(devices)), size)
        grid = np.array([devices[k] for k in order]).reshape(self.mesh_shape)
        mesh = Mesh(grid, AXES[: len(self.mesh_shape)])
        sharded = [
            jax.device_put(a, NamedSharding(mesh, s))
            for a, s in zip(self.arguments, self.specs, strict=True)
        ]
        f = jax.jit(partial(self.f, mesh), keep_unused=True)
        return [np.asarray(x) for x in f(*sharded)]

    def run_on_one(self, device: jax.Device) -> list[np.ndarray]:
        whole = [jax.device_put(a, device) for a in self.arguments]
        f = jax.jit(partial(self.f, None), keep_unused=True)
        return [np.asarray(x) for x in f(*whole)]


def _spec(rng: random.Random, shape: tuple[int, ...], mesh: tuple[int, ...]) -> PartitionSpec:
    """Each axis at random to one of the dimensions that it divides, or to none."""
    left, names = list(shape), [[] for _ in shape]
    for axis in rng.sample(range(len(mesh)), len(mesh)):
        fits = [d for d, n in enumerate(left) if n and n % mesh[axis] == 0]
        if fits and rng.random() < 0.8:
            dimension = rng.choice(fits)
            left[dimension] //= mesh[axis]
            names[dimension].append(AXES[axis])
    return PartitionSpec(*(tuple(n) or None for n in names))


def _any_spec(rng: random.Random, rank: int, axes: tuple[str, ...]) -> PartitionSpec:
    """Each axis to any dimension, or to none."""
    names: list[list[str]] = [[] for _ in range(rank)]
    for axis in rng.sample(axes, len(axes)):
        if rank and rng.random() < 0.7:
            rng.choice(names).append(axis)
    return PartitionSpec(*(tuple(n) or None for n in names))


def from_seed(seed: int) -> ShardedProgram:
    """Equal seeds make equal programs."""
    rng = random.Random(f"sharded {seed}")
    mesh = rng.choice(MESHES)
    first = Generator(random.Random(seed))
    arguments = make_arguments(first)
    errors: list[float] = []

    def f(placed_on: Mesh | None, *values: Any) -> tuple[Any, ...]:
        g = Generator(random.Random(seed))  # anew for every trace
        again = make_arguments(g)
        num_steps = g.integer(3, 14)
        for value, array in zip(values, again, strict=True):
            g.nodes.append(known(array).like(value))
        places = random.Random(f"places {seed}")
        for _ in range(num_steps):
            g.grow(1)
            node = g.nodes[-1]
            if placed_on is not None and places.random() < 0.3:
                spec = _any_spec(places, node.value.ndim, placed_on.axis_names)
                sharding = NamedSharding(placed_on, spec)
                value = jax.lax.with_sharding_constraint(node.value, sharding)
                g.nodes[-1] = replace(node, value=value)
        kept = outputs(g, len(again))
        errors[:] = [node.error for node in kept]
        return tuple(node.value for node in kept)

    specs = [_spec(rng, a.shape, mesh) for a in arguments]
    return ShardedProgram(seed, f, arguments, mesh, specs, errors)


def differences(program: ShardedProgram) -> list[str]:
    """One line for each result that is not that of one device."""
    devices = jax.devices("ipu")
    theirs = program.run_on_one(devices[0])
    try:
        ours = program.run(devices)
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:600]}"]
    pairs = zip(ours, theirs, program.errors, strict=True)
    texts = [unequal(*pair) for pair in pairs]
    return [f"result {k}: {text}" for k, text in enumerate(texts) if text]
