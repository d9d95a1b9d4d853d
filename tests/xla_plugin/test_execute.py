"""Running programs: in the caller or on the device's thread, donation, failures, threads."""

from __future__ import annotations

import threading
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback

add_one = jax.jit(lambda x: x + 1)


@partial(jax.jit, donate_argnums=0)
def add_in_place(x, y):
    return x + y


@jax.jit
def slow_add_one(x):
    """Runs for a while on the device's thread, as programs with callbacks always do."""

    def wait(value):
        time.sleep(0.15)
        return value + np.float32(1)

    return jax.pure_callback(wait, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@jax.jit
def failing(x):
    def fail(value):
        time.sleep(0.3)  # a failure that comes sooner is an error of the call
        raise ValueError("no such luck")

    return jax.pure_callback(fail, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@pytest.fixture
def x(device) -> jax.Array:
    return jax.device_put(np.arange(4, dtype=np.float32), device)


def test_a_short_program_runs_in_the_caller(x, stats):
    add_one(x).block_until_ready()
    before = stats("inline_runs")
    for _ in range(50):
        add_one(x)
    # A busy machine makes some runs look long, and those after them too.
    assert stats("inline_runs") >= before + 10


def test_a_program_with_callbacks_runs_on_the_devices_thread(x, stats):
    before = stats("queued_runs")
    slow_add_one(x).block_until_ready()
    assert stats("queued_runs") == before + 1


def test_dispatch_does_not_wait(x):
    slow_add_one(x).block_until_ready()
    start = time.perf_counter()
    result = add_one(slow_add_one(x))
    assert time.perf_counter() - start < 0.1
    assert not result.is_ready()
    np.testing.assert_array_equal(result, np.arange(4) + 2)


def test_results_come_in_the_order_of_calls(x):
    value = slow_add_one(x)
    for _ in range(50):
        value = add_one(value)
    np.testing.assert_array_equal(value, np.arange(4) + 51)


def test_more_calls_than_the_queue_takes(x):
    value = slow_add_one(x)
    results = [add_one(value) for _ in range(200)]
    for result in results:
        np.testing.assert_array_equal(result, np.arange(4) + 2)


def test_an_unread_argument_is_written_in_place(x, stats):
    source = add_one(x)
    pointer = source.unsafe_buffer_pointer()
    before = stats("donated_in_place")
    result = add_in_place(source, 1.0)
    assert source.is_deleted()
    assert result.unsafe_buffer_pointer() == pointer
    assert stats("donated_in_place") == before + 1


def test_a_donated_array_with_a_view_is_copied(x, stats):
    source = add_one(x)
    view = np.asarray(source)
    before = stats("donated_copied")
    result = add_in_place(source, 1.0)
    assert stats("donated_copied") == before + 1
    assert source.is_deleted()
    np.testing.assert_array_equal(view, np.arange(4) + 1)
    np.testing.assert_array_equal(result, np.arange(4) + 2)


def test_a_donated_array_given_twice_is_refused(x):
    source = add_one(x)
    text = r"needs donated arrays once; got that of argument 0 as argument 1 too"
    with pytest.raises(jax.errors.JaxRuntimeError, match=text):
        add_in_place(source, source)
    np.testing.assert_array_equal(source, np.arange(4) + 1)
    np.testing.assert_array_equal(add_in_place(source, source.copy()), (np.arange(4) + 1) * 2)


def test_memory_of_the_host_is_never_written(device, aligned):
    host = aligned(4096)
    array = jax.device_put(host, device)
    np.testing.assert_array_equal(add_in_place(array, 1.0), np.arange(4096) + 1)
    np.testing.assert_array_equal(host, np.arange(4096))


def test_donation_waits_for_earlier_readers(x):
    source = slow_add_one(x)
    reader = add_one(source)
    copy = jax.device_put(source, jax.devices("ipu")[1])
    result = add_in_place(source, 10.0)
    np.testing.assert_array_equal(reader, np.arange(4) + 2)
    np.testing.assert_array_equal(copy, np.arange(4) + 1)
    np.testing.assert_array_equal(result, np.arange(4) + 11)


@pytest.mark.filterwarnings("ignore")
def test_a_failure_flows_to_what_uses_it_and_no_further(x, caplog):
    bad = failing(x)
    for poisoned in (bad, add_one(bad), add_in_place(add_one(bad), 1.0)):
        with pytest.raises(jax.errors.JaxRuntimeError, match="no such luck"):
            poisoned.block_until_ready()
    with pytest.raises(jax.errors.JaxRuntimeError, match="no such luck"):
        np.asarray(jax.device_put(bad, jax.devices("ipu")[1]))
    np.testing.assert_array_equal(add_one(x), np.arange(4) + 1)


def test_a_callback_may_run_a_program_of_its_own_device(x, stats):
    def again(value):
        return np.asarray(add_one(jax.device_put(value, jax.devices("ipu")[0])))

    before = stats("nested_runs")
    result = jax.jit(lambda v: jax.pure_callback(again, jax.ShapeDtypeStruct((4,), v.dtype), v))(x)
    np.testing.assert_array_equal(result, np.arange(4) + 1)
    assert stats("nested_runs") > before


def waiting_for(event: threading.Event):
    """A program that adds 1 once `event` is set; its callback fails where nobody sets it."""

    def wait(value):
        assert event.wait(20), "nobody set the event"
        return value + np.float32(1)

    return jax.jit(lambda v: jax.pure_callback(wait, jax.ShapeDtypeStruct((4,), v.dtype), v))


def test_a_callback_may_wait_for_a_thread_that_runs_a_program_of_its_device(x):
    def host(value):
        results: list[np.ndarray] = []
        thread = threading.Thread(target=lambda: results.append(np.asarray(add_one(x))))
        thread.start()
        thread.join(20)
        return value + results[0]

    result = jax.jit(lambda v: jax.pure_callback(host, jax.ShapeDtypeStruct((4,), v.dtype), v))(x)
    np.testing.assert_array_equal(result, 2 * np.arange(4) + 1)


def test_a_callback_may_wait_for_programs_queued_behind_its_own(x):
    event = threading.Event()
    waits = waiting_for(event)
    waits.lower(x).compile()
    first = waits(x)
    second = add_one(add_one(x))
    np.testing.assert_array_equal(second, np.arange(4) + 2)
    event.set()
    np.testing.assert_array_equal(first, np.arange(4) + 1)


def test_what_overtakes_a_program_leaves_its_arguments_as_they_are(x):
    event = threading.Event()
    waits = waiting_for(event)
    source = add_one(x)
    other = add_one(x)
    first = jax.jit(lambda v: waits(v) + v)(source)
    updated = add_in_place(source, 10.0)
    np.testing.assert_array_equal(add_in_place(other, 1.0), np.arange(4) + 2)
    event.set()
    np.testing.assert_array_equal(updated, np.arange(4) + 11)
    np.testing.assert_array_equal(first, 2 * (np.arange(4) + 1) + 1)


def test_no_result_and_many_results(x):
    assert jax.jit(lambda v: ())(x) == ()
    results = jax.jit(lambda v: [v + i for i in range(50)])(x)
    for i, result in enumerate(results):
        np.testing.assert_array_equal(result, np.arange(4) + i)


def test_threads_share_a_device(device):
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            value = jax.device_put(np.full(16, seed, np.float32), device)
            for step in range(200):
                value = add_in_place(value, 1.0) if step % 2 else add_one(value)
                if step % 50 == seed:
                    np.testing.assert_array_equal(value, np.full(16, seed + step + 1))
            np.testing.assert_array_equal(value, np.full(16, seed + 200))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_every_device_runs(device):
    for other in jax.devices("ipu"):
        result = add_one(jax.device_put(np.arange(3, dtype=np.float32), other))
        assert result.devices() == {other}
        np.testing.assert_array_equal(result, [1, 2, 3])


def test_a_wrong_argument_of_a_compiled_program_is_refused(x):
    compiled = add_one.lower(x).compile()
    with pytest.raises(TypeError):
        compiled(jnp.ones(5))
    np.testing.assert_array_equal(compiled(x), np.arange(4) + 1)


def test_ordered_effects_pass_their_tokens(x):
    seen: list[float] = []

    @jax.jit
    def note(v):
        io_callback(lambda a: seen.append(float(a[0])), None, v, ordered=True)
        return v + 1

    value = x
    for _ in range(5):
        value = note(value)
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3, 4]
