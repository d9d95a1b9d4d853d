"""`ipu.pmap` against the same function called once for each replica, and against `jax.pmap`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


def batch(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def test_slices_are_mapped(replicas):
    x, y = batch(4, 3, 2), batch(4, 2)
    got = ipu.pmap(lambda x, y: {"dot": x @ y, "sum": x.sum()}, devices=replicas(4))(x, y)
    np.testing.assert_allclose(got["dot"], np.einsum("rij,rj->ri", x, y), rtol=1e-5)
    np.testing.assert_allclose(got["sum"], x.sum((1, 2)), rtol=1e-5)
    assert got["dot"].devices() == set(replicas(4))
    assert got["dot"].addressable_shards[2].data.shape == (1, 3)


def test_as_a_decorator(replicas):
    @ipu.pmap(axis_name="r", devices=replicas(4))
    def named(x):
        """Doc."""
        return jax.lax.psum(x, "r")

    @ipu.pmap
    def bare(x):
        return jax.lax.psum(x, "replica")

    np.testing.assert_array_equal(named(np.arange(4.0)), [6.0] * 4)
    assert named.__name__ == "named"
    assert named.__doc__ == "Doc."
    if replicas(1)[0].platform == jax.default_backend():
        np.testing.assert_array_equal(bare(np.arange(4.0)), [6.0] * 4)


def test_devices_default_to_the_platform(replicas):
    with jax.default_device(replicas(1)[0]):
        got = ipu.pmap(lambda x: x + 1)(np.arange(2.0))
        assert got.devices() == set(replicas(2))
        everywhere = ipu.pmap(lambda x: x * ipu.replication_factor(), in_axes=None)(np.float32(2))
        assert len(everywhere) == len(jax.devices(replicas(1)[0].platform))


def test_axes(replicas):
    x, w = batch(3, 4), batch(2)

    @ipu.pmap(in_axes=({"x": 1, "w": None}, 0), out_axes=(-1, None, 0), devices=replicas(4))
    def call(tree, y, *, z):
        assert tree["x"].shape == (3,)
        return tree["x"] + y + z, tree["w"] * 2, tree["w"].sum() + y

    columns, shared, rows = call({"x": x, "w": w}, np.arange(4.0), z=np.full(4, 0.5))
    np.testing.assert_allclose(columns, x + np.arange(4) + 0.5, rtol=1e-6)
    np.testing.assert_allclose(shared, w * 2, rtol=1e-6)
    np.testing.assert_allclose(rows, w.sum() + np.arange(4), rtol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_random_axes_are_as_in_vmap(replicas, seed):
    """Shapes, mapped axes and results' axes at random; `jax.vmap` on one device is the oracle."""
    rng = np.random.default_rng(seed)
    arguments, in_axes = [], []
    for _ in range(3):
        shape = [2, 3, 5][: rng.integers(0, 4)]
        axis = None if rng.random() < 0.3 and in_axes else int(rng.integers(0, len(shape) + 1))
        if axis is not None:
            shape.insert(axis, 4)
            axis -= len(shape) * int(rng.random() < 0.3)  # the same, counted from the end
        arguments.append(rng.normal(size=shape).astype(np.float32))
        in_axes.append(axis)
    out_axes = (0, tuple(int(rng.integers(-1, 2)) for _ in range(2)))

    def call(x, y, z):
        total = jax.lax.psum(y.sum() + z.sum(), "i")
        return {"x": x * total}, (jnp.outer(x, y), jnp.outer(z, x) - total)

    got = ipu.pmap(call, "i", in_axes=tuple(in_axes), out_axes=out_axes, devices=replicas(4))
    with jax.default_device(jax.devices("cpu")[0]):
        want = jax.vmap(call, tuple(in_axes), out_axes, axis_name="i")(*arguments)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4),
        got(*arguments),
        want,
    )


def test_none_in_pytrees(replicas):
    @ipu.pmap(devices=replicas(4))
    def call(x):
        return (x[0] + 1, None, x[1])

    first, nothing, second = call((np.arange(4.0), None))
    np.testing.assert_array_equal(first, np.arange(4.0) + 1)
    assert nothing is None
    assert second is None


def test_static_arguments(replicas):
    @ipu.pmap(static_broadcasted_argnums=(1,), in_axes=(0, None, None), devices=replicas(4))
    def call(x, how, y):
        return {"add": x + y, "multiply": x * y}[how]

    np.testing.assert_array_equal(call(np.arange(4.0), "add", 10.0), np.arange(4.0) + 10)
    np.testing.assert_array_equal(call(np.arange(4.0), "multiply", 2.0), np.arange(4.0) * 2)


def test_donated_state_is_taken(replicas):
    step = ipu.pmap(lambda s, x: (s + x, s.sum()), donate_argnums=0, devices=replicas(4))
    state = jax.device_put(
        batch(4, 1000), ipu.replica_grouping(devices=replicas(4)).sharding("all_replicas")
    )
    want = np.asarray(state) + 3
    before = state
    for _ in range(3):
        state, _ = step(state, np.ones((4, 1000), np.float32))
    np.testing.assert_allclose(state, want, rtol=1e-6)
    assert before.is_deleted()


def test_nests_inside_jit_and_grad_and_vmap(replicas):
    devices = replicas(4)
    inner = ipu.pmap(
        lambda x: jnp.sin(x) * ipu.cross_replica_sum(x), devices=devices, axis_name="i"
    )
    x = batch(4, 3)
    plain = np.sin(x) * x.sum(0)
    np.testing.assert_allclose(jax.jit(lambda x: inner(x * 2) / 2)(x / 2), plain / 2, rtol=1e-5)
    slope = jax.grad(lambda x: inner(x).sum())(x)
    want = jax.grad(lambda x: (jnp.sin(x) * x.sum(0)).sum())(x)
    np.testing.assert_allclose(slope, want, rtol=1e-4, atol=1e-5)
    batched = jax.vmap(inner, in_axes=2, out_axes=2)(np.stack([x, x + 1], 2))
    np.testing.assert_allclose(batched[..., 0], plain, rtol=1e-5)


def test_derivatives_inside_are_each_replicas_own(replicas):
    """As in `jax.pmap`: what all share has one gradient for each replica."""
    w, x = batch(3), batch(4, 3)
    call = jax.grad(lambda w, x: jnp.tanh(w @ x))
    got = ipu.pmap(call, in_axes=(None, 0), devices=replicas(4))(w, x)
    want = jax.pmap(call, in_axes=(None, 0), devices=replicas(4))(w, x)
    assert got.shape == (4, 3)
    np.testing.assert_array_equal(got, want)


def test_reversed_and_partial_devices(replicas):
    devices = replicas(4)[:0:-1]
    got = ipu.pmap(lambda x: x + ipu.replication_index(), devices=devices)(np.zeros(3))
    np.testing.assert_array_equal(got, [0, 1, 2])
    assert [s.device for s in sorted(got.addressable_shards, key=lambda s: s.index[0].start)] == (
        devices
    )


def test_compiles_ahead_of_time(replicas):
    x = batch(4, 8)
    compiled = ipu.pmap(lambda x: x * 2, devices=replicas(4)).lower(x).compile()
    np.testing.assert_array_equal(compiled(x), x * 2)


def test_compiler_options_reach_the_compiler():
    def step(x):
        return [ipu.cross_replica_sum(x * i) for i in range(4)]

    def link_cycles(**options):
        mapped = ipu.pmap(step, devices=jax.devices("ipu")[:4], compiler_options=options)
        return mapped.lower(np.ones((4, 100), np.float32)).compile().cost_analysis()["link cycles"]

    combined = link_cycles(ipu_maximum_cross_replica_sum_buffer_size=1 << 20)
    assert 0 < combined < link_cycles()
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs names of options"):
        link_cycles(ipu_what="x")


def test_same_results_as_jax_pmap_with_random_numbers(replicas):
    keys = jax.random.split(jax.random.key(0), 4)

    def draw(key):
        return jax.random.normal(key, (5,))

    got = ipu.pmap(draw, devices=replicas(4))(keys)
    np.testing.assert_allclose(got, jnp.stack([draw(k) for k in keys]), rtol=1e-5, atol=1e-6)


WRONG = [
    ({}, (np.zeros(4), np.zeros(3)), r"mapped axes of one length; got shapes \(4,\), \(3,\)"),
    ({}, (np.zeros(4), 1.0), r"an axis to map over; got shape \(\) for axis 0"),
    ({"in_axes": (0,)}, (np.zeros(4), np.zeros(4)), "one entry of in_axes.*got 1 for 2 arguments"),
    ({"in_axes": (0, "x")}, (np.zeros(4), np.zeros(4)), "ints, None and replica group.*got 'x'"),
    ({"in_axes": ((0, 0), 0)}, (np.zeros(4), np.zeros(4)), "in_axes that are a prefix"),
    ({"out_axes": [0, 0]}, (np.zeros(4), np.zeros(4)), "out_axes that are a prefix"),
    ({}, (np.zeros(3), np.zeros(3)), "a mapped axis as long as devices; got 3 and 4"),
]


@pytest.mark.parametrize(("options", "arguments", "message"), WRONG)
def test_bad_input(replicas, options, arguments, message):
    with pytest.raises(ipu.ReplicationError, match=message):
        ipu.pmap(lambda x, y: x + y, devices=replicas(4), **options)(*arguments)


def test_more_replicas_than_devices(replicas):
    with jax.default_device(replicas(1)[0]):
        num = len(jax.devices(replicas(1)[0].platform))
        with pytest.raises(ipu.ReplicationError, match=f"each of the 99 replicas; got {num} of"):
            ipu.pmap(lambda x: x)(np.zeros(99))
        assert ipu.pmap(lambda x: x + 1)(np.zeros(2))[1] == 1


def test_replicas_inside_of_replicas(replicas):
    inner = ipu.pmap(lambda x: x)
    with pytest.raises(ipu.ReplicationError, match="outside all other replicas"):
        ipu.pmap(inner, devices=replicas(4))(np.zeros((4, 4)))


def test_what_is_no_function():
    with pytest.raises(ipu.ReplicationError, match="needs a function; got 'replica'"):
        ipu.pmap("replica")
