"""The devices of programs that name none: exported ones, and those over abstract meshes."""

from __future__ import annotations

import os
from typing import Any

import jax
from jax.sharding import AbstractMesh, NamedSharding

from ipujax import jax_compat
from ipujax.config.options import from_environment
from ipujax.errors import PlacementError

COUNT = "JAX_IPU_DEVICE_COUNT"


def first_ipus(where: str, needed: int, name: str) -> list[jax.Device]:
    """The first IPUs; if JAX has made no devices yet, it makes as many as needed.

    Args:
        where: the caller, for the error.
        needed: number of IPUs.
        name: of the program.
    Raises:
        PlacementError: there are fewer.
    """
    is_few = needed > from_environment().machine.device_count
    if is_few and not os.environ.get(COUNT) and not jax_compat.backends_exist():
        os.environ[COUNT] = str(needed)
    devices = jax.local_devices(backend=jax_compat.PLATFORM)[:needed]
    if len(devices) < needed:
        raise PlacementError(
            f"[{where}] needs {needed} devices for {name}; got {len(devices)}. Set "
            f"{COUNT}={needed} before JAX starts."
        )
    return devices


def on_ipus(where: str, name: str, args: Any) -> Any:
    """Shards shapes over the first IPUs that are sharded over an abstract mesh."""

    def placed(leaf: Any) -> Any:
        sharding = getattr(leaf, "sharding", None)
        if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, AbstractMesh):
            return leaf
        mesh = jax_compat.mesh_over(sharding.mesh, first_ipus(where, sharding.mesh.size, name))
        here = NamedSharding(mesh, sharding.spec, memory_kind=sharding.memory_kind)
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=here)

    return jax.tree.map(placed, args)
