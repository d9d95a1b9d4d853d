"""`ipu.Outfeed`: its modes against a plain loop, and results while the program runs."""

from __future__ import annotations

import threading

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
    infeed, outfeed = ipu.Infeed([np.float32(5)]), ipu.Outfeed()
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
    [({"mode": "some"}, "mode to be one of"), ({"mode": "sum", "every": 2}, "every=1")],
)
def test_wrong_outfeeds_are_refused(arguments, message):
    with pytest.raises(ipu.FeedError, match=message):
        ipu.Outfeed(**arguments)


def test_a_body_without_a_result_is_refused():
    with pytest.raises(ipu.FeedError, match="a body that returns a pair"):
        ipu.repeat(1, lambda c: c, 0.0, outfeed=ipu.Outfeed())
