"""Rows that updates of a `HostTable` replaced, so that several updates can be taken back."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from ipujax.api.embed.table.sgd import Change


@dataclass(frozen=True)
class Before:
    """A table before a step's gradients reached it, with only the rows that the step replaced."""

    version: int
    num_updates: int
    accumulated: list[tuple[slice, Change]]
    num_accumulated: int
    replaced: list[tuple[np.ndarray, slice, np.ndarray]]  #: ids [n], columns, rows of both


class History:
    """The last `most` steps, the oldest first."""

    def __init__(self, most: int):
        self._steps: deque[Before] = deque(maxlen=most)

    def keeps(self) -> bool:
        """Whether steps are kept at all."""
        return self._steps.maxlen != 0

    def add(self, before: Before) -> None:
        """Adds the next step."""
        self._steps.append(before)

    def back_to(self, version: int) -> list[Before] | None:
        """Forgets and returns the steps since that version, newest first; None if it is too old."""
        found: list[Before] = []
        for step in reversed(self._steps):
            found.append(step)
            if step.version == version:
                for _ in found:
                    self._steps.pop()
                return found
        return None

    def clear(self) -> None:
        """Forgets all steps."""
        self._steps.clear()
