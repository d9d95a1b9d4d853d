"""Shardings as JAX reads them."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from ipujax.jax_compat.shardings import hlo_sharding, sharding_bytes


@pytest.mark.parametrize("shape", [(8,), (2, 4), (2, 2, 2), (2, 3, 4)])
def test_transposed_grids_of_devices_are_iotas(shape: tuple[int, ...]):
    for order in itertools.permutations(range(len(shape))):
        devices = np.arange(np.prod(shape)).reshape(shape).transpose(order)
        sharding = hlo_sharding(sharding_bytes(devices, False))
        assert sharding.is_tile_assignment_iota()
        assert list(sharding.tile_assignment_dimensions()) == list(devices.shape)
        assert list(sharding.tile_assignment_devices()) == devices.reshape(-1).tolist()


@pytest.mark.parametrize("devices", [[1, 0], [0, 1, 3, 2], [3, 1, 2, 0], [0, 2, 3, 1, 4, 5]])
def test_other_orders_are_lists(devices: list[int]):
    sharding = hlo_sharding(sharding_bytes(np.array(devices), False))
    assert not sharding.is_tile_assignment_iota()
    assert list(sharding.tile_assignment_devices()) == devices


def test_eager_operations_take_results_that_a_second_mesh_shards():
    devices = np.array(jax.devices("ipu")[:8])

    def mesh(shape: tuple[int, ...], names: tuple[str, ...]) -> Mesh:
        return Mesh(devices.reshape(shape), names, axis_types=(AxisType.Auto,) * len(shape))

    first, other = mesh((2, 4), ("r", "s")), mesh((2, 2, 2), ("a", "b", "c"))
    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    a, b = jax.device_put((x, x), (NamedSharding(first, P()), NamedSharding(other, P("a", "c"))))
    product = jax.jit(lambda a, b: a[:, :4] @ b[:4])(a, b)
    np.testing.assert_array_equal(product + 1, x[:, :4] @ x[:4] + 1)
