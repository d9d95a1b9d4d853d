"""What the machine can do at most, measured: the bounds of every kernel."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests.bench.row import Row

#: Bytes of an array beyond all caches, and of one that the last two hold with its copy.
_LARGE, _SMALL = 1 << 28, 1 << 21
_SIDE = 1024
_REPEATS = 9


def rows() -> Iterator[Row]:
    """Bandwidths and products, of all processors open to the process."""
    memory, caches = (copy_bandwidth(size) / 1e9 for size in (_LARGE, _SMALL))
    yield Row("peak: memory, GB/s", memory, None, "read and written by NumPy's copies")
    yield Row("peak: caches, GB/s", caches, None, f"the same over {_SMALL >> 20} MiB")
    yield Row("peak: products, GFLOP/s", product_rate() / 1e9, None, "float32, JAX's CPU backend")


def copy_bandwidth(num_bytes: int) -> float:
    """Bytes read and written in a second by copies of an array of so many bytes."""
    num_threads = len(os.sched_getaffinity(0))
    times = max(1, _LARGE // num_bytes // 4)
    source = np.ones(num_bytes // 4, np.float32)
    target = np.zeros_like(source)
    pieces = (np.array_split(array, num_threads) for array in (target, source))
    parts = list(zip(*pieces, strict=True))

    def copy(part: tuple[np.ndarray, np.ndarray]) -> None:
        for _ in range(times):
            np.copyto(*part)

    with ThreadPoolExecutor(num_threads) as pool:
        shortest = _shortest(lambda: list(pool.map(copy, parts)))
    return 2 * num_bytes * times / shortest


def product_rate() -> float:
    """Multiplications and additions in a second in a product of matrices.

    By JAX's CPU backend, by name: this is a peak of the machine to hold our kernels against, never
    a result of ours; NumPy's BLAS may be held to an older instruction set by the environment.
    """
    import jax
    import jax.numpy as jnp

    x = jax.device_put(np.ones((_SIDE, _SIDE), np.float32), jax.devices("cpu")[0])
    product = jax.jit(jnp.matmul)
    return 2 * _SIDE**3 / _shortest(lambda: product(x, x).block_until_ready())


def _shortest(work: Callable[[], object]) -> float:
    times = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
