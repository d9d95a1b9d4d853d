"""Call frames of traced operations: the functions that called each other, and whose they are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

#: Folders of installed libraries, and Python's own code that runs programs.
_INSTALLED = re.compile(r"[/\\](?:site|dist)-packages[/\\]|^<frozen ")
_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in a function that was running when an operation was traced."""

    function: str  #: its qualified name, as "Model.__call__"
    file: str
    line: int
    column: int = -1  #: in bytes of UTF-8, from 0; -1 where unknown
    end_line: int = -1
    end_column: int = -1

    @property
    def place(self) -> str:
        """As "train.py:31"."""
        return f"{self.file.rpartition('/')[2]}:{self.line}"

    @property
    def is_of_this_package(self) -> bool:
        return self.file.startswith(_PACKAGE)

    @property
    def is_own(self) -> bool:
        """Whether it is the user's: neither of an installed library nor of this package."""
        return not (self.is_of_this_package or _INSTALLED.search(self.file))

    def __str__(self) -> str:
        return f"{self.place} {self.function.rpartition('<locals>.')[2]}".rstrip()


def own_place(frames: Iterable[Frame]) -> str:
    """The innermost of the user's lines, or the innermost line of all if no frame is the user's."""
    first: Frame | None = None
    for frame in frames:
        if frame.is_own:
            return frame.place
        first = first or frame
    return first.place if first else ""


def without_repeats(frames: Iterable[Frame]) -> tuple[Frame, ...]:
    """Keeps each frame's outermost occurrence: JAX repeats those around the body of a loop."""
    return tuple(reversed(dict.fromkeys(reversed(tuple(frames)))))


def shown_frames(frames: Iterable[Frame]) -> Iterator[Frame]:
    """The frames for reports: the user's and those of libraries."""
    return (frame for frame in frames if not frame.is_of_this_package)
