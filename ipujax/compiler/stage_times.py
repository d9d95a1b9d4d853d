"""Logs how long the stages of a compilation took, in one line."""

from __future__ import annotations

import logging
import time

from ipujax import jax_compat
from ipujax.host.logs import logger_of

logger = logger_of("compiler")


class StageTimes:
    """Times of the stages of one compilation, which may run them more than once."""

    def __init__(self) -> None:
        self.stage = ""  #: the stage that runs now, or ran last
        self._seconds: dict[str, float] = {}
        self._begun = time.monotonic()

    def begin(self, stage: str) -> None:
        """A stage begins; the one before has ended."""
        self._count()
        self.stage = stage

    def end(self, program: str) -> None:
        """Logs the times: information, or a warning if JAX logs its compilations as warnings."""
        self._count()
        level = logging.WARNING if jax_compat.logs_compiles() else logging.INFO
        if logger.isEnabledFor(level):
            stages = ", ".join(f"{name} {taken:.3f}" for name, taken in self._seconds.items())
            total = sum(self._seconds.values())
            logger.log(level, "[compile] %r took %.3f s: %s", program, total, stages)
        self._seconds.clear()

    def _count(self) -> None:
        now = time.monotonic()
        if self.stage:
            self._seconds[self.stage] = self._seconds.get(self.stage, 0.0) + now - self._begun
        self._begun = now
