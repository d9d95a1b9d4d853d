"""Groups of replicas, and weights that differ from group to group."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


@pytest.mark.parametrize(
    ("kind", "size", "groups"),
    [
        ("all", None, ((0, 1, 2, 3, 4, 5, 6, 7),)),
        ("consecutive", 2, ((0, 1), (2, 3), (4, 5), (6, 7))),
        ("consecutive", 4, ((0, 1, 2, 3), (4, 5, 6, 7))),
        ("orthogonal", 2, ((0, 4), (1, 5), (2, 6), (3, 7))),
        ("orthogonal", 4, ((0, 2, 4, 6), (1, 3, 5, 7))),
        ("orthogonal", 1, tuple((i,) for i in range(8))),
    ],
)
def test_groups_and_shardings(kind, size, groups):
    devices = jax.devices("cpu")
    grouping = ipu.replica_grouping(kind, size, devices=devices)
    assert grouping.groups == groups
    assert (grouping.num_groups, grouping.group_size) == (len(groups), len(groups[0]))
    weights = jax.device_put(np.arange(len(groups)), grouping.sharding())
    values = jax.device_put(np.arange(8), grouping.sharding("all_replicas"))
    held = {s.device: int(s.data[0]) for s in weights.addressable_shards}
    own = {s.device: int(s.data[0]) for s in values.addressable_shards}
    for number, group in enumerate(groups):
        for replica in group:
            assert held[devices[replica]] == number
            assert own[devices[replica]] == replica


@pytest.mark.parametrize("kind", ["consecutive", "orthogonal"])
def test_pmap_by_groups(replicas, kind):
    grouping = ipu.replica_grouping(kind, 2, devices=replicas(4))
    weights = np.array([10.0, 20.0], np.float32)

    @ipu.pmap(in_axes=(grouping, 0), out_axes=(grouping, 0, 0))
    def call(weight, x):
        within = ipu.cross_replica_sum(x, axis_name="member")
        everywhere = ipu.cross_replica_sum(x)
        return within, weight, everywhere + ipu.replication_index()

    x = np.array([1.0, 2.0, 4.0, 8.0], np.float32)
    one_per_group, all_replicas, everywhere = call(weights, x)
    np.testing.assert_array_equal(one_per_group, [x[list(g)].sum() for g in grouping.groups])
    group_of = {r: g for g, group in enumerate(grouping.groups) for r in group}
    np.testing.assert_array_equal(all_replicas, [weights[group_of[r]] for r in range(4)])
    np.testing.assert_array_equal(everywhere, 15 + np.arange(4))


def problem(num_groups: int):
    """A layer whose columns are cut into groups, and the gradient of one device with the whole."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(6, 4 * num_groups)).astype(np.float32)
    x = rng.normal(size=(8, 6)).astype(np.float32)

    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w).sum(-1) ** 2)

    return w, x, loss, jax.grad(loss)(w, x)


@pytest.mark.parametrize("kind", ["consecutive", "orthogonal"])
def test_tensor_parallel_next_to_data_parallel(replicas, kind):
    """Weights differ four ways, data two ways: eight replicas."""
    devices = replicas(8)
    grouping = ipu.replica_grouping(kind, 2, devices=devices)
    w, x, loss, want = problem(4)
    columns = np.stack(np.split(w, 4, 1))  # one per group
    # Members of a group see different data; replicas of one member number see the same.
    member_of = {r: m for group in grouping.groups for m, r in enumerate(group)}
    data = np.stack([np.split(x, 2)[member_of[r]] for r in range(8)])

    @ipu.pmap(in_axes=(grouping, 0), out_axes=grouping)
    def gradient(w, x):
        def loss(w):
            # The sum over groups has a derivative of one for each replica.
            hidden = jnp.tanh(x @ w).sum(-1)
            total = jax.lax.stop_gradient(ipu.cross_replica_sum(hidden, axis_name="group") - hidden)
            return jnp.mean((hidden + total) ** 2)

        return ipu.cross_replica_mean(jax.grad(loss)(w), axis_name="member")

    got = gradient(columns, data)
    assert got.shape == columns.shape
    np.testing.assert_allclose(np.concatenate(list(got), 1), want, rtol=1e-4, atol=1e-5)

    # The same with jit and shardings: weights lie one per group, data over the members.
    group, member = grouping.axis_names
    spec = jax.sharding.PartitionSpec
    placed_w = jax.device_put(w, jax.NamedSharding(grouping.mesh, spec(None, group)))
    placed_x = jax.device_put(x, jax.NamedSharding(grouping.mesh, spec(member)))
    jitted = jax.jit(jax.grad(loss))(placed_w, placed_x)
    np.testing.assert_allclose(jitted, want, rtol=1e-4, atol=1e-5)


def test_bad_input(replicas):
    devices = replicas(4)
    with pytest.raises(ipu.ReplicationError, match=r"group_size to divide the 4 .*got 3.*1, 2, 4"):
        ipu.replica_grouping("consecutive", 3, devices=devices)
    with pytest.raises(ipu.ReplicationError, match="needs group_size for consecutive"):
        ipu.replica_grouping("orthogonal", devices=devices)
    with pytest.raises(ipu.ReplicationError, match=r"kind to be one of all.*got 'rows'"):
        ipu.replica_grouping("rows", 2, devices=devices)
    grouping = ipu.replica_grouping("consecutive", 2, devices=devices)
    with pytest.raises(
        ipu.ReplicationError, match=r"retrieval to be one of one_per_group.*got 'none'"
    ):
        grouping.sharding("none")
    with pytest.raises(ipu.ReplicationError, match="the grouping's 2 groups; got shape"):
        ipu.pmap(lambda w: w, in_axes=(grouping,))(np.zeros(4))
    with pytest.raises(ipu.ReplicationError, match="as many replicas as the grouping has"):
        ipu.pmap(lambda w, x: w, in_axes=(grouping, 0))(np.zeros(2), np.zeros(3))
