"""Benchmarks of data: of an iterator, and of a feed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ipujax.api.feed.batches import Data, iterate, leaves_of
from ipujax.api.feed.infeed import Infeed
from ipujax.errors import FeedError


def dataset_benchmark(
    data: Data,
    number_of_epochs: int,
    elements_per_epoch: int,
    print_stats: bool = True,
    do_memcpy: bool = True,
) -> str:
    """Measures how fast an iterator makes batches, without a device.

    Args:
        data: as for `ipujax.Infeed`. One iteration goes over all epochs.
        number_of_epochs: number of measurements.
        elements_per_epoch: batches per measurement.
        print_stats: print a line for each epoch.
        do_memcpy: also copy each batch, as an `Infeed` does.
    Returns:
        JSON: {"epochs": [{"elements_processed", "total_bytes_processed", "time_elapsed" (s),
        "elements_per_second", "bandwidth" (GB/s)}, ...]}.
    Raises:
        FeedError: numbers below 1, or data that end too early.

    Source: `dataset_benchmark.dataset_benchmark` of Graphcore's TensorFlow.

    Example:
        >>> import json
        >>> found = ipu.data.dataset_benchmark(np.ones((9, 5), np.float32), 2, 4, print_stats=False)
        >>> print([epoch["total_bytes_processed"] for epoch in json.loads(found)["epochs"]])
        [80, 80]
    """
    batches = iterate(data)

    def take() -> int:
        leaves, _ = leaves_of(_next(batches))
        return _bytes_of(leaves, do_memcpy)

    return _measure(take, number_of_epochs, elements_per_epoch, print_stats)


def infeed_benchmark(
    infeed: Infeed,
    number_of_epochs: int,
    elements_per_epoch: int,
    print_stats: bool = True,
    do_memcpy: bool = True,
) -> str:
    """Measures how fast an `ipujax.Infeed` gives batches to a program that does nothing else.

    Args:
        infeed: its batches are consumed.
        number_of_epochs: number of measurements.
        elements_per_epoch: batches per measurement.
        print_stats: print a line for each epoch.
        do_memcpy: also copy each batch out of the ring, as a program does.
    Returns:
        JSON, as from `dataset_benchmark`.
    Raises:
        FeedError: numbers below 1, or data that end too early.

    Source: `dataset_benchmark.infeed_benchmark` of Graphcore's TensorFlow.

    Example:
        >>> import json
        >>> infeed = ipu.Infeed(np.ones((9, 5), np.float32))
        >>> found = ipu.data.infeed_benchmark(infeed, 2, 4, print_stats=False)
        >>> print(json.loads(found)["epochs"][0]["elements_processed"], infeed.position)
        4 8
    """
    fetch = infeed.reader()

    def take() -> int:
        arrays = fetch()
        if arrays is None:
            raise _ended()
        return _bytes_of(arrays, do_memcpy)

    return _measure(take, number_of_epochs, elements_per_epoch, print_stats)


def _bytes_of(arrays: list[np.ndarray], copies: bool) -> int:
    if copies:
        for array in arrays:
            np.copy(array)
    return sum(array.nbytes for array in arrays)


def _next(batches: Iterator[Any]) -> Any:
    try:
        return next(batches)
    except StopIteration:
        raise _ended() from None


def _ended() -> FeedError:
    return FeedError(
        "[benchmark] needs data for all epochs; got their end. Pass fewer elements, or repeat them."
    )


def _measure(take: Callable[[], int], epochs: int, elements: int, prints: bool) -> str:
    if epochs < 1 or elements < 1:
        raise FeedError(
            f"[benchmark] needs epochs and elements of 1 or more; got {epochs} and {elements}. "
            "Pass more."
        )
    found = []
    for number in range(epochs):
        start = time.perf_counter()
        num_bytes = sum(take() for _ in range(elements))
        seconds = time.perf_counter() - start
        found.append(
            {
                "elements_processed": elements,
                "total_bytes_processed": num_bytes,
                "time_elapsed": seconds,
                "elements_per_second": elements / seconds,
                "bandwidth": num_bytes / seconds / 1e9,
            }
        )
        if prints:
            speed, bandwidth = elements / seconds, num_bytes / seconds / 1e9
            print(f"epoch {number}: {speed:.4g} batches/s, {bandwidth:.4g} GB/s")
    return json.dumps({"epochs": found})
