"""Where a program runs: over a mesh of devices, or on one as what the values stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
NAMES = ("a", "b", "c")


@dataclass(frozen=True)
class MeshSpec:
    """A mesh without its devices.

    Attributes:
        sizes: of its axes.
        explicit: whether the shardings are part of the types.
        order: which device is at each position.
    """

    sizes: tuple[int, ...]
    explicit: bool
    order: tuple[int, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return NAMES[: len(self.sizes)]

    def size_of(self, names: tuple[str, ...]) -> int:
        return int(np.prod([self.sizes[NAMES.index(name)] for name in names], dtype=int))

    def of(self, platform: str) -> Mesh:
        devices = np.array([jax.devices(platform)[k] for k in self.order])
        kind = AxisType.Explicit if self.explicit else AxisType.Auto
        return Mesh(devices.reshape(self.sizes), self.names, axis_types=(kind,) * len(self.sizes))


@dataclass(frozen=True)
class Place:
    """A mesh, or None for one device, where an unreduced value is its sum."""

    mesh: Mesh | None
    explicit: bool

    @contextmanager
    def entered(self) -> Iterator[None]:
        if self.mesh is None:
            with jax.default_device(jax.devices("cpu")[0]):
                yield
        else:
            with jax.set_mesh(self.mesh):
                yield

    def put(self, array: np.ndarray, spec: PartitionSpec) -> jax.Array:
        if self.mesh is None:
            return jnp.asarray(array)
        if spec.unreduced:
            # From blocks along the first dimension, where there can be: so that parts differ.
            axes = tuple(sorted(spec.unreduced))
            size = int(np.prod([self.mesh.shape[axis] for axis in axes]))
            first = P(axes) if array.shape[0] % size == 0 else P()
            return jax.reshard(jax.device_put(array, NamedSharding(self.mesh, first)), spec)
        return jax.device_put(array, NamedSharding(self.mesh, spec))

    def reshard(self, x: Any, spec: PartitionSpec) -> Any:
        if self.mesh is None:
            return x
        if self.explicit:
            return jax.reshard(x, spec)
        return lax.with_sharding_constraint(x, NamedSharding(self.mesh, spec))

    def out(self, spec: PartitionSpec | None) -> dict[str, Any]:
        """The argument that says how a product's or a reshape's result is sharded."""
        return {"out_sharding": spec} if self.mesh is not None and self.explicit else {}

    def mapped(self, f: Callable[..., Any], ins: Any, outs: Any, whole: Callable[..., Any]) -> Any:
        """`jax.shard_map` of f; on one device, `whole` is what it computes."""
        if self.mesh is None:
            return whole
        return jax.shard_map(f, in_specs=ins, out_specs=outs)

    def whole(self, x: Any) -> Any:
        """Outside of jit: what a result stands for."""
        spec = getattr(x.sharding, "spec", P())
        if spec.unreduced:
            x = jax.reshard(x, NamedSharding(x.sharding.mesh, P(*spec.partitions)))
        return np.asarray(x)
