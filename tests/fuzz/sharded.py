"""Random programs over several devices: their arguments dealt at random, against one device.

Whether one device is right is what the other random programs tell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    """A function of arrays, and how each argument is dealt over a mesh.

    Attributes:
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
        dealt = [
            jax.device_put(a, NamedSharding(mesh, s))
            for a, s in zip(self.arguments, self.specs, strict=True)
        ]
        return [np.asarray(x) for x in jax.jit(self.f, keep_unused=True)(*dealt)]

    def run_on_one(self, device: jax.Device) -> list[np.ndarray]:
        whole = [jax.device_put(a, device) for a in self.arguments]
        return [np.asarray(x) for x in jax.jit(self.f, keep_unused=True)(*whole)]


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


def from_seed(seed: int) -> ShardedProgram:
    """Equal seeds make equal programs."""
    rng = random.Random(f"sharded {seed}")
    mesh = rng.choice(MESHES)
    first = Generator(random.Random(seed))
    arguments = make_arguments(first)
    errors: list[float] = []

    def f(*values: Any) -> tuple[Any, ...]:
        g = Generator(random.Random(seed))  # anew for every trace
        again = make_arguments(g)
        num_steps = g.integer(3, 14)
        for value, array in zip(values, again, strict=True):
            g.nodes.append(known(array).like(value))
        g.grow(num_steps)
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
