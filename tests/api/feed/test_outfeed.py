"""`ipu.Outfeed`: its modes against a plain loop, and results while the program runs."""

from __future__ import annotations

import textwrap
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


def _steps(n):
    """What the loop below hands out, by NumPy."""
    x, made = np.float32(1), []
    for i in range(n):
        made.append({"x": x, "row": np.arange(3, dtype=np.int32) + i})
        x = x * np.float32(1.5)
    return made


def _program(n, outfeed):
    def body(carry):
        x, i = carry
        return (x * 1.5, i + 1), {"x": x, "row": jnp.arange(3, dtype=jnp.int32) + i}

    return jax.jit(lambda: ipu.repeat(n, body, (1.0, 0), outfeed=outfeed)[0])


def _expected(mode, items):
    if mode in ("last", "final"):
        return items[-1]
    stacked = {key: np.stack([item[key] for item in items]) for key in items[0]}
    return stacked if mode == "all" else {key: x.sum(0) for key, x in stacked.items()}


@pytest.mark.parametrize("mode", ["all", "last", "sum", "final"])
def test_modes_are_those_of_a_plain_loop(mode):
    outfeed = ipu.Outfeed(mode)
    program = _program(7, outfeed)
    for _ in range(2):
        program().block_until_ready()
        got, wanted = outfeed.dequeue(), _expected(mode, _steps(7))
        assert set(got) == set(wanted)
        for key, x in wanted.items():
            np.testing.assert_allclose(got[key], x, rtol=1e-6)


def test_nothing_is_left_after_it_was_taken():
    outfeed, last = ipu.Outfeed(), ipu.Outfeed("last")
    for feed in (outfeed, last):
        _program(2, feed)().block_until_ready()
        feed.dequeue()
    assert outfeed.dequeue()["row"].shape == (0, 3)
    with pytest.raises(ipu.FeedError, match="needs a result; got none yet"):
        last.dequeue()


def test_every_keeps_one_of_so_many():
    outfeed = ipu.Outfeed(every=3)
    _program(8, outfeed)().block_until_ready()
    wanted = [step["x"] for step in _steps(8)][2::3]
    np.testing.assert_allclose(outfeed.dequeue()["x"], wanted, rtol=1e-6)


def test_results_come_while_the_program_runs():
    """The data wait for the first result, so it cannot come at the end."""
    seen = threading.Event()

    def data():
        yield np.float32(1)
        assert seen.wait(30)
        yield np.float32(2)

    infeed, outfeed = ipu.Infeed(data), ipu.Outfeed()
    program = jax.jit(
        lambda: ipu.repeat(2, lambda c, b: (c + b, b), 0.0, infeed=infeed, outfeed=outfeed)
    )
    result = program()
    got = []
    for item in outfeed.items(result):
        got.append(float(item))
        seen.set()
    assert (got, float(result)) == ([1, 2], 3)


def test_items_raise_the_programs_error_after_what_came_before():
    """An error that is known while the call waits for short callbacks is one of the call."""

    def one_batch():
        yield np.float32(5)
        time.sleep(0.3)

    infeed, outfeed = ipu.Infeed(one_batch), ipu.Outfeed()
    program = jax.jit(
        lambda: ipu.repeat(2, lambda c, b: (c + b, b), 0.0, infeed=infeed, outfeed=outfeed)
    )
    items = outfeed.items(program())
    assert next(items) == 5
    with pytest.raises(jax.errors.JaxRuntimeError, match="the end of the data"):
        next(items)


def test_one_outfeed_takes_one_kind_of_result():
    outfeed = ipu.Outfeed()
    _program(1, outfeed)()
    with pytest.raises(ipu.FeedError, match="like those of the loop that used it first"):
        jax.jit(lambda: ipu.repeat(1, lambda c: (c, c), 0.0, outfeed=outfeed))()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mode": "some"}, "mode to be one of"),
        ({"mode": "sum", "every": 2}, "every=1"),
        ({"max_bytes": 0}, "max_bytes of 1 or more"),
        ({"timeout": 0}, "a timeout above 0"),
    ],
)
def test_wrong_outfeeds_are_refused(arguments, message):
    with pytest.raises(ipu.FeedError, match=message):
        ipu.Outfeed(**arguments)


def test_a_body_without_a_result_is_refused():
    with pytest.raises(ipu.FeedError, match="a body that returns a pair"):
        ipu.repeat(1, lambda c: c, 0.0, outfeed=ipu.Outfeed())


def _numbers(n, outfeed):
    """A program that hands out 0, 1, ... of 4 bytes each, and the feed it reads them from."""
    infeed = ipu.Infeed(np.arange(n, dtype=np.float32), prefetch_depth=1)

    def loop():
        return ipu.repeat(n, lambda c, b: (c + b, b), 0.0, infeed=infeed, outfeed=outfeed)

    return jax.jit(loop), infeed


def test_a_slow_reader_makes_the_program_wait_and_gets_everything():
    outfeed = ipu.Outfeed(max_bytes=12)
    program, infeed = _numbers(50, outfeed)
    result = program()
    deadline = time.monotonic() + 5
    while infeed.position < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)  # time for more, if it did not wait
    assert infeed.position == 4, "three results wait, and the program has the fourth"
    assert [float(item) for item in outfeed.items(result)] == list(range(50))
    assert float(result) == sum(range(50))
    assert outfeed.wait_seconds > 0.05


def test_results_that_nobody_takes_are_an_error_in_time():
    outfeed = ipu.Outfeed(max_bytes=12, timeout=0.1)
    program, _ = _numbers(50, outfeed)
    start = time.monotonic()
    with pytest.raises(jax.errors.JaxRuntimeError, match=r"taken within 0\.1 s while 12 bytes"):
        program().block_until_ready()
    assert time.monotonic() - start < 30
    assert outfeed.dequeue().tolist() == [0, 1, 2]
    few, _ = _numbers(2, outfeed)
    assert float(few()) == 1
    assert outfeed.dequeue().tolist() == [0, 1]


@pytest.mark.parametrize("mode", ["last", "sum", "final"])
def test_modes_that_keep_one_result_wait_for_nobody(mode):
    outfeed = ipu.Outfeed(mode, max_bytes=4, timeout=0.1)
    program, _ = _numbers(50, outfeed)
    program().block_until_ready()
    assert outfeed.dequeue() == (sum(range(50)) if mode == "sum" else 49)


def test_python_ends_although_a_program_waits_for_a_reader(run_python):
    code = textwrap.dedent("""
        import time
        import jax, numpy as np
        import ipujax as ipu
        outfeed = ipu.Outfeed(max_bytes=4, timeout=None)
        infeed = ipu.Infeed(np.arange(9, dtype=np.float32))
        step = lambda c, b: (c + b, b)
        result = jax.jit(lambda: ipu.repeat(9, step, 0.0, infeed=infeed, outfeed=outfeed))()
        while infeed.position < 2:
            time.sleep(0.01)
        print("waits", result.is_ready())
    """)
    done = run_python("-c", code, timeout=60)
    assert (done.returncode, done.stdout) == (0, "waits False\n"), done.stderr
