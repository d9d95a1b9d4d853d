"""`Buffered`: whole groups of items, each epoch anew, read no further than it must."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


@pytest.mark.parametrize("number", [0, 3, 4, 7, 8])
@pytest.mark.parametrize("size", [1, 4, 9])
def test_the_number_of_items_is_a_multiple(number: int, size: int) -> None:
    data = ipu.data.Buffered([{"x": i} for i in range(number)], size)
    wanted = [{"x": i} for i in range(number // size * size)]
    assert len(data) == len(wanted)
    assert [list(data), list(data)] == [wanted, wanted]


def test_items_are_read_in_groups() -> None:
    read: list[int] = []
    items = iter(ipu.data.Buffered((read.append(i) or i for i in range(10)), 4))
    assert (next(items), read) == (0, [0, 1, 2, 3])


def test_a_loop_takes_them_and_epochs_reach_the_loader() -> None:
    loader = ipu.data.Loader(np.arange(10, dtype=np.float32), 2, seed=3)
    data = ipu.data.Buffered(loader, 4)
    body = jax.jit(lambda: ipu.repeat(4, lambda c, x: c + jnp.sum(x), 0.0, infeed=infeed))
    data.set_epoch(1)
    infeed = ipu.Infeed(data)
    loader.set_epoch(1)
    assert body() == sum(float(batch.sum()) for batch, _ in zip(loader, range(4), strict=False))


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        ([1], 0, "a buffer_size of 1 or more; got 0"),
        ([1], 1.5, "a buffer_size of 1 or more; got 1.5"),
        (3, 1, "data that can be iterated; got int"),
    ],
)
def test_bad_arguments(data: Any, size: Any, message: str) -> None:
    with pytest.raises(ipu.FeedError, match=message):
        ipu.data.Buffered(data, size)
