"""What the machine can do at most, measured with NumPy: the bounds of every kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ipujax.cli.measure.row import Row

_COPY_BYTES = 1 << 28
_SIDE = 2048
_REPEATS = 7


def rows() -> Iterator[Row]:
    """Memory bandwidth, and float32 products, of all processors open to the process."""
    num_threads = len(os.sched_getaffinity(0))
    yield Row("peak: memory, GB/s", copy_bandwidth(num_threads) / 1e9, None, "read and written")
    yield Row("peak: products, GFLOP/s", product_rate() / 1e9, None, "float32, NumPy's BLAS")


def copy_bandwidth(num_threads: int) -> float:
    """Bytes read and written in a second by copies far beyond the caches."""
    source = np.ones(_COPY_BYTES // 4, np.float32)
    target = np.zeros_like(source)
    pieces = (np.array_split(array, num_threads) for array in (target, source))
    parts = list(zip(*pieces, strict=True))
    with ThreadPoolExecutor(num_threads) as pool:
        shortest = _shortest(lambda: list(pool.map(lambda part: np.copyto(*part), parts)))
    return 2 * _COPY_BYTES / shortest


def product_rate() -> float:
    """Multiplications and additions in a second in a product of matrices."""
    x = np.ones((_SIDE, _SIDE), np.float32)
    out = np.empty_like(x)
    return 2 * _SIDE**3 / _shortest(lambda: np.matmul(x, x, out=out))


def _shortest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
