"""Two backends timed by turns in one process, so that a noisy moment falls on both."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

#: Runs the program that many times, waits for the last result, returns the seconds it took.
RunMany = Callable[[int], float]


def timed(calls: Callable[[int], object]) -> RunMany:
    """A `RunMany` of which everything counts."""

    def run(num_calls: int) -> float:
        start = time.perf_counter()
        calls(num_calls)
        return time.perf_counter() - start

    return run


def calls_for(run: RunMany, sample_seconds: float) -> int:
    """How many calls take about `sample_seconds`."""
    num_calls = 1
    while True:
        taken = run(num_calls)
        if taken >= sample_seconds / 2:
            return max(1, round(num_calls * sample_seconds / taken))
        num_calls *= 4


def interleave(
    first: RunMany, second: RunMany, num_rounds: int, sample_seconds: float
) -> tuple[float, float]:
    """Median seconds per call of each, over `num_rounds` samples taken by turns."""
    calls = [calls_for(run, sample_seconds) for run in (first, second)]
    samples: tuple[list[float], list[float]] = ([], [])
    for round_number in range(num_rounds):
        order = (0, 1) if round_number % 2 == 0 else (1, 0)
        for which in order:
            samples[which].append((first, second)[which](calls[which]) / calls[which])
    return statistics.median(samples[0]), statistics.median(samples[1])
