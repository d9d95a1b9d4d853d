"""Programs timed by turns in one process, so that a noisy moment falls on all of them."""

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


def interleave(*runs: RunMany, num_rounds: int, sample_seconds: float) -> list[float]:
    """Median seconds per call of each run, over `num_rounds` samples taken by turns."""
    calls = [calls_for(run, sample_seconds) for run in runs]
    samples: list[list[float]] = [[] for _ in runs]
    for round_number in range(num_rounds):
        order = range(len(runs)) if round_number % 2 == 0 else reversed(range(len(runs)))
        for which in order:
            samples[which].append(runs[which](calls[which]) / calls[which])
    return [statistics.median(each) for each in samples]
