"""Primitives that JAX lowers for named platforms only."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import checkify
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P


def positive(x):
    checkify.check(jnp.all(x > 0), "not positive: {x}", x=x)
    return x + 1


def positive_when_debugging(x):
    checkify.debug_check(jnp.all(x > 0), "not positive: {x}", x=x)
    return x + 1


def test_a_check_outside_checkify_is_refused_as_on_the_cpu(device: jax.Device):
    with pytest.raises(ValueError, match="not functionalized"):
        jax.jit(positive)(jax.device_put(-1.0, device))


def test_a_check_for_debugging_outside_checkify_is_left_out(device: jax.Device):
    x = jax.device_put(-1.0, device)
    assert jax.jit(positive_when_debugging)(x) == 0
    error, _ = jax.jit(checkify.checkify(positive_when_debugging))(x)
    assert error.get().startswith("not positive: -1.0")


def _exchanged(operands, outputs, starts, sizes, places, groups):
    """Each member of a group sends its slices, the first ones to the first member."""
    results = outputs.copy()
    for group in groups:
        each = starts.shape[1] // len(group)
        for sender in group:
            for i in range(starts.shape[1]):
                first, size, place = (int(x[sender, i]) for x in (starts, sizes, places))
                taker = group[i // each]
                results[taker, place : place + size] = operands[sender, first : first + size]
    return results


@pytest.mark.parametrize("groups", [None, [[0, 2], [1, 3]]], ids=str)
@pytest.mark.parametrize("slices", [1, 2])
def test_ragged_all_to_all(groups, slices: int):
    rng = np.random.default_rng(slices)
    members = groups or [[0, 1, 2, 3]]
    count = len(members[0]) * slices
    operands = rng.standard_normal((4, 12, 3)).astype(np.float32)
    outputs = rng.standard_normal((4, 4 * count, 3)).astype(np.float32)
    starts, sizes = rng.integers(0, 8, (4, count)), rng.integers(0, 5, (4, count))
    places = np.zeros((4, count), np.int64)
    received = np.zeros((4, count), np.int64)
    for group in members:
        for number, sender in enumerate(group):
            for i in range(count):
                taker, slot = group[i // slices], number * slices + i % slices
                places[sender, i] = 4 * slot
                received[taker, slot] = sizes[sender, i]
    mesh = Mesh(np.array(jax.devices("ipu")[:4]), ("x",))

    def exchange(*blocks):
        return jax.lax.ragged_all_to_all(
            *(block[0] for block in blocks), axis_name="x", axis_index_groups=groups
        )[None]

    f = jax.jit(jax.shard_map(exchange, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
    numbers = [x.astype(np.int32) for x in (starts, sizes, places, received)]
    got = f(operands, outputs, *numbers)
    wanted = _exchanged(operands, outputs, starts, sizes, places, members)
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(("rows", "taken", "width"), [(0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 0)])
def test_ragged_all_to_all_of_nothing(rows: int, taken: int, width: int):
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("x",))
    operands = np.ones((2, rows, width), np.float32)
    outputs = np.arange(2 * taken * width, dtype=np.float32).reshape(2, taken, width)
    none = np.zeros((2, 2), np.int32)

    def exchange(*blocks):
        return jax.lax.ragged_all_to_all(*(block[0] for block in blocks), axis_name="x")[None]

    f = jax.shard_map(exchange, mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    np.testing.assert_array_equal(jax.jit(f)(operands, outputs, none, none, none, none), outputs)


def test_the_gradient_of_ragged_all_to_all_goes_back():
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("x",))
    operands = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    starts, sizes = np.array([[0, 1], [0, 1]], np.int32), np.array([[1, 2], [1, 1]], np.int32)
    places, received = np.array([[0, 0], [1, 2]], np.int32), np.array([[1, 1], [2, 1]], np.int32)
    weights = np.arange(10, 18, dtype=np.float32).reshape(2, 4)

    def exchange(*blocks):
        return jax.lax.ragged_all_to_all(*(block[0] for block in blocks), axis_name="x")[None]

    f = jax.shard_map(exchange, mesh=mesh, in_specs=P("x"), out_specs=P("x"))

    def loss(x):
        return (f(x, jnp.zeros((2, 4)), starts, sizes, places, received) * weights).sum()

    slope = jax.jit(jax.grad(loss))(operands)
    np.testing.assert_array_equal(slope, [[10, 14, 15], [11, 16, 0]])


@pytest.mark.parametrize("name", ["erf", "erfc", "bessel_i1e"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float4_e2m1fn"])
def test_special_functions_of_narrow_floats(name: str, dtype: str):
    x = np.array([-2, -0.5, 0, 0.5, 1, 3]).astype(jnp.dtype(dtype))
    function = getattr(jax.lax, name)
    found = jax.jit(function)(x)
    wide = np.asarray(function(x.astype(np.float32)))
    assert np.asarray(found).tobytes() == wide.astype(x.dtype).tobytes()
