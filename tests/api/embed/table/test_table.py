"""Rows, versions and gradients that wait, against a plain loop over a NumPy table."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from ipujax.api.embed.table.sgd import HostEmbeddingSGD
from ipujax.api.embed.table.table import TOKENS, HostTable, Part
from ipujax.errors import CallbackError

RATE = 0.25


def new_table(dtype: Any = np.float32, **optimizer: Any) -> tuple[HostTable, np.ndarray]:
    """A table [20, 6], and a copy of its rows in float64."""
    rows = np.random.default_rng(0).normal(size=(20, 6)).astype(dtype)
    return HostTable(rows, HostEmbeddingSGD(**{"learning_rate": RATE} | optimizer)), np.array(
        rows, np.float64
    )


def gradients(seed: int, count: int = 9, num_rows: int = 20) -> tuple[np.ndarray, np.ndarray]:
    """Ids of which several are equal, and gradients [count, 6]."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(0, num_rows, count).astype(np.int32)
    ids[: count // 3] = ids[-1]
    return ids, rng.normal(size=(count, 6)).astype(np.float32)


def hand_in(table: HostTable, token: float, change: Any, part: Any = None, **more: Any) -> int:
    options = {"replica": 0, "learning_rate": None, "clip": True} | more
    return table.deposit(token, *change, part or Part(), **options)


def by_loop(rows: np.ndarray, *changes: Any, rate: float = RATE) -> np.ndarray:
    rows = rows.copy()
    for ids, values in changes:
        for index, value in zip(ids, values, strict=True):
            rows[index] -= rate * value.astype(np.float64)
    return rows


ALL = np.arange(20)


@pytest.mark.parametrize(
    ("dtype", "rtol"), [(np.float32, 1e-6), (np.float16, 1e-3), (ml_dtypes.bfloat16, 8e-3)]
)
def test_gradients_change_the_rows_when_a_token_counts_them(dtype, rtol) -> None:
    table, rows = new_table(dtype)
    change = gradients(1)
    raised = hand_in(table, 0, change)
    assert raised == 1
    np.testing.assert_array_equal(table.lookup(0, ALL, Part(), False).astype(np.float64), rows)
    found = table.lookup(1, ALL, Part(), False)
    assert found.dtype == dtype
    np.testing.assert_allclose(found.astype(np.float64), by_loop(rows, change), rtol, rtol)


def test_equal_ids_are_added_up_in_float32() -> None:
    """4,096 gradients of one row of float16, each below half of its last place."""
    rows = np.ones((3, 1), np.float16)
    table = HostTable(rows, HostEmbeddingSGD(1.0))
    hand_in(table, 0, (np.ones(4096, np.int32), np.full((4096, 1), 1e-4, np.float32)))
    np.testing.assert_allclose(
        table.lookup(1, np.arange(3), Part(), True)[:, 0], [1, 0.59, 1], 1e-3
    )


def test_infinities_and_nan_reach_their_rows_alone() -> None:
    table, rows = new_table(np.float16)
    values = np.array([np.inf, np.nan, 1e30, -1e5, 3e38, 3e38], np.float32)
    ids = np.array([1, 2, 3, 4, 5, 5])
    hand_in(table, 0, (ids, np.broadcast_to(values[:, None], (6, 6))))
    table.settle("test", 1)
    found = table.rows[[1, 2, 3, 5], 0]
    np.testing.assert_array_equal(found, np.array([-np.inf, np.nan, -np.inf, -np.inf], np.float16))
    np.testing.assert_allclose(table.rows[4].astype(float), rows[4] + 25000, 1e-3)
    others = np.setdiff1d(ALL, ids)
    np.testing.assert_array_equal(table.rows[others], rows[others])


@pytest.mark.parametrize("lengths", [[1], [9] * 3, [1, 2, 3, 30, 8, 7], [100]])
def test_runs_of_equal_ids_of_any_length(lengths) -> None:
    ids = np.random.default_rng(0).permutation(np.repeat(np.arange(len(lengths)), lengths))
    values = np.random.default_rng(1).normal(size=(len(ids), 6)).astype(np.float32)
    table, rows = new_table()
    hand_in(table, 0, (ids, values))
    table.settle("test", 1)
    np.testing.assert_allclose(table.rows, by_loop(rows, (ids, values)), 1e-5, 1e-5)


def test_several_gradients_of_one_step_are_one_update() -> None:
    calls = []

    def rate(num_updates: int) -> float:
        calls.append(num_updates)
        return RATE

    table, rows = new_table(learning_rate=rate)
    changes = [gradients(seed) for seed in range(3)]
    for change in changes:
        hand_in(table, 0, change)
    table.settle("test", 3)
    np.testing.assert_allclose(table.rows, by_loop(rows, *changes), 1e-5, 1e-6)
    hand_in(table, 3, changes[0])
    table.settle("test", 4)
    assert calls == [0, 1]


def test_accumulated_steps_are_applied_together() -> None:
    table, rows = new_table(accumulation_factor=3)
    changes = [gradients(seed) for seed in range(7)]
    for number, change in enumerate(changes):
        hand_in(table, number, change)
        table.settle("test", number + 1)
        done = changes[: (number + 1) // 3 * 3]
        np.testing.assert_allclose(table.rows, by_loop(rows, *done), 1e-5, 1e-5)
    assert (table.num_updates, table.num_accumulated) == (2, 1)


def test_a_learning_rate_of_its_own() -> None:
    table, rows = new_table()
    change = gradients(1)
    hand_in(table, 0, change, learning_rate=2.0)
    table.settle("test", 1)
    np.testing.assert_allclose(table.rows, by_loop(rows, change, rate=2.0), 1e-5, 1e-5)


def test_the_order_in_which_replicas_arrive_does_not_matter() -> None:
    found = []
    for order in ([0, 1, 2, 3], [2, 0, 3, 1]):
        table, _ = new_table()
        for replica in order:
            hand_in(table, 0, gradients(replica), replica=replica)
        table.settle("test", 4)
        found.append(table.rows.copy())
    np.testing.assert_array_equal(*found)


# Tokens ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [1, 3, -1, 0.5, float("nan"), float("inf"), TOKENS - 1])
def test_another_token_is_refused_and_nothing_changes(token) -> None:
    table, rows = new_table()
    hand_in(table, 0, gradients(1))
    hand_in(table, 0, gradients(2))
    for call in (
        lambda: table.lookup(token, ALL, Part(), True),
        lambda: hand_in(table, token, gradients(3)),
    ):
        with pytest.raises(CallbackError, match=r"needs the token 0 or 2, .* got"):
            call()
    np.testing.assert_array_equal(table.rows, rows.astype(np.float32))
    assert table.token() == 2


def test_what_a_failed_step_handed_in_is_dropped() -> None:
    table, rows = new_table()
    hand_in(table, 0, gradients(1))
    hand_in(table, 0, gradients(1))  # the step again
    with pytest.raises(CallbackError, match=r"rewind\(\)"):
        table.lookup(1, ALL, Part(), True)
    assert table.rewind(0) == 0
    hand_in(table, 0, gradients(1))
    table.settle("test", 1)
    np.testing.assert_allclose(table.rows, by_loop(rows, gradients(1)), 1e-5, 1e-5)
    with pytest.raises(CallbackError, match=r"HostEmbedding.rewind\] needs the token 1, .* got 0"):
        table.rewind(0)


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_steps_in_the_rows_are_taken_back_bit_for_bit(dtype: Any, factor: int) -> None:
    """At each of five steps: back to it, and on again, as if nothing had been."""
    rows = np.random.default_rng(0).normal(size=(20, 6)).astype(dtype)
    optimizer = HostEmbeddingSGD(lambda updates: 0.5**updates, factor)
    left = Part("encoding", 0, 2)

    def run(table: HostTable, begin: int, end: int) -> list[bytes]:
        seen = []
        for token in range(begin, end):
            seen.append(table.lookup(token, ALL, Part(), False).tobytes())
            ids, values = gradients(token)
            hand_in(table, token, (ids, values[:, :3]), left)
        return seen

    wanted = run(HostTable(rows.copy(), optimizer), 0, 6)
    for back in range(6):
        table = HostTable(rows.copy(), optimizer, rewind_steps=5)
        assert run(table, 0, 6) == wanted
        assert table.rewind(back) == back
        assert run(table, back, 6) == wanted[back:]


def test_steps_beyond_the_last_are_not_taken_back() -> None:
    table = HostTable(np.zeros((20, 6), np.float32), HostEmbeddingSGD(RATE), rewind_steps=2)
    for token in range(4):
        hand_in(table, token, gradients(token))
    before = table.lookup(3, ALL, Part(), False)
    for token in (0, 0.5, 5, -1):
        with pytest.raises(
            CallbackError, match=r"rewind\] needs the token 3 or 4, .*rewind_steps="
        ):
            table.rewind(token)
    np.testing.assert_array_equal(table.lookup(3, ALL, Part(), False), before)
    assert table.rewind(1) == 1
    with pytest.raises(CallbackError, match="needs the token 1,"):
        table.rewind(0)
    table.replaced()
    with pytest.raises(CallbackError, match="rewind"):
        table.rewind(1)


def test_rows_read_ahead_are_those_of_before() -> None:
    table = HostTable(np.zeros((20, 6), np.float32), HostEmbeddingSGD(RATE), rewind_steps=1)
    hand_in(table, 0, gradients(0))
    table.lookup(1, ALL, Part(), False)
    table.lookup_ahead(ALL, Part(), False)
    table.rewind(0)
    np.testing.assert_array_equal(table.lookup(0, ALL, Part(), False), np.zeros((20, 6)))
    assert table.ahead.num_used == 1


def test_tokens_begin_again_before_float32_stops_counting() -> None:
    table, rows = new_table()
    table.version = TOKENS - 2
    token = np.float32(table.token())
    changes = []
    for seed in range(5):
        pair = [gradients(seed), gradients(seed + 10)]
        changes += pair
        raised = [hand_in(table, token, change) for change in pair]
        token = np.float32(token + np.float32(sum(raised)))
        assert abs(token) <= TOKENS
        table.settle("test", token)
    np.testing.assert_allclose(table.rows, by_loop(rows, *changes), 1e-4, 1e-5)


def test_a_learning_rate_that_turns_nan_changes_nothing() -> None:
    table, rows = new_table(learning_rate=lambda n: float("nan"))
    hand_in(table, 0, gradients(1))
    with pytest.raises(CallbackError, match="learning rate of at least 0; got nan"):
        table.lookup(1, ALL, Part(), True)
    with pytest.raises(CallbackError, match="learning rate of at least 0; got -1"):
        hand_in(table, 0, gradients(1), learning_rate=-1.0)
    np.testing.assert_array_equal(table.rows, rows.astype(np.float32))
    assert table.token() == 1


# Indices -----------------------------------------------------------------------------------------


def test_indices_are_clipped_or_refused() -> None:
    table, rows = new_table()
    ids = np.array([[-5, 0], [19, 99]], np.int32)
    found = table.lookup(0, ids, Part(), True)
    np.testing.assert_array_equal(found, rows.astype(np.float32)[[[0, 0], [19, 19]]])
    values = np.ones((2, 2, 6), np.float32)
    hand_in(table, 0, (ids, values))
    table.settle("test", 1)
    wanted = by_loop(rows, ([0, 0, 19, 19], values.reshape(4, 6)))
    np.testing.assert_allclose(table.rows, wanted, 1e-6)
    with pytest.raises(CallbackError, match=r"lookup\] needs indices from 0 to 19; got -5"):
        table.lookup(1, ids, Part(), False)
    with pytest.raises(CallbackError, match=r"update\] needs indices from 0 to 19; got 99"):
        hand_in(table, 1, (ids[1:], values[1:]), clip=False)
    assert table.token() == 1


def test_no_indices() -> None:
    table, rows = new_table()
    none = np.zeros((0, 3), np.int32)
    assert table.lookup(0, none, Part(), False).shape == (0, 3, 6)
    hand_in(table, 0, (none, np.zeros((0, 3, 6), np.float32)))
    table.settle("test", 1)
    np.testing.assert_array_equal(table.rows, rows.astype(np.float32))


# Parts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [2, 3, 6])
def test_parts_together_are_the_table(count) -> None:
    table, rows = new_table()
    ids = np.random.default_rng(0).integers(0, 20, (4, 5))
    by_row = [table.lookup(0, ids, Part("token", i, count), True) for i in range(count)]
    np.testing.assert_array_equal(sum(by_row), rows.astype(np.float32)[ids])
    by_column = [table.lookup(0, ids, Part("encoding", i, count), True) for i in range(count)]
    np.testing.assert_array_equal(np.concatenate(by_column, -1), rows.astype(np.float32)[ids])


@pytest.mark.parametrize("strategy", ["token", "encoding"])
@pytest.mark.parametrize("factor", [1, 2])
def test_parts_are_updated_as_the_whole(strategy, factor) -> None:
    table, rows = new_table(accumulation_factor=factor)
    changes = [gradients(1), gradients(2)]
    for step, (ids, values) in enumerate(changes):
        for index in range(3):
            part = Part(strategy, index, 3)
            own = values[:, part.columns(6)]
            hand_in(table, 3 * step, (ids, own), part, replica=index)
        table.settle("test", 3 * step + 3)
    np.testing.assert_allclose(table.rows, by_loop(rows, *changes), 1e-5, 1e-5)


# Reading ahead -----------------------------------------------------------------------------------


def test_rows_read_ahead_are_as_fresh_as_others() -> None:
    table, rows = new_table()
    ids = np.arange(0, 20, 2)
    table.lookup_ahead(ids, Part(), True)
    change = (np.array([4, 5, 4]), np.ones((3, 6), np.float32))
    hand_in(table, 0, change)
    found = table.lookup(1, ids, Part(), True)
    assert table.ahead.num_used == 1
    np.testing.assert_allclose(found, by_loop(rows, change)[ids], 1e-6)
    table.lookup(1, ids, Part(), True)
    assert table.ahead.num_used == 1


class ReadBeforeWritten(np.ndarray):
    """Rows that are read ahead, to the end, in the moment before they are written."""

    read_ahead: Callable[[], None]

    def __array_finalize__(self, origin: Any) -> None:
        self.read_ahead = getattr(origin, "read_ahead", lambda: None)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.read_ahead()
        super().__setitem__(key, value)


def test_a_read_that_begins_within_a_change_is_as_fresh_as_others() -> None:
    table, rows = new_table()

    def read_ahead() -> None:
        table.lookup_ahead(ALL, Part(), True)
        for read in table.ahead._reads.values():
            read.rows.result()

    changed_while_read = table.rows.view(ReadBeforeWritten)
    changed_while_read.read_ahead = read_ahead
    table.rows = changed_while_read
    change = gradients(1)
    hand_in(table, 0, change)
    found = table.lookup(1, ALL, Part(), True)
    assert table.ahead.num_used == 1
    np.testing.assert_allclose(found, by_loop(rows, change), 1e-6)


def test_reads_and_changes_at_the_same_time() -> None:
    """Rows hold their version in each column; a lookup sees one version of all of them."""
    num_steps, ids = 60, np.arange(200)
    table = HostTable(np.zeros((200, 64), np.float32), HostEmbeddingSGD(1.0))
    errors: list[BaseException] = []

    def read_ahead() -> None:
        try:
            while table.version < num_steps:
                table.lookup_ahead(ids, Part(), True)
        except BaseException as error:  # the test's own thread must see it
            errors.append(error)

    thread = threading.Thread(target=read_ahead)
    thread.start()
    for step in range(num_steps):
        found = table.lookup(step, ids, Part(), True)
        np.testing.assert_array_equal(found, np.full((200, 64), -float(step)))
        hand_in(table, step, (ids, np.ones((200, 64), np.float32)))
    table.settle("test", num_steps)
    thread.join()
    assert not errors
    assert table.ahead.num_used > 0


def test_reads_that_nobody_asks_for_are_dropped() -> None:
    table, _ = new_table()
    for seed in range(100):
        table.lookup_ahead(np.random.default_rng(seed).integers(0, 20, 5), Part(), True)
    assert len(table.ahead._reads) == 64
