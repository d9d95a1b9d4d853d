"""`ipu.repeat` and `ipu.while_loop` against loops of Python, on one device and on several."""

from __future__ import annotations

import gc
import itertools
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu


def _batches(steps, rows):
    return np.random.default_rng(0).integers(-9, 9, (steps, rows, 3)).astype(np.float32)


def _devices(number):
    devices = jax.devices()
    if len(devices) < number:
        pytest.skip(f"needs {number} devices")
    return devices[:number]


def _step(carry, batch):
    """Depends on the order of batches and of their rows."""
    weights = jnp.arange(1, batch.shape[0] + 1, dtype=jnp.float32)
    made = 0.5 * carry + weights @ batch
    return made, made.sum()


def _plain(carry, batches):
    outs = []
    for batch in batches:
        carry, out = jax.tree.map(np.asarray, _step(carry, batch))
        outs.append(out)
    return carry, np.array(outs)


def test_while_loop_takes_what_it_needs():
    infeed = ipu.Infeed(np.arange(100, dtype=np.float32), prefetch_depth=4)
    program = jax.jit(lambda: ipu.while_loop(lambda x: x < 10, jnp.add, 0.0, infeed=infeed))
    assert (float(program()), infeed.position) == (10, 5)
    assert (float(program()), infeed.position) == (11, 7)


def test_while_loop_ends_at_the_end_of_data_or_after_a_number_of_steps():
    infeed = ipu.Infeed(np.ones(5, np.float32))
    ended = ipu.while_loop(lambda x: x < 99, jnp.add, 0.0, infeed=infeed, stop_at_end=True)
    assert tuple(map(float, ended)) == (5, 5)
    assert ipu.while_loop(lambda x: x < 99, lambda x: x + 1, 0, maximum_steps=7) == 7


def test_the_number_of_steps_may_be_an_array():
    program = jax.jit(lambda n: ipu.repeat(n, lambda x: 2 * x, 1))
    assert [int(program(n)) for n in (0, 1, 10)] == [1, 2, 1024]


def test_the_first_step_may_change_a_weak_type():
    assert ipu.repeat(3, lambda x: x + jnp.float32(1), 0.0) == 3


def test_the_carry_keeps_its_structure():
    with pytest.raises(ipu.FeedError, match="returns a carry like the first one"):
        ipu.repeat(2, lambda x: (x, x), 0.0)


@pytest.mark.parametrize("stop", [False, True])
def test_replicas_of_pmap_share_a_batch(stop):
    """Replica r gets rows r * rows / replicas and following; results are stacked."""
    steps, replicas = 5, 2
    batches = _batches(steps, 8)
    infeed, outfeed = ipu.Infeed(batches), ipu.Outfeed()

    @ipu.pmap(devices=_devices(replicas))
    def program(carry):
        return ipu.repeat(steps, _step, carry, infeed=infeed, outfeed=outfeed, stop_at_end=stop)

    result = program(np.zeros((replicas, 3), np.float32))
    carry = np.asarray(result[0] if stop else result)
    outs = outfeed.dequeue()
    for r in range(replicas):
        wanted, wanted_outs = _plain(np.zeros(3, np.float32), batches[:, 4 * r : 4 * r + 4])
        np.testing.assert_allclose(carry[r], wanted, rtol=1e-6)
        np.testing.assert_allclose(outs[:, r], wanted_outs, rtol=1e-6)
    assert infeed.position == steps


def test_axes_that_do_not_split_get_the_same_part():
    mesh = Mesh(np.array(_devices(4)).reshape(2, 2), ("model", "data"))
    infeed = ipu.Infeed(_batches(2, 4), axes="data")

    def local():
        return ipu.repeat(2, lambda c, b: c + b, jnp.zeros((2, 3)), infeed=infeed)[None, None]

    out = jax.jit(
        jax.shard_map(local, mesh=mesh, in_specs=(), out_specs=P("model", "data"), check_vma=False)
    )()
    wanted = _batches(2, 4).sum(0)
    for model in range(2):
        for data in range(2):
            np.testing.assert_array_equal(out[model, data], wanted[2 * data : 2 * data + 2])


def test_shard_map_knows_over_what_batches_vary():
    mesh = Mesh(np.array(_devices(2)), ("data",))
    batches = _batches(3, 4)
    infeed, outfeed = ipu.Infeed(batches), ipu.Outfeed("sum")

    def local(carry):
        def body(carry, batch):
            return carry + jax.lax.psum(batch.sum(0), "data"), batch.sum()

        return ipu.repeat(3, body, carry, infeed=infeed, outfeed=outfeed)

    mapped = jax.shard_map(local, mesh=mesh, in_specs=P(), out_specs=P())
    np.testing.assert_array_equal(jax.jit(mapped)(jnp.zeros(3)), batches.sum((0, 1)))
    by_replica = batches.reshape(3, 2, 2, 3).sum((0, 2, 3))
    np.testing.assert_array_equal(outfeed.dequeue(), by_replica)


@pytest.mark.parametrize("stop", [False, True])
def test_a_sharding_splits_batches_of_a_plain_jit(stop):
    mesh = Mesh(np.array(_devices(4)), ("data",))
    batches = _batches(4, 8)
    infeed = ipu.Infeed(batches, sharding=NamedSharding(mesh, P("data")))

    @jax.jit
    def program(carry):
        return ipu.repeat(4, lambda c, b: _step(c, b)[0], carry, infeed=infeed, stop_at_end=stop)

    carry = jax.device_put(np.zeros(3, np.float32), NamedSharding(mesh, P()))
    result = program(carry)
    wanted, _ = _plain(np.zeros(3, np.float32), batches)
    np.testing.assert_allclose(result[0] if stop else result, wanted, rtol=1e-5)
    assert infeed.position == 4


def test_without_a_sharding_devices_of_one_program_share_whole_batches():
    mesh = Mesh(np.array(_devices(2)), ("data",))
    batches = _batches(3, 4)
    infeed = ipu.Infeed(batches)
    carry = jax.device_put(np.zeros((4, 3), np.float32), NamedSharding(mesh, P("data")))
    result = jax.jit(lambda c: ipu.repeat(3, jnp.add, c, infeed=infeed))(carry)
    np.testing.assert_array_equal(result, batches.sum(0))
    assert infeed.position == 3


def test_a_batch_that_replicas_cannot_share_is_refused_with_the_arithmetic():
    infeed = ipu.Infeed(_batches(2, 3))
    with pytest.raises(ipu.FeedError, match=r"float32\[3, 3\] for 2 replicas .*: 3 = 2 x 1\.5"):
        ipu.pmap(lambda c: ipu.repeat(1, jnp.add, c, infeed=infeed), devices=_devices(2))(
            np.zeros((2, 1), np.float32)
        )


def test_replicas_meet_again_after_a_run_that_failed():
    """One replica fails before it fetches: the next run starts all at one batch."""
    batches = _batches(10, 2)
    infeed = ipu.Infeed(batches, prefetch_depth=4)

    def fail_once(replica, step):
        if failing and replica == 1 and step == 1:
            raise ValueError("as asked")
        return step

    @ipu.pmap(devices=_devices(2))
    def program(carry):
        def body(carry, batch):
            step = jax.pure_callback(
                fail_once,
                jax.ShapeDtypeStruct((), np.int32),
                ipu.replication_index().astype(np.int32),
                carry[0],
            )
            return step + 1, carry[1] + batch[0]

        return ipu.repeat(2, body, carry, infeed=infeed)

    start = (np.zeros(2, np.int32), np.zeros((2, 3), np.float32))
    failing = True
    with pytest.raises(jax.errors.JaxRuntimeError, match="as asked"):
        jax.block_until_ready(program(start))
    failing = False
    _, total = program(start)
    first = infeed.position - 2
    assert 0 <= first <= 2  # that the slower replica had taken
    np.testing.assert_array_equal(total, batches[first : first + 2].sum(0))


def test_a_pipeline_in_the_body_divides_the_batch_into_micro_batches():
    data = np.random.default_rng(1).normal(size=(3, 4, 2, 5)).astype(np.float32)
    infeed = ipu.Infeed(data)  # [steps, micro-batches, micro-batch, features]
    stages = [lambda w, x: x * w, lambda w, x: x + w]
    pipeline = ipu.pipeline(stages, micro_batches=4, schedule="sequential", device_mapping=[0, 0])

    def body(carry, batch):
        return carry + pipeline((2.0, 1.0), batch).sum()

    total = jax.jit(lambda: ipu.repeat(3, body, 0.0, infeed=infeed))()
    np.testing.assert_allclose(total, (data * 2 + 1).sum(), rtol=1e-5)


def test_feeds_and_their_data_go_with_their_programs():
    class Data:
        def __iter__(self):
            return iter(np.ones(3, np.float32))

    def run():
        data, outfeed = Data(), ipu.Outfeed()
        infeed = ipu.Infeed(data)
        program = jax.jit(
            lambda x: ipu.repeat(3, lambda x, y: (x + y, x), x, infeed=infeed, outfeed=outfeed)
        )
        jax.block_until_ready(program(0.0))
        assert outfeed.dequeue().tolist() == [0, 1, 2]
        return weakref.ref(data), weakref.ref(outfeed)

    refs = [ref for _ in range(3) for ref in run()]
    gc.collect()
    assert [ref() for ref in refs] == [None] * 6


def test_the_account_has_what_crosses_the_link_to_the_host():
    """Of each step its batch and the cursor, and less time than a callback that is awaited."""
    steps, batch = 5, np.zeros((100, 100), np.float32)
    infeed = ipu.Infeed(itertools.repeat(batch))

    def called(x):
        like = jax.ShapeDtypeStruct(batch.shape, batch.dtype)
        return ipu.repeat(steps, lambda x: x + jax.pure_callback(lambda: batch, like), x)

    def account(program):
        analysis = jax.jit(program).lower(batch).compile().cost_analysis()
        return {key: value for key, value in analysis.items() if "host" in key}

    fed = account(lambda x: ipu.repeat(steps, jnp.add, x, infeed=infeed))
    awaited = account(called)
    begin_and_cursors = 4 * 2 * (steps + 1)
    assert fed["host bytes"] == steps * batch.nbytes + begin_and_cursors
    assert 0 < fed["host cycles"] < awaited["host cycles"]


@pytest.mark.parametrize("recomputed", [lambda fun: fun, jax.checkpoint, ipu.remat])
def test_derivatives_of_loops_with_feeds(recomputed):
    """What feeds give is constant, and fetched once; what they take are the values."""
    infeed = ipu.Infeed(np.array([2, 3, 5], np.float32))
    outfeed = ipu.Outfeed()

    def loop(x):
        def step(c, y):
            return jnp.sin(c) * y, c

        return ipu.repeat(2, step, x, infeed=infeed, outfeed=outfeed)

    slope = jax.jit(jax.grad(recomputed(loop)))(0.5)
    first = 2 * np.sin(0.5)
    np.testing.assert_allclose(slope, np.cos(first) * 3 * np.cos(0.5) * 2, rtol=1e-6)
    np.testing.assert_allclose(outfeed.dequeue(), [0.5, first], rtol=1e-6)
    assert infeed.position == 2


def test_a_loop_with_an_outfeed_for_each_example_is_refused():
    outfeed = ipu.Outfeed()
    loop = lambda x: ipu.repeat(2, lambda c: (c + 1, c), x, outfeed=outfeed)  # noqa: E731
    with pytest.raises(ipu.FeedError, match=r"\[feeds\] needs one loop .*; got a jax\.vmap of"):
        jax.jit(jax.vmap(loop))(jnp.arange(3.0))
