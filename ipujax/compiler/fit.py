"""Compiles a program that does not fit again with other options, and compares the results."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ipujax.compiler.remedies import (
    Changes,
    by_order,
    by_proportion,
    by_report,
    text_of,
    without_cost,
)
from ipujax.compiler.rules import poplar as ipu
from ipujax.config.options import CompileConfig
from ipujax.errors import OutOfMemoryError
from ipujax.host.logs import logger_of
from ipujax.reporting.model import Report
from ipujax.reporting.profile import read_profile

logger = logger_of("compiler")

#: Properties of an executable that trials compare.
NEEDED = ("cost", "worst_tile_bytes", "tile_capacity", "code_bytes", "code_capacity")


@dataclass(frozen=True)
class Attempt:
    """One compilation of a program."""

    name: str
    options: CompileConfig
    executable: bytes
    report: str  #: by how much it does not fit; empty if it fits

    @cached_property
    def _image(self) -> Mapping[str, Any]:
        image = ipu.engine.inspectImage(self.executable)
        return {key: image[key] for key in NEEDED}

    @cached_property
    def profile(self) -> Report:
        """The memory use of a program that was compiled with `profile`."""
        return read_profile(self.executable)

    @property
    def cycles(self) -> float:
        return float(self._image["cost"]["cycles"])

    @property
    def tile_bytes(self) -> int:
        return int(self._image["worst_tile_bytes"])

    @property
    def lacks_tile_memory(self) -> bool:
        image = self._image
        return self.tile_bytes > image["tile_capacity"] or (
            image["code_bytes"] > image["code_capacity"]
        )


@dataclass(frozen=True)
class Trial:
    """Options that were tried, and their result."""

    changes: Changes
    cycles: float
    tile_bytes: int
    fits: bool

    def text(self, first: Attempt) -> str:
        slower = 100 * (self.cycles / first.cycles - 1)
        verdict = ", fits" if self.fits else ""
        return f"{text_of(self.changes)} ({self.tile_bytes} bytes, {slower:+.1f} % cycles{verdict})"


class TrialCache:
    """Trials of the most recent programs, by a digest of everything they depend on."""

    def __init__(self, size: int):
        self._size = size
        self._found: OrderedDict[bytes, tuple[Trial, ...]] = OrderedDict()

    def get(self, key: bytes) -> tuple[Trial, ...] | None:
        return self._found.get(key)

    def put(self, key: bytes, trials: tuple[Trial, ...]) -> None:
        self._found[key] = trials
        self._found.move_to_end(key)
        while len(self._found) > self._size:
            self._found.popitem(last=False)


_cache = TrialCache(64)


def fitted(
    compile: Callable[[Changes], Attempt],
    key: object = None,
    announce: Callable[[str], None] = lambda text: None,
) -> bytes:
    """The executable of a program, with the remedies that its option `fit` asks for.

    Args:
        compile: compiles the program with some options changed.
        key: everything the result depends on; None: it is not cached.
        announce: called with a description of each trial.
    Raises:
        OutOfMemoryError: it does not fit, and `out_of_memory="error"`.
    """
    first = compile({})
    if not first.report:
        return first.executable
    wanted = first.options.fit == "auto"
    lists = first.options.fit == "advise" and first.options.out_of_memory == "error"
    if not (wanted or lists):
        return _refused(first, ())
    digest = hashlib.sha256(repr((key, first.options)).encode()).digest()
    known = _cache.get(digest) if key is not None else None
    kept = dict[str, Attempt]()
    trials = known or tuple(_trials(first, compile, announce, kept))
    if key is not None:
        _cache.put(digest, trials)
    ranked = sorted(trials, key=lambda trial: (not trial.fits, trial.cycles))
    for best in ranked[:1] if wanted else ():
        if best.fits:
            attempt = kept.get(text_of(best.changes)) or compile({**best.changes, "dump_dir": ""})
            if not attempt.report:
                return _applied(best, attempt, first, compile)
    return _refused(first, ranked)


def _applied(
    best: Trial, attempt: Attempt, first: Attempt, compile: Callable[[Changes], Attempt]
) -> bytes:
    logger.warning(
        "[fit] %r needs %d bytes of a tile as it is; got a fit with %s. Set that to compile once.",
        first.name,
        first.tile_bytes,
        best.text(first),
    )
    if first.options.dump_dir:  # trials write nothing there
        return compile(best.changes).executable
    return attempt.executable


def _refused(first: Attempt, trials: tuple[Trial, ...] | list[Trial]) -> bytes:
    """Raises or lets the program run, as `out_of_memory` says; the best trial comes first."""
    report = first.report
    if trials:
        report += " Tried " + "; ".join(trial.text(first) for trial in trials) + "."
        report += " ipujax.remedies tries changes of the function, too."
    if first.options.out_of_memory == "error":
        raise OutOfMemoryError(report)
    if first.options.out_of_memory == "run":
        return first.executable
    hint = "" if trials else ' Set ipu_fit="auto" to try options that save memory.'
    logger.warning("%s%s The IPU Model runs it all the same.", report, hint)
    return first.executable


def _trials(
    first: Attempt,
    compile: Callable[[Changes], Attempt],
    announce: Callable[[str], None],
    kept: dict[str, Attempt],
) -> Iterator[Trial]:
    """Trials up to the first group with a remedy that fits; `kept` gets the best attempt."""
    if not first.lacks_tile_memory:
        return
    deadline = time.monotonic() + first.options.fit_seconds
    best = float("inf")
    for group in _groups(first, compile, announce):
        for changes in group:
            announce(f"tries {text_of(changes)}")
            try:
                attempt = compile({**changes, "dump_dir": ""})
            except ipu.poplar.invalid_option:  # other products there have no such plan
                continue
            fits = not attempt.report
            if fits and attempt.cycles < best:
                best = attempt.cycles
                kept.clear()
                kept[text_of(changes)] = attempt
            yield Trial(changes, attempt.cycles, attempt.tile_bytes, fits)
            if time.monotonic() > deadline:
                return
        if kept:
            return


def _groups(
    first: Attempt, compile: Callable[[Changes], Attempt], announce: Callable[[str], None]
) -> Iterator[list[Changes]]:
    """Groups of remedies, those that slow the program least first."""
    yield by_order(first.options)
    yield without_cost(first.options)
    announce("looks for what is live at the peak")
    yield by_report(compile({"profile": True, "dump_dir": ""}).profile, first.options)
    yield by_proportion(first.options)
