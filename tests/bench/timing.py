"""Programs timed by turns in one process, so that a noisy moment falls on all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

#: Runs the program that many times, waits for the last result, returns the seconds it took.
RunMany = Callable[[int], float]

#: Rounds that are taken whatever they cost.
MIN_ROUNDS = 3


class Compared(NamedTuple):
    """Two programs: median seconds of a call of each, and the ratio first / second by round."""

    first_seconds: float
    second_seconds: float
    ratios: Sequence[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> str:
        low, middle, high = min(self.ratios), self.ratio, max(self.ratios)
        return f"min {low:.2f} median {middle:.2f} max {high:.2f} of {len(self.ratios)}"


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


def _by_turns(
    runs: Sequence[RunMany], calls: Sequence[int], num_rounds: int, budget_seconds: float
) -> list[list[float]]:
    """Seconds per call of each run in each round; rounds end when the budget is spent."""
    samples: list[list[float]] = [[] for _ in runs]
    start = time.perf_counter()
    for round_number in range(num_rounds):
        if round_number >= MIN_ROUNDS and time.perf_counter() - start > budget_seconds:
            break
        order = range(len(runs)) if round_number % 2 == 0 else reversed(range(len(runs)))
        for which in order:
            samples[which].append(runs[which](calls[which]) / calls[which])
    return samples


def interleave(*runs: RunMany, num_rounds: int, sample_seconds: float) -> list[float]:
    """Median seconds per call of each run, over `num_rounds` samples taken by turns."""
    calls = [calls_for(run, sample_seconds) for run in runs]
    samples = _by_turns(runs, calls, num_rounds, float("inf"))
    return [statistics.median(each) for each in samples]


def compare(first: RunMany, second: RunMany, num_rounds: int, sample_seconds: float) -> Compared:
    """Samples of many calls each."""
    runs = (first, second)
    calls = [calls_for(run, sample_seconds) for run in runs]
    return _compared(_by_turns(runs, calls, num_rounds, float("inf")))


def compare_once(
    first: RunMany, second: RunMany, num_rounds: int, budget_seconds: float
) -> Compared:
    """Samples of one call each, fewer of them where they are long: for compiling."""
    return _compared(_by_turns((first, second), (1, 1), num_rounds, budget_seconds))


def _compared(samples: list[list[float]]) -> Compared:
    first, second = samples
    ratios = [a / b for a, b in zip(first, second, strict=True)]
    return Compared(statistics.median(first), statistics.median(second), ratios)
