"""Loops on the device: what a step costs, and whether data are fetched while the device works."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.row import Row, seconds

FED = "loop with feed, producer of 80 %"
PYTHON = "loop with feed over Python's loop"
EMPTY = "microseconds of a step that adds 1"
NAMES = (FED, PYTHON, EMPTY)
FED_BOUND, PYTHON_BOUND, EMPTY_BOUND = 1.08, 1.0, 1.0
STEPS, WIDTH, PRODUCTS = 50, 400, 6
EMPTY_STEPS = 1000
#: The producer's share of a step's time.
SHARE = 0.8


def rows(wanted: str, rounds: int) -> Iterator[Row]:
    """The rows whose name contains `wanted`, a text in lower case."""
    if wanted in EMPTY.lower():
        yield _empty(max(rounds, 9))
    if wanted in FED.lower() or wanted in PYTHON.lower():
        yield from _fed(max(rounds, 9))


def _timed(run: Callable[[], Any]) -> float:
    import jax

    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def _empty(rounds: int) -> Row:
    import jax
    import jax.numpy as jnp

    import ipujax as ipu

    device = jax.devices("ipu")[0]
    x = jax.device_put(jnp.int32(0), device)
    loop = jax.jit(lambda x: ipu.repeat(EMPTY_STEPS, lambda x: x + 1, x))
    assert loop(x) == EMPTY_STEPS
    took = statistics.median(_timed(lambda: loop(x)) for _ in range(10 * rounds))
    return Row(EMPTY, took / EMPTY_STEPS * 1e6, EMPTY_BOUND, f"{EMPTY_STEPS} in {seconds(took)}")


def _fed(rounds: int) -> Iterator[Row]:
    """The loop with a feed, the same loop with one batch, and single steps with device_put."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    import ipujax as ipu

    device = jax.devices("ipu")[0]
    batch = np.ones((WIDTH, WIDTH), np.float32)
    x, w, held = (jax.device_put(batch / WIDTH, device) for _ in range(3))

    def body(x: Any, batch: Any, w: Any) -> Any:
        for _ in range(PRODUCTS):
            x = jnp.tanh(x @ w + batch)
        return x

    compute = jax.jit(lambda x, b, w: ipu.repeat(STEPS, lambda x: body(x, b, w), x))
    _timed(lambda: compute(x, held, w))
    pause = SHARE * min(_timed(lambda: compute(x, held, w)) for _ in range(3)) / STEPS

    def data() -> Iterator[Any]:
        while True:
            time.sleep(pause)
            yield batch

    infeed = ipu.Infeed(data)
    fed = jax.jit(lambda x, w: ipu.repeat(STEPS, lambda x, b: body(x, b, w), x, infeed=infeed))
    single, own = jax.jit(body), data()

    def python_loop() -> Any:
        made = x
        for _ in range(STEPS):
            made = single(made, jax.device_put(next(own), device), w)
        return made

    runs = (lambda: compute(x, held, w), lambda: fed(x, w), python_loop)
    for run in runs:
        _timed(run)
    times = [[_timed(run) for run in runs] for _ in range(rounds)]
    infeed.close()
    plain, with_feed, python = (statistics.median(column) for column in zip(*times, strict=True))
    shown = f"feed {seconds(with_feed)}, compute {seconds(plain)}, Python {seconds(python)}"
    yield Row(FED, statistics.median(b / a for a, b, _ in times), FED_BOUND, shown)
    yield Row(PYTHON, statistics.median(b / c for _, b, c in times), PYTHON_BOUND, shown)
