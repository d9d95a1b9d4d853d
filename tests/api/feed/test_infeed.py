"""`ipu.Infeed`: order, bounds, ends, errors, restarts, and Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


def _sum_of(infeed, steps, **options):
    program = jax.jit(lambda x: ipu.repeat(steps, jnp.add, x, infeed=infeed, **options))
    return lambda: program(jnp.float32(0))


class _Counted:
    """An iterator that knows how many batches were drawn."""

    def __init__(self, number=10**9):
        self.drawn, self.number = 0, number

    def __iter__(self):
        while self.drawn < self.number:
            self.drawn += 1
            yield np.float32(self.drawn)


def test_batches_arrive_whole_and_in_order():
    batches = [
        {"x": np.full((3, 5), i, np.float16), "y": (np.arange(4) + i, np.array([i % 2 == 0]))}
        for i in range(20)
    ]
    infeed = ipu.Infeed(batches, prefetch_depth=3)
    outfeed = ipu.Outfeed()
    program = jax.jit(
        lambda: ipu.repeat(20, lambda c, b: (c + 1, b), 0, infeed=infeed, outfeed=outfeed)
    )
    assert program() == 20
    got = outfeed.dequeue()
    for i, batch in enumerate(batches):
        jax.tree.map(lambda g, w, i=i: np.testing.assert_array_equal(g[i], w), got, batch)
    assert got["x"].dtype == np.float16
    assert got["y"][0].dtype == np.int32
    assert got["y"][1].dtype == bool


@pytest.mark.parametrize("depth", [1, 4])
def test_no_more_than_the_depth_is_made_ahead(depth):
    data = _Counted()
    infeed = ipu.Infeed(data, prefetch_depth=depth)
    run = _sum_of(infeed, 10)
    assert run() == sum(range(1, 11))
    deadline = time.monotonic() + 5
    while data.drawn < 10 + depth and time.monotonic() < deadline:
        time.sleep(0.001)
    time.sleep(0.05)
    assert data.drawn == 10 + depth
    assert (infeed.position, infeed.num_prefetched) == (10, depth)
    assert run() == sum(range(11, 21))
    infeed.close()


def test_the_spec_is_the_first_batch():
    infeed = ipu.Infeed([{"a": np.zeros((2, 3)), "b": [1, 2]}])
    assert infeed.spec == {
        "a": jax.ShapeDtypeStruct((2, 3), np.float32),
        "b": [jax.ShapeDtypeStruct((), np.int32)] * 2,
    }


def test_the_end_of_the_data_is_an_error_and_later_runs_work():
    infeed = ipu.Infeed(np.arange(5, dtype=np.float32))
    run = _sum_of(infeed, 3)
    assert run() == 3
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"the end of the data after 5 batches"):
        run().block_until_ready()
    infeed.restart(position=2)
    assert run() == 9
    assert infeed.position == 5


def test_a_position_at_the_end_of_the_data_is_their_end():
    infeed = ipu.Infeed(np.arange(5, dtype=np.float32), position=5)
    assert tuple(map(float, _sum_of(infeed, 3, stop_at_end=True)())) == (0, 0)
    infeed.restart(position=3)
    assert tuple(map(float, _sum_of(infeed, 3, stop_at_end=True)())) == (7, 2)


def test_a_restart_that_fails_leaves_no_program_waiting():
    infeed = ipu.Infeed(np.arange(5, dtype=np.float32))
    run = _sum_of(infeed, 1)
    assert run() == 0
    with pytest.raises(ipu.FeedError, match="batches like the first one"):
        infeed.restart([np.zeros(2, np.float32)])
    with pytest.raises(jax.errors.JaxRuntimeError, match="an error where they began"):
        run().block_until_ready()


def test_stop_at_end_runs_what_there_is():
    infeed = ipu.Infeed(np.arange(5, dtype=np.float32))
    run = _sum_of(infeed, 3, stop_at_end=True)
    assert [tuple(map(float, run())) for _ in range(3)] == [(3, 3), (7, 2), (0, 0)]


def test_what_the_iterator_raises_comes_after_the_batches_before_it():
    def data():
        yield np.float32(1)
        yield np.float32(2)
        raise OSError("disk gone")

    infeed = ipu.Infeed(data)
    assert _sum_of(infeed, 2)() == 3
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"got OSError for batch 2: disk gone"):
        _sum_of(infeed, 1)().block_until_ready()
    infeed.restart([np.float32(7)])
    assert _sum_of(infeed, 1)() == 7


def test_a_stalled_iterator_runs_into_the_timeout():
    def data():
        yield np.float32(1)
        time.sleep(1)
        yield np.float32(2)

    infeed = ipu.Infeed(data, timeout=0.1)
    start = time.monotonic()
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"a batch within 0\.1.* after batch 1"):
        _sum_of(infeed, 2)().block_until_ready()
    assert time.monotonic() - start < 30
    assert infeed.wait_seconds >= 0.1


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            np.zeros(3, np.float32),
            r"needs batches like the first one: float32\[4\]; got float32\[3",
        ),
        (np.zeros(4, np.int32), r"got int32\[4\] for array 0 of batch 1"),
        ((np.zeros(4, np.float32),), r"batches of one structure"),
    ],
)
def test_batches_must_be_like_the_first(second, message):
    infeed = ipu.Infeed([np.zeros(4, np.float32), second])
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.block_until_ready(
            jax.jit(lambda: ipu.repeat(2, jnp.add, jnp.zeros(4), infeed=infeed))()
        )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ipu.Infeed([]).spec, "at least one batch"),
        (lambda: ipu.Infeed([np.float32(1)], prefetch_depth=0), "prefetch_depth of 1 or more"),
        (lambda: ipu.Infeed(7), "data that can be iterated over; got int"),
        (lambda: ipu.Infeed(["text"]).spec, "arrays of numbers"),
        (lambda: ipu.repeat(1, lambda x: x, 0, stop_at_end=True), "an infeed for stop_at_end"),
    ],
)
def test_wrong_feeds_are_refused(make, message):
    with pytest.raises(ipu.FeedError, match=message):
        make()


def test_the_arguments_survive_an_error():
    infeed = ipu.Infeed([np.float32(1)])
    x = jnp.arange(3.0)
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.jit(lambda x: ipu.repeat(2, jnp.add, x, infeed=infeed))(x).block_until_ready()
    assert x.tolist() == [0, 1, 2]


def test_a_closed_feed_fails_what_waits_for_it():
    infeed = ipu.Infeed([np.float32(1)])
    run = _sum_of(infeed, 1)
    assert run() == 1
    infeed.close()
    with pytest.raises(jax.errors.JaxRuntimeError, match="got one that was closed"):
        run().block_until_ready()


def test_on_the_cpu_a_loop_gives_the_same():
    infeed = ipu.Infeed(np.arange(6, dtype=np.float32))
    outfeed = ipu.Outfeed("sum")
    cpu = jax.devices("cpu")[0]
    with jax.default_device(cpu):
        program = jax.jit(
            lambda: ipu.repeat(6, lambda c, b: (c + b, b * b), 0.0, infeed=infeed, outfeed=outfeed)
        )
        result = program()
    assert result.devices() == {cpu}
    assert (float(result), float(outfeed.dequeue())) == (15, 55)


def _run(program: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


_STALLED = """
    import os, signal, sys, threading, time
    import jax, jax.numpy as jnp, numpy as np
    import ipujax as ipu

    def data():
        while True:
            yield np.float32(1)
            time.sleep(DELAY)

    infeed = ipu.Infeed(data)
    run = jax.jit(lambda x: ipu.repeat(1_000_000, jnp.add, x, infeed=infeed))
"""


@pytest.mark.parametrize("delay", ["0.001", "10_000"])
def test_ctrl_c_ends_a_program_that_fetches_or_waits(delay):
    result = _run(
        _STALLED.replace("DELAY", delay)
        + """
    def interrupt():
        while infeed.position == 0:
            time.sleep(0.05)
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    result = run(jnp.float32(0))
    try:
        try:
            result.block_until_ready()
            time.sleep(5)
        except Exception as error:
            print("first", error)
    except KeyboardInterrupt as error:
        print("KeyboardInterrupt", error.__context__)
    try:
        result.block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        print(error)
        """
    )
    assert result.stdout.startswith("KeyboardInterrupt None\nCANCELLED: "), result
    assert "got an interrupt (Ctrl-C)" in result.stdout, result


def test_python_ends_while_a_program_waits():
    result = _run(_STALLED.replace("DELAY", "10_000") + "    run(jnp.float32(0))\n")
    assert result.returncode == 0, result
