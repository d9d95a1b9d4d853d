"""A program that does not fit: what other options would give, found by compiling again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ipujax.compiler.rules import poplar as ipu
from ipujax.config import PER_CALL_PREFIX, CompileConfig
from ipujax.errors import OutOfMemoryError

logger = logging.getLogger("ipujax")

#: Options by name, and their other values.
Changes = Mapping[str, Any]
PROPORTIONS = (0.3, 0.1, 0.03)
#: No further trial begins after so long; one begins in any case.
SECONDS = 60.0


@dataclass(frozen=True)
class Attempt:
    """One compilation of a program."""

    name: str
    options: CompileConfig
    executable: bytes
    report: str  #: by how much it does not fit; empty where it fits

    @cached_property
    def _image(self) -> Mapping[str, Any]:
        image = ipu.engine.inspectImage(self.executable)
        return {key: image[key] for key in ("cost", "worst_tile_bytes", "tile_capacity")}

    @property
    def cycles(self) -> float:
        return float(self._image["cost"]["cycles"])

    @property
    def tile_bytes(self) -> int:
        return int(self._image["worst_tile_bytes"])

    @property
    def lacks_tile_memory(self) -> bool:
        return self.tile_bytes > int(self._image["tile_capacity"])


@dataclass(frozen=True)
class Trial:
    """Options that were tried, and what they gave."""

    changes: Changes
    attempt: Attempt

    def text(self, first: Attempt) -> str:
        options = ", ".join(
            f"{PER_CALL_PREFIX}{name}={value}" for name, value in self.changes.items()
        )
        slower = 100 * (self.attempt.cycles / first.cycles - 1)
        verdict = "" if self.attempt.report else ", fits"
        return f"{options} ({self.attempt.tile_bytes} bytes, {slower:+.1f} % cycles{verdict})"


def fitted(compile: Callable[[Changes], Attempt]) -> bytes:
    """The executable of a program, with the remedies that its option `fit` asks for.

    Args:
        compile: compiles the program with some options changed.
    Raises:
        OutOfMemoryError: it does not fit, and `out_of_memory="error"`.
    """
    first = compile({})
    if not first.report:
        return first.executable
    wanted = first.options.fit == "auto"
    lists = first.options.fit == "advise" and first.options.out_of_memory == "error"
    trials = list(_trials(first, compile)) if wanted or lists else []
    fitting = [trial for trial in trials if not trial.attempt.report]
    if wanted and fitting:
        return _applied(min(fitting, key=lambda trial: trial.attempt.cycles), first, compile)
    report = first.report
    if trials:
        report += " Tried " + "; ".join(trial.text(first) for trial in trials) + "."
        report += " ipujax.remedies tries changes of the function, too."
    if first.options.out_of_memory == "error":
        raise OutOfMemoryError(report)
    hint = "" if trials else f' Set {PER_CALL_PREFIX}fit="auto" to try options that save memory.'
    logger.warning("%s%s The IPU Model runs it all the same.", report, hint)
    return first.executable


def _applied(best: Trial, first: Attempt, compile: Callable[[Changes], Attempt]) -> bytes:
    logger.warning(
        "[fit] %r needs %d bytes of a tile as it is; got a fit with %s. Set that to compile once.",
        first.name,
        first.tile_bytes,
        best.text(first),
    )
    if first.options.dump_dir:  # trials write nothing there
        return compile(best.changes).executable
    return best.attempt.executable


def _trials(first: Attempt, compile: Callable[[Changes], Attempt]) -> Iterator[Trial]:
    """Those up to the first group of remedies of which one is enough."""
    if not first.lacks_tile_memory:
        return
    deadline = time.monotonic() + SECONDS
    for group in remedies_of(first.options):
        fits = False
        for changes in group:
            trial = Trial(changes, compile({**changes, "dump_dir": ""}))
            fits = fits or not trial.attempt.report
            yield trial
            if time.monotonic() > deadline:
                return
        if fits:
            return


def remedies_of(options: CompileConfig) -> Iterator[list[Changes]]:
    """Options that save memory and leave results as they are, in groups, the fastest first."""
    outline = {} if options.outline == "auto" else {"outline": "auto"}
    recompute = {} if options.allow_recompute else {"allow_recompute": True}
    both = {**outline, **recompute}
    yield [
        changes
        for changes in (outline, recompute, both if outline and recompute else {})
        if changes
    ]
    if options.partials_type == "float":  # sums of half partials depend on the plan
        smaller = [
            {"available_memory_proportion": proportion}
            for proportion in PROPORTIONS
            if proportion < options.available_memory_proportion
        ]
        yield [
            {**base, **changes} for base in (({}, both) if both else ({},)) for changes in smaller
        ]
