"""Several groupings in one `ipu.pmap`."""

from __future__ import annotations

from itertools import combinations_with_replacement

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

KINDS = [("all", None), *((k, n) for k in ("consecutive", "orthogonal") for n in (1, 2, 4, 8))]


def test_weights_and_inputs_by_groups_of_their_own(replicas):
    """PopTorch's example: weights in four parts over orthogonal groups, inputs in two."""
    devices = replicas(8)
    by_column = ipu.replica_grouping("orthogonal", 2, devices=devices, axis_names=("part", "copy"))
    by_row = ipu.replica_grouping("consecutive", 4, devices=devices, axis_names=("data", "same"))
    rng = np.random.default_rng(100)
    x = rng.normal(size=(24, 40)).astype(np.float32)
    w = (rng.normal(size=(40, 56)) * 40**-0.5).astype(np.float32)

    @ipu.pmap(in_axes=(by_column, by_row), out_axes=(by_column, 0))
    def step(w, x):
        loss, grad = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
        return w - 0.01 * ipu.cross_replica_mean(grad, axis_name="copy"), loss

    parts = jnp.stack(np.split(w, 4, 1))
    rows = x.reshape(2, 12, 40)
    for _ in range(4):
        parts, losses = step(parts, rows)
        loss = np.mean((x @ w) ** 2)
        # The mean over the columns of one part only: its gradient is four times the whole one's.
        w = w - 0.01 * 4 * (2 * x.T @ (x @ w)) / (24 * 56)
        assert losses.shape == (8,)
        np.testing.assert_allclose(np.mean(losses), loss, rtol=1e-5)
    np.testing.assert_allclose(np.concatenate(list(parts), 1), w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("first", "second"), list(combinations_with_replacement(KINDS, 2)), ids=lambda kind: f"{kind}"
)
def test_any_two_groupings_give_each_replica_its_group_value(first, second):
    devices = jax.devices("cpu")[:8]
    one = ipu.replica_grouping(*first, devices=devices, axis_names=("g", "m"))
    other = ipu.replica_grouping(*second, devices=devices, axis_names=("h", "n"))

    @ipu.pmap(in_axes=(one, other, 0), out_axes=(0, one, other))
    def call(a, b, x):
        within = ipu.cross_replica_sum(x, axis_name="m"), ipu.cross_replica_sum(x, axis_name="n")
        return jnp.stack([a, b]), *within

    x = 2.0 ** np.arange(8, dtype=np.float32)
    held, *sums = call(np.arange(one.num_groups), 10 + np.arange(other.num_groups), x)
    for i, (grouping, total) in enumerate(zip((one, other), sums, strict=True)):
        for number, group in enumerate(grouping.groups):
            np.testing.assert_array_equal(held[list(group), i], 10 * i + number)
        np.testing.assert_array_equal(total, [x[list(g)].sum() for g in grouping.groups])


def test_a_name_of_two_meanings_is_refused():
    devices = jax.devices("cpu")[:4]
    groupings = [ipu.replica_grouping(k, 2, devices=devices) for k in ("consecutive", "orthogonal")]

    def call(function):
        return ipu.pmap(function, in_axes=tuple(groupings))(jnp.arange(2), jnp.arange(2))

    np.testing.assert_array_equal(call(lambda a, b: 10 * a + b), [0, 1, 10, 11])
    np.testing.assert_array_equal(call(lambda a, b: ipu.cross_replica_sum(a + b)), [4] * 4)
    with pytest.raises(ipu.ReplicationError, match="got 'member' where 'replica0', 'replica1'"):
        call(lambda a, b: ipu.cross_replica_sum(a, axis_name="member"))


def test_groupings_that_have_no_common_mesh():
    devices = jax.devices("cpu")[:6]
    pair, three = (ipu.replica_grouping("consecutive", n, devices=devices) for n in (2, 3))
    with pytest.raises(
        ipu.ReplicationError, match=r"nest; got .* of 2, .* of 3, with runs of 3, 2"
    ):
        ipu.pmap(lambda a, b: a, in_axes=(pair, three))(np.zeros(3), np.zeros(2))
    other = ipu.replica_grouping("orthogonal", 2, devices=devices[::-1])
    with pytest.raises(ipu.ReplicationError, match="same devices in all groupings; got 6 and 6"):
        ipu.pmap(lambda a, b: a, in_axes=(pair, other))(np.zeros(3), np.zeros(3))
